"""A cluster of three masters on loopback, put together by hand, whose slots can be moved key by key."""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import redis
from redis.crc import key_slot

from tests.support import processes
from tests.support.ports import free_port
from tests.support.servers import Server, ServerFailed
from tests.support.topologies import tell

SLOTS = 16384
MASTERS = 3
BUS = 10_000


class StopHere(Exception):
    """Raised by the callback of a migration to leave the slot as it is, half-way."""


class Cluster:
    """The nodes of a cluster: masters first, then their replicas in the same order.

    Waiting blocks: from asynchronous code wait in a thread. Start nodes from the main thread only, because on Linux
    a server dies with the thread that started it.
    """

    def __init__(self, masters: Sequence[Server], replicas: Sequence[Server]) -> None:
        self.first_masters = list(masters)
        self.nodes = [*masters, *replicas]

    @property
    def url(self) -> str:
        """The address of one node that runs; a client finds the others through it."""
        return self._running()[0].tcp_url

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """All nodes, as a client is told of them."""
        return [("127.0.0.1", port_of(node)) for node in self.nodes]

    def slot_of(self, key: str) -> int:
        return int(key_slot(key.encode()))

    def node_of(self, key: str) -> Server:
        """Return the master that serves a key, as the first running node sees it."""
        return self.owner(self.slot_of(key))

    def owner(self, slot: int) -> Server:
        """Return the master that serves a slot, as the first running node sees it."""
        for first, last, master, *_ in tell(self._running()[0], "CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == master[1])
        raise AssertionError(f"nobody serves slot {slot}")

    def masters(self) -> list[Server]:
        """Return the running masters that serve slots, as the first running node sees them."""
        ports = {master[1] for _, _, master, *_ in tell(self._running()[0], "CLUSTER", "SLOTS")}
        return [node for node in self.nodes if node.port in ports and node.running]

    def another_than(self, node: Server) -> Server:
        """Return a master that is not this one: a target for its slots."""
        return next(master for master in self.masters() if master is not node)

    def migrate_slot(
        self, slot: int, target: Server, pause_between: Callable[[int], object] | None = None, *, timeout: float = 10
    ) -> int:
        """Move a slot to another master, key by key; return how many keys moved.

        `pause_between` is called with the number of keys moved so far: first with 0, when the slot is marked and
        nothing has moved, then after each key. When it raises `StopHere` the slot stays half-way until this is
        called again for the same target.
        """
        source = self.owner(slot)
        if source is target:
            return 0
        tell(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", node_id(source))
        tell(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", node_id(target))
        moved = 0
        try:
            while True:
                if pause_between is not None:
                    pause_between(moved)
                names = tell(source, "CLUSTER", "GETKEYSINSLOT", slot, 1)
                if not names:
                    break
                tell(source, "MIGRATE", "127.0.0.1", port_of(target), names[0], 0, 5000)
                moved += 1
        except StopHere:
            return moved
        # The new owner first: should the old one learn it before, nobody would serve the slot for a moment.
        for node in [target, source, *(node for node in self.masters() if node not in {target, source})]:
            tell(node, "CLUSTER", "SETSLOT", slot, "NODE", node_id(target))
        self.wait_owner(slot, target, timeout)
        return moved

    def wait_owner(self, slot: int, owner: Server, timeout: float = 10) -> None:
        """Return when every running node names this one for the slot."""

        def named() -> bool:
            return all(owner_port(node, slot) == owner.port for node in self._running())

        processes.eventually(named, timeout, what=f"all know the owner of slot {slot}")

    def kill9(self, node: Server) -> None:
        """SIGKILL a node; `start()` brings it back with its data and its place in the cluster."""
        node.kill9()

    def wait_ok(self, timeout: float = 20) -> None:
        """Return when every running node finds the cluster whole and all slots served."""
        for node in self._running():
            processes.eventually(partial(healthy, node), timeout, what=f"the node at port {node.port} is content")

    def wait_failed(self, timeout: float = 20) -> None:
        """Return when every running node knows that the cluster is not whole."""
        for node in self._running():
            processes.eventually(partial(shows, node, "cluster_state", "fail"), timeout, what="the cluster is down")

    def wait_promoted(self, lost: Server, slot: int, timeout: float = 20) -> Server:
        """Return the replica that took the slot over from a lost master, when all running nodes know it."""

        def another() -> list[Server]:
            ports = {owner_port(node, slot) for node in self._running()}
            return [node for node in self.nodes if {node.port} == ports and node is not lost]

        (promoted,) = processes.eventually(another, timeout, what="a replica takes over")
        self.wait_ok(timeout)
        return promoted

    def _running(self) -> list[Server]:
        return [node for node in self.nodes if node.running]


def port_of(node: Server) -> int:
    assert node.port is not None
    return node.port


def node_id(node: Server) -> str:
    return str(tell(node, "CLUSTER", "MYID"))


def state(node: Server) -> dict[str, str]:
    """Return CLUSTER INFO; an empty one when the node does not answer."""
    try:
        lines = tell(node, "CLUSTER", "INFO", timeout=1).splitlines()
    except redis.RedisError:
        return {}
    return dict(line.split(":", 1) for line in lines if ":" in line)


def shows(node: Server, field: str, value: str) -> bool:
    return state(node).get(field) == value


def healthy(node: Server) -> bool:
    return shows(node, "cluster_state", "ok") and shows(node, "cluster_slots_ok", str(SLOTS))


def owner_port(node: Server, slot: int) -> int | None:
    """Return the port of the master that a node names for a slot."""
    for first, last, master, *_ in tell(node, "CLUSTER", "SLOTS"):
        if first <= slot <= last:
            return int(master[1])
    return None


@contextmanager
def cluster(
    binary: str | os.PathLike[str],
    *,
    replicas: bool = False,
    node_timeout_ms: int = 1000,
    full_coverage: bool = True,
    extra_args: Sequence[str] = (),
) -> Iterator[Cluster]:
    """Run three masters, with `replicas` one replica each; it begins when all find it whole (2 to 4 s).

    Without `full_coverage` the other slots are served when a master is lost.
    """
    arguments = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout_ms)]
    arguments += ["--cluster-require-full-coverage", "yes" if full_coverage else "no"]
    arguments += ["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0", *extra_args]
    with ExitStack() as stack:
        nodes = [stack.enter_context(lone_node(binary, arguments)) for _ in range(MASTERS * (2 if replicas else 1))]
        built = Cluster(nodes[:MASTERS], nodes[MASTERS:])
        bounds = [SLOTS * number // MASTERS for number in range(MASTERS + 1)]
        for number, master in enumerate(built.first_masters):
            # Distinct epochs from the start spare the nodes a round of settling who is newer.
            tell(master, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            tell(master, "CLUSTER", "ADDSLOTS", *range(bounds[number], bounds[number + 1]))
        for node in nodes[1:]:
            tell(node, "CLUSTER", "MEET", "127.0.0.1", port_of(nodes[0]))
        for node in nodes:
            processes.eventually(partial(shows, node, "cluster_known_nodes", str(len(nodes))), 20, what="all have met")
        for master, replica in zip(built.first_masters, nodes[MASTERS:], strict=False):
            _attach(replica, master)
        built.wait_ok()
        yield built


def _attach(replica: Server, master: Server) -> None:
    def attached() -> bool:
        try:
            tell(replica, "CLUSTER", "REPLICATE", node_id(master))
        except redis.ResponseError as error:
            # Meeting is not yet a handshake done: the master is unknown for a moment.
            if "nknown node" in str(error):
                return False
            raise
        return True

    processes.eventually(attached, 20, what="the replica knows its master")
    processes.eventually(lambda: "connected" in tell(replica, "ROLE"), 20, what="the replica has its copy")


@contextmanager
def lone_node(binary: str | os.PathLike[str], arguments: Sequence[str]) -> Iterator[Server]:
    """Run a server on a port that has room for a bus beside it."""
    # Not under pytest's tmp_path: a unix socket's path has room for about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as directory:
        for attempt in range(5):
            server = Server(os.fspath(binary), directory, arguments, tcp=True)
            server.port = _port_with_bus()
            try:
                server.start()
            except ServerFailed:
                # Somebody took one of the two ports meanwhile, and what the server then chose has no room for a bus.
                if attempt == 4:
                    raise
                continue
            try:
                yield server
            finally:
                server.stop()
            return


def _port_with_bus() -> int:
    """Return a free port whose companion for the nodes' own talk, 10,000 above, exists and is free too."""
    for _ in range(200):
        port = free_port()
        if port + BUS > 65_535:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("127.0.0.1", port + BUS))
            except OSError:
                continue
            return port
    raise ServerFailed("no free port has a free companion 10,000 above it")
