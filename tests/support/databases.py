"""Real database servers for tests, each in a temporary directory, stopped by process id."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import psycopg
import pymysql
import sqlalchemy

from tests.support import processes
from tests.support.ports import free_port

PLACES = f"{os.environ.get('PATH', os.defpath)}:/usr/local/bin:/usr/sbin:/usr/bin"


class DatabaseFailed(RuntimeError):
    """A server that did not come up; the text is the end of its log."""


class Database:
    """One server with a data directory of its own: it can be killed, paused and started again on the same data."""

    def __init__(self, name: str, directory: str, command: Sequence[str], ping: Callable[[], None], url: str) -> None:
        self.name = name
        self.directory = directory
        self.url = url
        """Of its one database, as the driver takes it."""
        self._command = list(command)
        self._ping = ping
        self._log = pathlib.Path(directory, "log")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def library_url(self) -> str:
        """The same as SQLAlchemy takes it."""
        driver = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
        scheme, _, rest = self.url.partition("://")
        return f"{driver[scheme]}://{rest}"

    def engine(self) -> sqlalchemy.Engine:
        return sqlalchemy.create_engine(self.library_url, poolclass=sqlalchemy.NullPool)

    def start(self, timeout: float = 30) -> None:
        if self._process is not None:
            return
        with self._log.open("ab") as out:
            self._process = process = spawned(self._command, self.directory, out)
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._ping()
            except (psycopg.Error, pymysql.Error, OSError) as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    self.kill9()
                    raise DatabaseFailed(self._log.read_text(errors="replace")[-2000:]) from error
                time.sleep(0.02)
            else:
                return

    def stop(self, end: signal.Signals = signal.SIGINT) -> None:
        """End it in order, without waiting for its clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(end if self.name == "postgresql" else signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def kill9(self) -> None:
        """SIGKILL: what was not handed to the operating system is lost. PostgreSQL's own children end by themselves."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """SIGSTOP to the server and to its children: connections stay open and nothing answers."""
        for pid in [self.pid, *self._children()]:
            os.kill(pid, signal.SIGSTOP)

    def cont(self) -> None:
        for pid in [*self._children(), self.pid]:
            os.kill(pid, signal.SIGCONT)

    def _children(self) -> list[int]:
        return [int(pid) for pid in pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


def nobody() -> tuple[int, int] | None:
    """Return whose identity root lends to servers, which refuse to run as root; anybody else uses his own."""
    if os.getuid() != 0:
        return None
    found = pwd.getpwnam("nobody")
    return found.pw_uid, found.pw_gid


def spawned(command: Sequence[str], place: str, out: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a server in a directory; it ends with this process."""
    user, group = nobody() or (None, None)
    return subprocess.Popen(
        [*processes.dies_with_parent(), *command],
        stdout=out,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        cwd=place,
        user=user,
        group=group,
        extra_groups=None if user is None else [],
    )


def prepared(command: Sequence[str], place: str) -> None:
    """Run what makes a server's data, as the user that it will run as."""
    user, group = nobody() or (None, None)
    groups = None if user is None else list[int]()
    subprocess.run(command, check=True, capture_output=True, cwd=place, user=user, group=group, extra_groups=groups)


@contextmanager
def directory() -> Iterator[str]:
    # Not under pytest's tmp_path: a unix socket's path has room for about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as name:
        who = nobody()
        if who is not None:
            os.chown(name, *who)
        yield name


def postgres_programs() -> pathlib.Path | None:
    """Return the directory of PostgreSQL's programs, the newest that there is."""
    packaged = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name))
    if packaged:
        return packaged[-1]
    found = shutil.which("initdb", path=PLACES)
    return pathlib.Path(found).parent if found else None


def mariadb_program() -> str | None:
    found = shutil.which("mariadbd", path=PLACES)
    return found if found and shutil.which("mariadb-install-db", path=PLACES) else None


def pgbouncer_program() -> str | None:
    return shutil.which("pgbouncer", path=PLACES)


@contextmanager
def postgres(programs: pathlib.Path, *, durable: bool = False, settings: Sequence[str] = ()) -> Iterator[Database]:
    """Run a fresh PostgreSQL. Unless ``durable`` it writes nothing to the disk in time: a crash would harm its data."""
    with directory() as name:
        init = [
            str(programs / "initdb"),
            "-D",
            f"{name}/data",
            "-U",
            "tenure",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        prepared(init, name)
        port = free_port()
        options = [f"port={port}", "listen_addresses=127.0.0.1", "max_connections=200", "shared_buffers=64MB"]
        options += [] if durable else ["fsync=off", "full_page_writes=off"]
        options += ["autovacuum_naptime=5s", *settings]
        command = [str(programs / "postgres"), "-D", f"{name}/data", "-k", name]
        command += [word for option in options for word in ("-c", option)]

        def ping() -> None:
            psycopg.connect(host=name, port=port, user="tenure", dbname="postgres", connect_timeout=2).close()

        database = Database("postgresql", name, command, ping, f"postgresql://tenure@127.0.0.1:{port}/postgres")
        try:
            database.start()
            yield database
        finally:
            database.stop()


@contextmanager
def pgbouncer(program: str, database: Database) -> Iterator[Database]:
    """Run a pooler before PostgreSQL that lends its few servers by the transaction."""
    with directory() as name:
        port = free_port()
        given = sqlalchemy.make_url(database.url)
        pathlib.Path(name, "users").write_text('"tenure" ""\n')
        pathlib.Path(name, "ini").write_text(
            f"[databases]\npostgres = host=127.0.0.1 port={given.port} dbname=postgres user=tenure\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"auth_file = {name}/users\npool_mode = transaction\ndefault_pool_size = 3\n"
        )

        def ping() -> None:
            psycopg.connect(host="127.0.0.1", port=port, user="tenure", dbname="postgres", connect_timeout=2).close()

        url = f"postgresql://tenure@127.0.0.1:{port}/postgres"
        pooler = Database("postgresql", name, [program, f"{name}/ini"], ping, url)
        try:
            pooler.start()
            yield pooler
        finally:
            pooler.stop(signal.SIGTERM)


@contextmanager
def mariadb(program: str, *, durable: bool = False, settings: Sequence[str] = ()) -> Iterator[Database]:
    """Run a fresh MariaDB, with one database."""
    with directory() as name:
        install = shutil.which("mariadb-install-db", path=PLACES)
        assert install is not None
        init = [install, "--no-defaults", f"--datadir={name}/data", "--skip-test-db"]
        init += ["--auth-root-authentication-method=normal"]
        prepared(init, name)
        socket = f"{name}/s"
        command = [program, "--no-defaults", f"--datadir={name}/data", f"--socket={socket}", f"--pid-file={name}/pid"]
        command += [f"--tmpdir={name}", "--skip-networking", "--innodb-buffer-pool-size=128M", "--max-connections=300"]
        command += [
            "--innodb-flush-log-at-trx-commit=1" if durable else "--innodb-flush-log-at-trx-commit=2",
            *settings,
        ]

        def ping() -> None:
            if not pathlib.Path(socket).exists():
                raise ConnectionRefusedError  # a failed attempt of the library would leak its socket
            pymysql.connect(unix_socket=socket, user="root").close()

        database = Database("mysql", name, command, ping, f"mysql://root@/tenure?unix_socket={socket}")
        try:
            database.start()
            with contextlib.closing(pymysql.connect(unix_socket=socket, user="root")) as connection:
                connection.cursor().execute("CREATE DATABASE tenure CHARACTER SET utf8mb4")
            yield database
        finally:
            database.stop()
