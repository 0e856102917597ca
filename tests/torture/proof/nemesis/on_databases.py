"""Faults of databases, and of the way to them."""

import contextlib
import os
import pathlib
import signal
import sqlite3
from collections.abc import Iterator
from functools import partial

from sqlalchemy import text

from tests.databases.support import Place as DatabasePlace
from tests.torture.proof.nemesis.act import Act
from tests.torture.proof.recording import now
from tests.torture.proof.stage import Proof, Stage

CUTS = 3

# ------------------------------------------------------------------------------------------------------------- SQLite


@contextlib.contextmanager
def connected(stage: Stage) -> Iterator[sqlite3.Connection]:
    assert stage.place.file is not None
    with contextlib.closing(sqlite3.connect(stage.place.file, timeout=20, isolation_level=None)) as connection:
        yield connection


def locked(mode: str, stage: Stage, proof: Proof) -> None:
    """Another program holds the file."""
    with connected(stage) as connection:
        connection.execute(f"BEGIN {mode}")
        proof.shown(f"another connection held the file ({mode})")
        stage.last()
        connection.execute("ROLLBACK")


def long_reader(stage: Stage, proof: Proof) -> None:
    """A read transaction stays open, so that the log can not be taken over."""
    with connected(stage) as connection:
        connection.execute("BEGIN")
        (seen,) = connection.execute("SELECT count(*) FROM proof_audit").fetchone()
        stage.last()
        (again,) = connection.execute("SELECT count(*) FROM proof_audit").fetchone()
        proof.shown("a reader saw one moment all the while" if seen == again else "")
        connection.execute("COMMIT")


def maintained(statement: str, stage: Stage, proof: Proof) -> None:
    """An operator's statement, again and again."""
    done = 0
    with connected(stage) as connection:
        for _ in range(5):
            connection.execute(statement).fetchall()
            done += 1
            stage.last(stage.hold / 5)
    proof.shown(f"{statement} ran {done} times")


def slow_disk(stage: Stage, proof: Proof) -> None:
    """The file is held again and again, for a moment each."""
    with connected(stage) as connection:
        for _ in range(10):
            connection.execute("BEGIN IMMEDIATE")
            stage.last(stage.hold / 20)
            connection.execute("COMMIT")
            stage.last(stage.hold / 20)
    proof.shown("the file was held ten times")


def full_disk(stage: Stage, proof: Proof) -> None:
    """The processes may write no more: their files have a size limit that is reached."""
    assert stage.place.file is not None
    victims = [one.child.pid for one in [*stage.workers, *stage.pushers]]
    size = max(stage.place.file.stat().st_size, wal(stage.place.file))
    before = {pid: limit(pid, size // 2) for pid in victims}
    began = now()
    stage.last()
    refused = stage.failures(began)
    proof.shown(f"{refused} pushes failed, no file could grow past byte {size // 2}" if refused else "")
    for pid, earlier in before.items():
        with contextlib.suppress(ProcessLookupError):
            restore(pid, earlier)


def wal(file: pathlib.Path) -> int:
    log = file.with_name(file.name + "-wal")
    return log.stat().st_size if log.exists() else 0


def limit(pid: int, size: int) -> tuple[int, int]:
    import resource  # noqa: PLC0415 - not on every platform

    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    return before


def restore(pid: int, before: tuple[int, int]) -> None:
    import resource  # noqa: PLC0415

    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


SQLITE = [
    Act("file locked", "database", partial(locked, "IMMEDIATE")),
    Act("file locked alone", "database", partial(locked, "EXCLUSIVE")),
    Act("long reader", "database", long_reader),
    Act("checkpoints", "database", partial(maintained, "PRAGMA wal_checkpoint(TRUNCATE)")),
    Act("analyzed", "database", partial(maintained, "ANALYZE")),
    Act("vacuumed", "database", partial(maintained, "VACUUM")),
    Act("integrity checks", "database", partial(maintained, "PRAGMA integrity_check")),
    Act("slow disk", "database", slow_disk),
    Act("disk full", "database", full_disk),
]

# --------------------------------------------------------------------------------------------------------- PostgreSQL


def place(stage: Stage) -> DatabasePlace:
    assert stage.place.database is not None
    return stage.place.database


def sessions_ended(stage: Stage, proof: Proof) -> None:
    ended = 0
    for _ in range(3):
        ended += place(stage).kill_sessions()
        stage.last(stage.hold / 3)
    proof.shown(f"{ended} sessions were ended" if ended else "", ended)


def restarted(stage: Stage, proof: Proof) -> None:
    before = place(stage).database.pid
    place(stage).database.stop()
    stage.last()
    place(stage).database.start()
    proof.shown("another process serves now" if place(stage).database.pid != before else "")


def crashed(stage: Stage, proof: Proof) -> None:
    place(stage).database.kill9()
    stage.last()
    place(stage).database.start()
    proof.shown("the server was killed, and recovered from its log")


def backend_killed(stage: Stage, proof: Proof) -> None:
    """SIGKILL to one session's process: the server resets all sessions."""
    (pid, *_), *_ = place(stage).ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'tenure' LIMIT 1")
    os.kill(int(pid), signal.SIGKILL)
    proof.shown(f"the process of one session, {pid}, was killed", 1)
    stage.last()


def frozen(stage: Stage, proof: Proof) -> None:
    place(stage).database.pause()
    proof.shown("the server and its children were stopped")
    stage.last(0.8)
    place(stage).database.cont()


def cut(match: bytes, where: str, stage: Stage, proof: Proof) -> None:
    assert stage.place.wire is not None
    for _ in range(CUTS):
        armed = stage.place.wire.cut(match, "reply" if where == "reply" else "request")
        armed.wait(20)
    proof.shown(f"{CUTS} were cut", CUTS)


def late(stage: Stage, proof: Proof) -> None:
    """The client is cut off, and the server gets the COMMIT later."""
    assert stage.place.wire is not None
    for _ in range(CUTS):
        stage.place.wire.cut(b"COMMIT", "late", 0.3).wait(20)
    proof.shown(f"{CUTS} arrived late", CUTS)


def held(statement: str, stage: Stage, proof: Proof) -> None:
    """Another session holds locks on what the drivers work with."""
    engine = place(stage).database.engine()
    with engine.connect() as connection, connection.begin():
        connection.execute(text(statement))
        proof.shown(f"another session held: {statement}")
        stage.last()


def read_only(stage: Stage, proof: Proof) -> None:
    alter(stage, "ALTER SYSTEM SET default_transaction_read_only = on")
    place(stage).kill_sessions()
    proof.shown("new sessions were read only")
    stage.last()
    alter(stage, "ALTER SYSTEM RESET default_transaction_read_only", "SET default_transaction_read_only = off")
    place(stage).kill_sessions()


def alter(stage: Stage, statement: str, first: str = "SELECT 1") -> None:
    """Change a setting of the server, outside of any transaction."""
    engine = place(stage).database.engine().execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for one in (first, statement, "SELECT pg_reload_conf()"):
            connection.execute(text(one))


def vacuumed(statement: str, stage: Stage, proof: Proof) -> None:
    alter(stage, statement)
    proof.shown(f"{statement} ran")
    stage.last(0.1)


POSTGRESQL = [
    Act("sessions ended", "database", sessions_ended),
    Act("server restarted", "database", restarted),
    Act("server killed", "server", crashed),
    Act("a session's process killed", "database", backend_killed),
    Act("server frozen", "server", frozen),
    Act("COMMIT reply cut", "network", partial(cut, b"COMMIT", "reply")),
    Act("COMMIT request cut", "network", partial(cut, b"COMMIT", "request")),
    Act("COMMIT late", "network", late),
    Act("push reply cut", "network", partial(cut, b"INSERT INTO tenure_jobs", "reply")),
    Act("claim reply cut", "network", partial(cut, b"FOR UPDATE SKIP LOCKED", "reply")),
    Act("BEGIN reply cut", "network", partial(cut, b"BEGIN", "reply")),
    Act("jobs locked", "database", partial(held, "SELECT 1 FROM tenure_jobs FOR UPDATE")),
    Act("counters locked", "database", partial(held, "SELECT 1 FROM tenure_counters FOR UPDATE")),
    Act("table locked", "database", partial(held, "LOCK TABLE tenure_jobs IN ACCESS EXCLUSIVE MODE")),
    Act("read only", "server", read_only),
    Act("vacuumed in full", "database", partial(vacuumed, "VACUUM FULL tenure_jobs")),
    Act("indexes made anew", "database", partial(vacuumed, "REINDEX TABLE CONCURRENTLY tenure_jobs")),
]
