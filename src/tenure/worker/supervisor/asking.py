"""What a supervisor asks its children while they work: a question is one byte, the answer is a frame of msgpack.

It goes over a socket pair of its own, because a child answers from a thread of its own: the other line is its event
loop's, and that may stand still.
"""

import asyncio
import contextlib
import socket
from typing import Final

import msgspec

QUESTION: Final = b"?"
LENGTH: Final = 4
"""Bytes before an answer that say how long it is."""
LONGEST: Final = 64 * 1024 * 1024
"""Bytes of an answer."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """How a child fares."""

    ready: bool
    """Whether the last claim that was due succeeded."""
    metrics: bytes = b""
    """What it counts, for whoever asked to count; empty when nobody did."""


def frame(told: Told) -> bytes:
    """Return an answer as it is sent."""
    data = msgspec.msgpack.encode(told)
    return len(data).to_bytes(LENGTH, "big") + data


class Asking:
    """The supervisor's end of the line to one child."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._coming: asyncio.Future[None] | None = None
        """The answer to the question that is under way; there is never more than one."""
        self.last: Told | None = None
        """What the child told last: when it was asked, or when it ended."""

    @classmethod
    async def over(cls, end: socket.socket) -> "Asking":
        """Take over a socket."""
        return cls(*await asyncio.open_unix_connection(sock=end))

    async def ask(self, seconds: float) -> Told | None:
        """Return how the child fares; None when it does not tell within so many seconds."""
        if self._coming is None:
            if self._writer.is_closing():
                return None
            self._coming = asyncio.get_running_loop().create_future()
            self._writer.write(QUESTION)
        # Not cancelled at the end of the time: who asks next waits for the same answer.
        coming, _ = await asyncio.wait({self._coming}, timeout=seconds)
        return self.last if coming else None

    async def listen(self) -> None:
        """Take in what it tells, until it ends."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            while True:
                length = int.from_bytes(await self._reader.readexactly(LENGTH), "big")
                if length > LONGEST:
                    raise ValueError("an answer is too long")
                self.last = msgspec.msgpack.decode(await self._reader.readexactly(length), type=Told)
                if self._coming is not None:
                    self._coming.set_result(None)
                    self._coming = None
        self.close()

    def close(self) -> None:
        """Close this end."""
        self._writer.close()
