"""Pushes of a durability class, a replica that can be cut off, and a disk that can be slow."""

import pathlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.drivers.redis.durability import Assurance
from tenure.errors import DurabilityNotReached
from tenure.queue import Push, Pushed
from tests.redis.conftest import BINARIES
from tests.support import processes
from tests.support.absent import not_proven
from tests.support.proxy import Proxy
from tests.support.servers import Server, redis_like
from tests.support.topologies import info, tell

SOON = Assurance(within=0.3)
PATIENT = Assurance(within=10)
QUICKLY = ("--repl-ping-replica-period", "1", "--repl-diskless-sync-delay", "0")


def binary_of(name: str) -> str:
    found = BINARIES[name]()
    if found is None:
        not_proven(name, "see tests/conftest.py")
    return found


def job(job_id: str, durability: int = 3, name: str = "q") -> Push:
    return Push(queue=name, id=job_id, envelope=b'{"v":1}', durability=durability)


def problem(outcome: Pushed) -> str:
    assert isinstance(outcome.error, DurabilityNotReached)
    assert outcome.id in outcome.error.ids
    return outcome.error.problem


@contextmanager
def replica(binary: str, primary: Server) -> Iterator[tuple[Server, Proxy]]:
    with redis_like(binary, tcp=True) as follower, Proxy(primary.socket, tcp=True) as proxy:
        # The first copy comes straight from the primary: it is a file, and the proxy carries commands. The stream that
        # follows is taken up again through the proxy.
        tell(follower, "REPLICAOF", "127.0.0.1", str(primary.port))
        processes.eventually(lambda: in_step(primary, follower), what="the replica has its first copy")
        tell(follower, "REPLICAOF", "127.0.0.1", str(proxy.port))
        processes.eventually(lambda: proxy.connections == 1 and in_step(primary, follower), what="it follows again")
        assert info(primary, "stats")["sync_partial_ok"] == 1
        yield follower, proxy
        follower.kill9()  # told to stop, it would first wait for the primary that it has lost


def in_step(primary: Server, follower: Server) -> bool:
    seen = info(primary, "replication")
    return (
        info(follower, "replication").get("master_link_status") == "up"
        and seen["connected_slaves"] == 1
        and seen["slave0"]["state"] == "online"
    )


def logged(server: Server) -> bytes:
    """Return the append-only file, in however many pieces it lies."""
    return b"".join(path.read_bytes() for path in pathlib.Path(server.directory).rglob("*append*") if path.is_file())


@contextmanager
def slow_disk(server: Server, seconds: float) -> Iterator[None]:
    """Each forcing of the server's data to its disk takes so long."""
    strace = shutil.which("strace")
    if strace is None:
        not_proven("strace", "apt-get install strace")
    inject = f"fdatasync:delay_enter={round(seconds * 1_000_000)}"
    command = [strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", f"inject={inject}"]
    with subprocess.Popen([*command, "-p", str(server.pid)]) as tracer:
        processes.eventually(lambda: traced(server), what="the server is traced")
        try:
            yield
        finally:
            server.kill9()
            tracer.wait(10)


def traced(server: Server) -> bool:
    status = pathlib.Path("/proc", str(server.pid), "task")
    return all("TracerPid:\t0\n" not in (task / "status").read_text() for task in status.iterdir())


def forcing(server: Server) -> bool:
    """Tell whether a forcing is under way, so that the server keeps what comes now to itself."""
    return bool(info(server, "persistence")["aof_pending_bio_fsync"])
