"""A proxy of bytes between a client and a database server, that breaks the connection around one message."""

import contextlib
import pathlib
import select
import socket
import tempfile
import threading
import time
from typing import Literal, Self

Kind = Literal["request", "reply", "late"]


class Cut:
    """One armed fault: it hits one message of a client that contains ``match``, then it is spent.

    ``request``: the server never gets it. ``reply``: the server does it, and nobody hears. ``late``: the client is cut
    off at once, and the server gets it so many seconds later.
    """

    def __init__(self, match: bytes, kind: Kind, seconds: float, *, last: bool) -> None:
        self.match = match
        self.kind = kind
        self.seconds = seconds
        self.last = last
        """Nobody gets through any more, after it."""
        self._hit = threading.Event()

    def hit(self) -> None:
        self._hit.set()

    @property
    def happened(self) -> bool:
        return self._hit.is_set()

    def wait(self, timeout: float = 20) -> None:
        """Return when it has happened; a test that injects a fault must know that it did."""
        assert self._hit.wait(timeout), f"no message with {self.match!r} came by in {timeout} s"


class Wire:
    """A proxy before a server, on a unix socket of its own in ``directory``, or on a free port."""

    def __init__(self, upstream: str | tuple[str, int]) -> None:
        self._upstream = upstream
        self._directory = tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True)
        self._cuts: list[Cut] = []
        self._links: list[socket.socket] = []
        self._closed = False
        if isinstance(upstream, str):
            self.socket = str(pathlib.Path(self._directory.name, "w"))
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self.socket)
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.port: int = self._listener.getsockname()[1]
        self._listener.listen()

    def cut(self, match: bytes, kind: Kind, seconds: float = 0, *, last: bool = False) -> Cut:
        cut = Cut(match, kind, seconds, last=last)
        self._cuts.append(cut)
        return cut

    def spare(self) -> None:
        """Disarm what has not hit anything yet."""
        self._cuts.clear()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="wire", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        for end in [self._listener, *self._links]:
            end.close()
        self._directory.cleanup()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._connected()
            except OSError:
                client.close()  # nobody is there, as whoever connects learns
                continue
            self._links += [client, server]
            threading.Thread(target=self._pump, args=(client, server), daemon=True).start()

    def _connected(self) -> socket.socket:
        if isinstance(self._upstream, tuple):
            return socket.create_connection(self._upstream)
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._upstream)
        except OSError:
            server.close()
            raise
        return server

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, ValueError):
                self._pass_on(client, server)
        finally:
            # Either side hanging up ends both, as a severed cable would.
            for end in (client, server):
                end.close()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([client, server], [], [])
            for end in ready:
                data = end.recv(65536)
                if not data:
                    return
                cut = next((cut for cut in self._cuts if cut.match in data), None) if end is client else None
                if cut is None:
                    (server if end is client else client).sendall(data)
                    continue
                with contextlib.suppress(ValueError):  # another connection was faster
                    self._cuts.remove(cut)
                self._do(cut, data, client, server)
                return

    def _do(self, cut: Cut, data: bytes, client: socket.socket, server: socket.socket) -> None:
        if cut.last:
            # Shut down first: a thread that waits for a connection would keep the socket open.
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        if cut.kind == "late":
            client.close()
            cut.hit()
            time.sleep(cut.seconds)
        if cut.kind != "request":
            server.sendall(data)
            server.recv(65536)  # it is done
        cut.hit()
        for end in (client, server):
            end.close()
