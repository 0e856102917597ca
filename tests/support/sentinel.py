"""A primary, two replicas and three sentinels, which fail over within a few seconds."""

import os
import pathlib
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import redis

from tests.support import processes
from tests.support.ports import free_port
from tests.support.servers import Server, ServerFailed, redis_like, version
from tests.support.topologies import info, loopback, pairs, tell

NAME = "tenure"
QUORUM = 2
# A sentinel dials a new primary once in a ping period; one longer than `down-after` has it failed over again at once.
# And it promotes only a replica that it heard of within five ping periods, while it asks them every second.
HURRY = ["ping-period", "300", "info-period", "500", "publish-period", "500"]
DOWN_AFTER_MS = 500
DOWN_AFTER_UNHURRIED_MS = 1500
FAILOVER_TIMEOUT_MS = 3000
# Replicas are attached at run time: a server that comes back after a failover must not follow a dead address.
REPLICATION = ["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-timeout", "5"]


@dataclass(frozen=True)
class Sentinel:
    """One sentinel, a process like any other: `sentinel.process.pause()`, `.cont()`, `.kill9()`."""

    port: int
    process: processes.Child

    @property
    def running(self) -> bool:
        return self.process.exit_code is None

    def names(self) -> int | None:
        """Return the port of the primary as it sees it, or None when it does not answer."""
        try:
            address = tell(loopback(self.port), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME, timeout=0.5)
        except redis.RedisError:
            return None
        return int(address[1]) if address else None

    def sees_all(self) -> bool:
        """Tell whether it knows both other sentinels and two replicas that are in step with the primary."""
        try:
            view = pairs(tell(loopback(self.port), "SENTINEL", "MASTER", NAME, timeout=1))
            replicas = [pairs(flat) for flat in tell(loopback(self.port), "SENTINEL", "SLAVES", NAME, timeout=1)]
        except redis.RedisError:
            return False
        healthy = [it for it in replicas if it["flags"] == "slave" and it["master-link-status"] == "ok"]
        return view["flags"] == "master" and view["num-other-sentinels"] == "2" and len(healthy) == 2

    def starts_failover(self) -> bool:
        """Ask it for a failover; False while it finds no replica fit for it, or is busy with the last one."""
        try:
            tell(loopback(self.port), "SENTINEL", "FAILOVER", NAME)
        except redis.ResponseError as error:
            if str(error).startswith(("NOGOODSLAVE", "INPROG")):
                return False
            raise
        return True


class Sentinels:
    """A watched group of servers.

    Waiting blocks: from asynchronous code wait in a thread. Start servers from the main thread only, because on
    Linux a server dies with the thread that started it.
    """

    master_name = NAME

    def __init__(self, servers: list[Server], sentinels: list[Sentinel]) -> None:
        self.servers = servers
        self.sentinels = sentinels
        self._before = servers[0]
        self._asked = False

    @property
    def sentinel_ports(self) -> list[int]:
        return [sentinel.port for sentinel in self.sentinels]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The sentinels, as a client is told of them."""
        return [("127.0.0.1", port) for port in self.sentinel_ports]

    def primary(self) -> Server:
        """Return the server that the first sentinel to answer names as the primary."""
        return self._at(next(port for sentinel in self.sentinels if (port := sentinel.names()) is not None))

    def replicas(self) -> list[Server]:
        """Return the other servers that run."""
        primary = self.primary()
        return [server for server in self.servers if server.running and server is not primary]

    def stop_primary(self) -> Server:
        """End the primary in order; return it."""
        self._before = self.primary()
        self._before.stop()
        return self._before

    def pause_primary(self) -> Server:
        """SIGSTOP the primary; return it. After `cont()` it takes writes until a sentinel demotes it."""
        self._before = self.primary()
        self._before.pause()
        return self._before

    def kill9_primary(self) -> Server:
        """SIGKILL the primary; return it. After `start()` it takes writes until a sentinel demotes it."""
        self._before = self.primary()
        self._before.kill9()
        return self._before

    def failover(self) -> Server:
        """Begin a planned failover without waiting for its end; return the primary that steps down."""
        self._before = self.primary()
        self._ask()
        return self._before

    def _ask(self) -> None:
        processes.eventually(self.sentinels[0].starts_failover, 15, what="a sentinel finds a replica to promote")
        self._asked = True

    def wait_failover(self, timeout: float = 20) -> Server:
        """Return the new primary, when every running sentinel names it and it takes writes."""
        for _ in range(2 if self._asked else 0):
            try:
                return self._wait_failover(timeout / 2)
            except AssertionError:
                # One that was asked for and given up, on a slow machine, is not begun again by itself.
                self._ask()
        return self._wait_failover(timeout)

    def _wait_failover(self, timeout: float) -> Server:

        def moved() -> list[Server]:
            named = {sentinel.names() for sentinel in self.sentinels if sentinel.running}
            if len(named) != 1 or (port := named.pop()) in {None, self._before.port}:
                return []
            return [self._at(port)] if role(self._at(port)) == "master" else []

        (self._before,) = processes.eventually(moved, timeout, what="the sentinels name another primary")
        self._asked = False
        return self._before

    def wait_following(self, server: Server, timeout: float = 30) -> None:
        """Return when a server that came back follows the primary and has its data."""
        processes.eventually(lambda: in_step(server), timeout, what=f"port {server.port} follows the primary")

    def wait_synced(self, timeout: float = 10) -> None:
        """Return when every running replica has all that the primary has written until now."""
        offset = info(self.primary(), "replication")["master_repl_offset"]
        for server in self.replicas():
            processes.eventually(partial(reached, server, offset), timeout, what="a replica has caught up")

    def _at(self, port: int | None) -> Server:
        return next(server for server in self.servers if server.port == port)


def role(server: Server) -> str | None:
    """Return master or slave, or None when the server does not answer."""
    try:
        return str(tell(server, "ROLE", timeout=0.5)[0])
    except redis.RedisError:
        return None


def in_step(server: Server) -> bool:
    """Tell whether a server follows a primary that it has copied in full."""
    try:
        return info(server, "replication").get("master_link_status") == "up"
    except redis.RedisError:
        return False


def reached(replica: Server, offset: int) -> bool:
    """Tell whether a replica has as much of the primary's history as this."""
    return int(info(replica, "replication").get("slave_repl_offset", -1)) >= offset


@contextmanager
def sentinels(binary: str | os.PathLike[str]) -> Iterator[Sentinels]:
    """Run the group for the length of the block; it begins when all sentinels see all (about 3 s)."""
    with ExitStack() as stack:
        servers = [stack.enter_context(redis_like(binary, extra_args=REPLICATION, tcp=True)) for _ in range(3)]
        primary = servers[0]
        for replica in servers[1:]:
            tell(replica, "REPLICAOF", "127.0.0.1", str(primary.port))
        for replica in servers[1:]:
            processes.eventually(partial(in_step, replica), 15, what="a replica has its copy")
        assert primary.port is not None
        group = Sentinels(servers, [stack.enter_context(_sentinel(binary, primary.port)) for _ in range(3)])
        for sentinel in group.sentinels:
            processes.eventually(sentinel.sees_all, 20, what=f"the sentinel at port {sentinel.port} sees all")
        yield group


@contextmanager
def _sentinel(binary: str | os.PathLike[str], primary: int) -> Iterator[Sentinel]:
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as directory:
        for attempt in range(5):
            port = free_port()
            with _spawned(binary, directory, port, primary) as process:
                processes.eventually(partial(_decided, process, port), 10, what="the sentinel answers or gives up")
                if process.exit_code is None:
                    if hurried(binary):
                        tell(loopback(port), "SENTINEL", "DEBUG", *HURRY)
                    yield Sentinel(port, process)
                    return
                if attempt == 4 or "ddress already in use" not in process.output:
                    raise ServerFailed(process.output[-2000:])


@contextmanager
def _spawned(binary: str | os.PathLike[str], directory: str, port: int, primary: int) -> Iterator[processes.Child]:
    # A sentinel writes what it learns into its configuration.
    path = pathlib.Path(directory, "sentinel.conf")
    lines = [
        f"port {port}",
        "bind 127.0.0.1",
        f"dir {directory}",
        f"sentinel monitor {NAME} 127.0.0.1 {primary} {QUORUM}",
    ]
    down_after = DOWN_AFTER_MS if hurried(binary) else DOWN_AFTER_UNHURRIED_MS
    lines += [f"sentinel down-after-milliseconds {NAME} {down_after}"]
    lines += [f"sentinel failover-timeout {NAME} {FAILOVER_TIMEOUT_MS}", f"sentinel parallel-syncs {NAME} 2"]
    path.write_text("\n".join(lines) + "\n")
    with processes.spawn([binary, path, "--sentinel"]) as process:
        yield process


def hurried(binary: str | os.PathLike[str]) -> bool:
    """Tell whether a sentinel's pace can be set: Redis 6.2 pings every second, whatever it is told."""
    return version(os.fspath(binary)) >= (7,)


def _decided(process: processes.Child, port: int) -> bool:
    if process.exit_code is not None:
        return True
    try:
        return bool(tell(loopback(port), "PING", timeout=1))
    except redis.RedisError:
        return False
