"""What the server keeps on its disk, and whether it can."""

from collections.abc import Iterator
from typing import Final

from tenure.drivers.redis.doctor.facts import Facts, note, serious, warning
from tenure.operating import Finding

WAITS_FOR_DISK: Final = (7, 2)
"""The first version with WAITAOF."""


def check(facts: Facts, durability: int) -> Iterator[Finding]:
    """Judge how much of what was accepted survives a crash of the server or of its host."""
    aof = facts.text("aof_enabled")
    if aof == "0":
        yield _without_log(facts, durability)
    if aof == "1":
        yield from _log(facts, durability)
    yield from _failures(facts, aof)


def _without_log(facts: Facts, durability: int) -> Finding:
    saves = facts.setting("save")
    remedy = "set appendonly yes (CONFIG SET appendonly yes takes effect at once), and write it into redis.conf"
    if saves == "":
        return serious(
            "persistence",
            "neither an append-only file nor snapshots are written",
            "a restart of the server loses every job",
            remedy,
        )
    found = "no append-only file is written, only snapshots now and then"
    risk = "a crash of the server loses every job that was pushed since the last snapshot"
    if durability == 2:
        return serious("persistence", found, f"{risk}, and pushes of durability 2 are refused", remedy)
    return warning("persistence", found, risk, remedy)


def _log(facts: Facts, durability: int) -> Iterator[Finding]:
    fsync = facts.setting("appendfsync")
    if fsync == "no":
        risk = "a power cut loses the jobs of the last half minute or so"
        remedy = "set appendfsync everysec"
        if durability == 2:
            yield serious("fsync", "appendfsync is no", f"{risk}, and durability 2 is never confirmed", remedy)
        else:
            yield warning("fsync", "appendfsync is no", risk, remedy)
    if fsync == "everysec" and durability == 1:
        yield note(
            "fsync",
            "appendfsync is everysec",
            "a power cut loses about the last second of accepted jobs, two when the disk is slow",
            "where that is too much, push with durability=2 or set appendfsync always",
        )
    if durability == 2 and facts.version and facts.version < WAITS_FOR_DISK and fsync in {"everysec", None}:
        yield serious(
            "fsync",
            f"the server is {facts.server}, without WAITAOF, and appendfsync is {fsync or 'not known'}",
            "pushes of durability 2 are refused",
            "set appendfsync always, or use Redis 7.2 or newer, or Valkey",
        )
    if facts.setting("no-appendfsync-on-rewrite") == "yes":
        say = serious if durability == 2 and fsync == "always" else warning
        yield say(
            "fsync",
            "no-appendfsync-on-rewrite is yes",
            "while the file is rewritten nothing is forced to the disk: a power cut then loses half a minute",
            "set no-appendfsync-on-rewrite no",
        )
    if facts.number("aof_delayed_fsync"):
        yield note(
            "disk",
            f"the disk was too slow {facts.number('aof_delayed_fsync')} times since the server started",
            "accepted jobs wait in memory meanwhile, and a crash of the server loses them",
            "give the append-only file a faster disk of its own",
        )


def _failures(facts: Facts, aof: str | None) -> Iterator[Finding]:
    if aof == "1" and facts.text("aof_last_write_status") == "err":
        yield serious(
            "disk",
            "the last write to the append-only file failed",
            "every push, claim and settlement is refused (MISCONF) until one succeeds",
            "make room on the server's disk, or mend it; the server's log names the error",
        )
    if aof == "1" and facts.text("aof_last_bgrewrite_status") == "err":
        yield warning(
            "disk",
            "the last rewrite of the append-only file failed",
            "the file grows until the disk is full",
            "make room on the disk and in memory (a rewrite forks); the server's log names the error",
        )
    if facts.text("rdb_last_bgsave_status") == "err":
        stops = facts.setting("stop-writes-on-bgsave-error") != "no" and facts.setting("save") != ""
        say = serious if stops else warning
        yield say(
            "disk",
            "the last snapshot failed",
            "every push, claim and settlement is refused (MISCONF) until one succeeds"
            if stops
            else "there is no fresh snapshot to restore from",
            "make room on the server's disk, or mend it; the server's log names the error",
        )
