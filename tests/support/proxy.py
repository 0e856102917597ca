"""A proxy between a client and a real Redis that breaks the connection at the moment a test asks for.

Commands and replies are counted and matched one by one, so that a fault hits exactly the reply it was meant for, also
on a pipelined connection and long after the handshake.
"""

import asyncio
import pathlib
import tempfile
import threading
from collections import deque
from collections.abc import Coroutine
from typing import Any, Literal, Self, TypeVar

from tests.support.resp import Frames

T = TypeVar("T")


class Fault:
    """One armed fault: it hits one command that contains `match`, then it is spent."""

    def __init__(self, match: bytes, kind: Literal["request", "reply"], keep: int) -> None:
        self.match = match
        self.kind = kind
        self.keep = keep
        self._hit = threading.Event()

    @property
    def happened(self) -> bool:
        return self._hit.is_set()

    def hit(self) -> None:
        self._hit.set()

    def wait(self, timeout: float = 10) -> None:
        """Return when it has happened; a test that injects a fault must know that it did."""
        if not self._hit.wait(timeout):
            raise AssertionError(f"no command with {self.match!r} came by in {timeout} s")


class Link:
    """One client's connection and the connection to the server that stands behind it."""

    def __init__(self, proxy: "Proxy", client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.proxy = proxy
        self.client = client
        self.server = server
        self.waiting: deque[tuple[bytes, Fault | None]] = deque()
        self.lost_replies = False

    async def commands(self, reader: asyncio.StreamReader) -> None:
        """Pass the client's commands on, until it hangs up or a fault cuts the connection."""
        frames = Frames()
        while data := await reader.read(65536):
            for command in frames.feed(data):
                fault = self.proxy.matching(command)
                if fault is not None and fault.kind == "request":
                    fault.hit()
                    return
                if self.proxy.partitioned:
                    self.lost_replies = True
                    continue
                self.waiting.append((command, fault))
                self.server.write(command)
                await self.server.drain()

    async def replies(self, reader: asyncio.StreamReader) -> None:
        """Pass the server's replies on. Push messages (RESP 3) answer no command."""
        frames = Frames()
        while data := await reader.read(65536):
            for reply in frames.feed(data):
                command, fault = b"", None
                if self.waiting and not reply.startswith(b">"):
                    command, fault = self.waiting.popleft()
                    self.proxy.executed_commands.append(command)
                if fault is not None:
                    self.client.write(reply[: fault.keep])
                    await self.client.drain()
                    fault.hit()
                    return
                if self.proxy.pause:
                    await asyncio.sleep(self.proxy.pause)
                if self.proxy.swallowing:
                    self.lost_replies = True
                    continue
                self.client.write(reply)
                await self.client.drain()

    def abort(self) -> None:
        """Cut both ends at once."""
        for writer in (self.client, self.server):
            writer.transport.abort()


class Proxy:
    """A proxy before a server's unix socket: `with Proxy(server.socket) as p:` and give the client `p.url`."""

    def __init__(self, upstream: str, *, tcp: bool = False) -> None:
        self.upstream = upstream
        self.port: int | None = None
        self.pause = 0.0
        self.swallowing = False
        self.partitioned = False
        self.executed_commands: list[bytes] = []
        self._tcp = tcp
        self._directory = tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True)
        self.socket = str(pathlib.Path(self._directory.name, "p"))
        self._faults: list[Fault] = []
        self._links: dict[Link, asyncio.Task[Any]] = {}
        self._listener: asyncio.Server | None = None
        self._own_errors: list[BaseException] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}" if self._tcp else f"unix://{self.socket}"

    # What a test does with it.

    def cut_next_reply(self, match: bytes = b"", *, keep: int = 0) -> Fault:
        """The server executes the next matching command; the client gets `keep` bytes of the reply and a hang-up."""
        return self._arm(Fault(match, "reply", keep))

    def cut_next_request(self, match: bytes = b"") -> Fault:
        """The next matching command does not reach the server; the client sees a hang-up, as above."""
        return self._arm(Fault(match, "request", 0))

    def blackhole(self, *, requests: bool = False) -> None:
        """Swallow every reply while connections stay open; with `requests=True` swallow the commands too."""
        self._on_loop(self._set(swallowing=True, partitioned=requests))

    def delay(self, seconds: float) -> None:
        """Hold every reply back for so long."""
        self._on_loop(self._set(pause=seconds))

    def refuse(self) -> None:
        """Refuse new connections; those that exist go on."""
        self._on_loop(self._close_listener())

    def kill_connections(self) -> int:
        """Cut every connection; return how many there were."""
        return self._on_loop(self._kill(only_lost=False))

    def heal(self) -> None:
        """End every fault. A connection whose replies were swallowed is cut: its next reply would be a wrong one."""
        self._faults.clear()
        self._on_loop(self._set(swallowing=False, partitioned=False, pause=0.0))
        self._on_loop(self._kill(only_lost=True))
        self._on_loop(self._listen())

    @property
    def connections(self) -> int:
        return len(self._links)

    @property
    def executed(self) -> int:
        """How many commands the server has answered, whether or not the client learnt it."""
        return len(self.executed_commands)

    def count(self, match: bytes) -> int:
        """How many commands that contain these bytes the server has answered."""
        return sum(match in command for command in list(self.executed_commands))

    # How it works.

    def __enter__(self) -> Self:
        self._thread.start()
        self._on_loop(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._on_loop(self._close_listener())
        self._on_loop(self._kill(only_lost=False))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._directory.cleanup()
        if self._own_errors:
            raise self._own_errors[0]

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def _arm(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def matching(self, command: bytes) -> Fault | None:
        """Take the first armed fault that this command sets off."""
        fault = next((fault for fault in self._faults if fault.match in command), None)
        if fault is not None:
            self._faults.remove(fault)
        return fault

    async def _set(self, **attributes: float | bool) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    async def _listen(self) -> None:
        if self._listener is not None:
            return
        if self._tcp:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port or 0)
            self.port = self._listener.sockets[0].getsockname()[1]
        else:
            self._listener = await asyncio.start_unix_server(self._serve, self.socket)

    async def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _kill(self, *, only_lost: bool) -> int:
        doomed = {link: task for link, task in self._links.items() if link.lost_replies or not only_lost}
        for link, task in doomed.items():
            link.abort()
            task.cancel()
        await asyncio.gather(*doomed.values(), return_exceptions=True)
        return len(doomed)

    def _judge(self, error: BaseException | None) -> None:
        """Broken connections are this proxy's trade; any other error is its own and fails the test at the end."""
        if error is not None and not isinstance(error, OSError):
            self._own_errors.append(error)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(self.upstream)
        except OSError:
            writer.transport.abort()  # the server is down, and so is this connection
            return
        link = Link(self, writer, server_writer)
        task = asyncio.current_task()
        assert task is not None
        self._links[link] = task
        pumps = [
            asyncio.create_task(link.commands(reader)),
            asyncio.create_task(link.replies(server_reader)),
        ]
        try:
            # Either side hanging up ends both, as a severed cable would.
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in done:
                self._judge(pump.exception())
        except asyncio.CancelledError:
            pass  # kill_connections(); a task of the stream server must not end cancelled
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for end in (writer, server_writer):
                end.close()
            del self._links[link]
