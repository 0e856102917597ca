"""`tenure doctor`: findings for people and for programs, an exit code for scripts, and no secret in any of it."""

import json
import pathlib
import sqlite3

import pytest

from tenure.drivers.sql.sqlite import doctor, schema
from tenure.operating import Severity
from tests.cli.conftest import Program
from tests.support.absent import not_proven
from tests.support.servers import redis7_binary, redis_like
from tests.support.topologies import tell

CANARY = "hunter2-canary"


def redis7() -> str:
    found = redis7_binary()
    if found is None:
        not_proven("Redis 7", "apt-get install redis-server")
    return found


def test_nothing_serious_is_0_and_something_serious_is_1_with_risk_and_remedy(tenure: Program) -> None:
    with redis_like(redis7(), extra_args=["--maxmemory", "512mb"]) as server:
        env = {"TENURE_URL": server.url}
        done = tenure("doctor", env=env)
        assert done.returncode == 0, done.stdout
        assert done.stdout.splitlines()[-1] == "1 note"
        tell(server, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        done = tenure("doctor", env=env)
        assert done.returncode == 1
        first, risk, remedy, *_, last = done.stdout.splitlines()
        assert first == "serious: maxmemory-policy is allkeys-lru  [eviction]"
        assert risk.startswith("    risk:   whole queues")
        assert remedy.startswith("    remedy: set maxmemory-policy noeviction")
        assert last == "1 serious, 1 note"
        assert done.stderr == ""


def test_as_json_each_finding_is_an_object(tenure: Program) -> None:
    with redis_like(redis7(), extra_args=["--maxmemory", "512mb", "--appendfsync", "no"]) as server:
        done = tenure("doctor", "--json", "--url", server.url)
        assert done.returncode == 0
        [finding] = json.loads(done.stdout)["findings"]
        assert finding.keys() == {"severity", "check", "found", "risk", "remedy"}
        assert (finding["severity"], finding["check"]) == ("warning", "fsync")


def test_a_class_of_durability_can_be_asked_for(tenure: Program) -> None:
    with redis_like(redis7()) as server:
        done = tenure("doctor", "--durability", "3", "--url", server.url)
        assert done.returncode == 1
        assert "0 replicas are online" in done.stdout
        assert tenure("doctor", "--durability", "4", "--url", server.url).returncode == 2


def test_no_credential_is_shown(tenure: Program) -> None:
    with redis_like(redis7(), extra_args=["--requirepass", CANARY], tcp=True) as server:
        for password in (CANARY, f"{CANARY}-wrong"):
            url = server.tcp_url.replace("redis://", f"redis://:{password}@")
            for options in ((), ("--json",)):
                done = tenure("doctor", *options, env={"TENURE_URL": url})
                assert done.returncode == (1 if password != CANARY else 0), done.stdout + done.stderr
                assert CANARY not in done.stdout + done.stderr


def test_a_store_that_is_not_there_is_4_and_one_that_has_nothing_to_look_at_is_2(tenure: Program) -> None:
    done = tenure("doctor", "--url", f"redis://:{CANARY}@127.0.0.1:1")
    assert done.returncode == 4
    assert CANARY not in done.stderr
    assert tenure("doctor", "--url", "memory://").returncode == 2


# ------------------------------------------------------------------------------------------------------------- SQLite


def test_a_good_file_has_no_findings_and_a_missing_one_is_a_note(tenure: Program) -> None:
    done = tenure("doctor")
    assert done.returncode == 0
    assert done.stdout.startswith("note: there is no file")
    assert not (tenure.directory / "jobs.db").exists()
    tenure("status")
    done = tenure("doctor")
    assert (done.returncode, done.stdout) == (0, "nothing found\n")


def test_a_file_that_others_can_read_is_a_warning(tenure: Program) -> None:
    tenure("status")
    (tenure.directory / "jobs.db").chmod(0o644)
    done = tenure("doctor")
    assert done.returncode == 0
    assert "warning: other users of this host may use the file (mode 644)" in done.stdout


def test_a_damaged_file_and_one_that_is_no_database_are_serious(tenure: Program) -> None:
    tenure("push", "greet", '["Ana"]', "--app", "shop:app")
    path = tenure.directory / "jobs.db"
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    path.write_bytes(content)
    done = tenure("doctor")
    assert done.returncode == 1
    assert "[integrity]" in done.stdout
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    done = tenure("doctor")
    assert done.returncode == 1
    assert "[integrity]" in done.stdout


def test_the_file_of_another_program_and_one_of_a_newer_tenure_are_serious(tmp_path: pathlib.Path) -> None:
    for statement in ("CREATE TABLE theirs (x)", f"PRAGMA user_version = {schema.VERSION + 1}"):
        path = tmp_path / f"{len(statement)}.db"
        with sqlite3.connect(path) as connection:
            connection.execute(statement)
        connection.close()
        path.chmod(0o600)
        found = [finding for finding in doctor.examine(path) if finding.severity is Severity.SERIOUS]
        assert [finding.check for finding in found] == ["schema"]


def test_an_older_schema_and_another_journal_are_told(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "jobs.db"
    with sqlite3.connect(path) as connection:
        for statement in schema.FIRST:
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    path.chmod(0o600)
    found = doctor.examine(path)
    assert [(finding.check, finding.severity) for finding in found] == [
        ("journal", Severity.WARNING),
        ("schema", Severity.NOTE),
    ]


@pytest.mark.parametrize(("kind", "remote"), [("nfs4", True), ("fuse.sshfs", True), ("ext4", False)])
def test_a_network_file_system_is_serious(tmp_path: pathlib.Path, *, kind: str, remote: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 0:50 / {tmp_path} rw,relatime shared:1 - {kind} server:/export rw\n"
        "3 1 0:51 / /somewhere/else rw - nfs4 server:/other rw\n"
    )
    found = doctor.examine(tmp_path / "jobs.db", mounts)
    assert ("filesystem" in [finding.check for finding in found]) is remote


def test_the_file_system_of_this_host_is_told() -> None:
    assert doctor.file_system(pathlib.Path("/proc/self")) == "proc"
