"""A small HTTP server in a thread of its own, which answers also while the program's event loop stands still.

It knows GET and HEAD of a few paths, and reads no bodies. Everything is bounded: how long a request may be and take,
and how many are answered at the same time.
"""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, NamedTuple, cast

from tenure.errors import ConfigurationError

logger: logging.Logger = logging.getLogger("tenure.web")

LONGEST_HEAD: Final = 8192
"""Bytes of a request's line and headers."""
LONGEST_SECONDS: Final = 5.0
"""What one connection may take, from its acceptance to the last byte."""
MOST_CONNECTIONS: Final = 32
"""Those beyond are closed at once."""
TEXT: Final = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """What a path answers."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT


Routes = Mapping[str, Callable[[], Answer | Awaitable[Answer]]]


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listener:
    """A bound address, and what serves on it later."""

    def __init__(self, address: Address) -> None:
        """Bind it; raises ``ConfigurationError`` when it cannot be had."""
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        try:
            self._socket = socket.create_server(tuple(address), family=family, backlog=MOST_CONNECTIONS)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise ConfigurationError("--http", f"cannot listen on {address}: {why}; no job was claimed") from None
        self.address: Address = Address(address.host, self._socket.getsockname()[1])
        """As it was bound: port 0 has become a real one."""

    def close(self) -> None:
        """Listen no more; idempotent."""
        self._socket.close()

    @contextmanager
    def serving(self, routes: Routes) -> Iterator[None]:
        """Answer for the length of the block, and close."""
        loop = asyncio.new_event_loop()
        stop = asyncio.Event()
        serving = _Serving(self._socket, routes)
        thread = threading.Thread(target=_run, args=(loop, serving, stop), name="tenure-http", daemon=True)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(LONGEST_SECONDS)
            self.close()


def _run(loop: asyncio.AbstractEventLoop, serving: "_Serving", stop: asyncio.Event) -> None:
    with contextlib.closing(loop):
        loop.run_until_complete(serving.until(stop))


class _Serving:
    """One server, while it serves."""

    def __init__(self, listening: socket.socket, routes: Routes) -> None:
        self._socket = listening
        self._routes = routes
        self._open: set[asyncio.Task[None]] = set()

    async def until(self, stop: asyncio.Event) -> None:
        """Serve until told to stop; what is being answered then is broken off."""
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=LONGEST_HEAD)
        await stop.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            if len(self._open) >= MOST_CONNECTIONS:
                return
            self._open.add(task)
            async with asyncio.timeout(LONGEST_SECONDS):
                writer.write(await self._answered(reader))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return  # whoever asked has gone, or takes too long
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _answered(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _encoded(_plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _encoded(_plain(HTTPStatus.BAD_REQUEST))
        method, target, _ = words
        if method not in {b"GET", b"HEAD"}:
            return _encoded(_plain(HTTPStatus.METHOD_NOT_ALLOWED), ("Allow: GET, HEAD",))
        answer = await self._of(target.split(b"?", 1)[0].decode("latin-1"))
        return _encoded(answer, bodyless=method == b"HEAD")

    async def _of(self, path: str) -> Answer:
        route = self._routes.get(path)
        if route is None:
            known = " ".join(self._routes)
            return Answer(HTTPStatus.NOT_FOUND, f"Not Found; there is {known}\n".encode())
        try:
            answer = route()
            return answer if isinstance(answer, Answer) else await answer
        except Exception as error:  # noqa: BLE001 - a probe that gets no answer takes the whole process for dead
            logger.warning("%s could not be answered: %s", path, type(error).__name__)
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR)


def _plain(status: HTTPStatus) -> Answer:
    return Answer(status, f"{status.phrase}\n".encode())


def _encoded(answer: Answer, headers: tuple[str, ...] = (), *, bodyless: bool = False) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        "Connection: close",
        *headers,
    ]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head if bodyless else head + answer.body
