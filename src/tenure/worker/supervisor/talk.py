"""What a supervisor and its children say to each other: one JSON object a line, over a socket pair.

The socket is also how each learns that the other has died: then it reads the end.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from tenure.worker.options import ExitReason

LONGEST_LINE: Final = 1 << 20
"""Bytes; the queues of a worker may be many."""


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """A child begins to claim."""

    queues: tuple[str, ...]


class Relief(msgspec.Struct, frozen=True, kw_only=True, tag="relief"):
    """A child has reached a limit. It goes on until another has taken its place."""

    reason: ExitReason


class Ending(msgspec.Struct, frozen=True, kw_only=True, tag="ending"):
    """A child ends in order."""

    reason: ExitReason
    forced: bool
    jobs: int
    """Those that left a slot."""
    held: int
    """Leases whose outcome has not reached the store."""


class Retire(msgspec.Struct, frozen=True, kw_only=True, tag="retire"):
    """A child is to claim no more and to end for this reason: another has taken its place."""

    reason: ExitReason


Message = Started | Relief | Ending | Retire

_decoder = msgspec.json.Decoder(Message)


def line_of(message: Message) -> bytes:
    """Return the message as it is sent."""
    return msgspec.json.encode(message) + b"\n"


class Talk:
    """One end of the line, in an event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "Talk":
        """Take over a socket."""
        reader, writer = await asyncio.open_unix_connection(sock=end, limit=LONGEST_LINE)
        return cls(reader, writer)

    def say(self, message: Message) -> None:
        """Send a message; the other side may be dead."""
        if not self._writer.is_closing():
            self._writer.write(line_of(message))

    async def heard(self) -> AsyncIterator[Message]:
        """Return each message, until the other side has ended."""
        while True:
            try:
                line = await self._reader.readline()
            except OSError:
                return
            if not line.endswith(b"\n"):
                return
            yield _decoder.decode(line)

    def close(self) -> None:
        """Close this end."""
        self._writer.close()
