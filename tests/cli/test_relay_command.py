"""`tenure relay`, and what waits for it in `tenure status` and `tenure metrics`."""

import json

import pytest
import sqlalchemy

from tenure import Tenure
from tests.cli.conftest import Program
from tests.support.databases import Database
from tests.support.processes import eventually
from tests.support.servers import Server


@pytest.fixture
def waiting(tenure: Program, valkey: Server, namespace: str) -> int:
    """Jobs for Redis that wait in a file's outbox."""
    outbox = f"sqlite:///{tenure.directory / 'business.sqlite'}"
    tenure.env |= {"TENURE_URL": valkey.url, "TENURE_OUTBOX_URL": outbox, "QUEUE_NAMESPACE": namespace}
    assert tenure("relay", "--once").returncode == 0  # makes the tables
    push(valkey.url, outbox, namespace)
    return 3


def greet(name: str) -> str:
    return name


def push(url: str, outbox: str, namespace: str) -> None:
    app = Tenure(url, namespace=namespace, outbox=outbox)
    app.job(name="greet")(greet)
    scheme, _, rest = outbox.partition("://")
    library = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}.get(scheme, scheme)
    engine = sqlalchemy.create_engine(f"{library}://{rest}")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("SELECT 1"))
        calls = [app.call("greet", [name]).options(queue=name[0]) for name in ("ana", "anton", "ben")]
        app.push_many_sync(calls, transaction=connection)
    engine.dispose()
    app.close_sync()


def test_once_moves_what_waits(tenure: Program, waiting: int) -> None:
    told = json.loads(tenure("status", "--json").stdout)
    assert [(one["connection"], one["queue"], one["jobs"]) for one in told["outbox"]] == [
        ("default", "a", 2),
        ("default", "b", 1),
    ]
    assert "in the outbox" in tenure("status").stdout
    assert [one["queue"] for one in json.loads(tenure("status", "--json", "-q", "b").stdout)["outbox"]] == ["b"]
    told = json.loads(tenure("metrics", "--json").stdout)["metrics"]
    assert {one["labels"]["queue"]: one["value"] for one in told if one["name"] == "tenure_outbox_jobs"} == {
        "a": 2,
        "b": 1,
    }
    assert tenure("relay", "--once", "--connection", "other").stderr.endswith("moved 0 jobs\n")
    done = tenure("relay", "--once")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith(f"moved {waiting} jobs\n")
    told = json.loads(tenure("status", "--json").stdout)
    assert told["outbox"] == []
    assert [(one["queue"], one["ready"]) for one in told["queues"]] == [("a", 2), ("b", 1)]
    assert "in the outbox" not in tenure("status").stdout


def test_a_relay_ends_in_order(tenure: Program, waiting: int) -> None:
    def emptied() -> bool:
        return bool(json.loads(tenure("status", "--json").stdout)["outbox"] == [])

    with tenure.begin("relay") as child:
        child.wait_for_output("relay started", 20)
        eventually(emptied, 20, what="all is moved", every=0.1)
        child.popen.terminate()
        assert child.wait(10) == 0
        assert f"moved {waiting} jobs" in child.output


def test_what_is_wrong_is_told_in_one_line(tenure: Program, postgresql: Database) -> None:
    for options, env, code, said in (
        ((), {}, 2, "TENURE_OUTBOX_URL: is not set"),
        (("--database", "redis://127.0.0.1:1"), {}, 2, "must be a sqlite://"),
        ((), {"TENURE_OUTBOX_URL": "postgresql://u:hunter2@127.0.0.1:1/x"}, 4, "nothing listens there"),
        (("--database", f"{postgresql.url}?table_prefix=none_"), {}, 1, "`tenure migrate`"),
    ):
        done = tenure("relay", "--once", *options, env=env)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert "hunter2" not in done.stderr


def test_a_store_that_is_away_fails_what_was_to_be_moved_once(tenure: Program, waiting: int) -> None:
    done = tenure("relay", "--once", env={"TENURE_URL": "redis://127.0.0.1:1"})
    assert done.returncode == 4, done.stderr
    assert tenure("relay", "--once").stderr.endswith(f"moved {waiting} jobs\n")


def test_status_tells_the_queues_all_the_same(tenure: Program, postgresql: Database) -> None:
    away = tenure("status", "--json", env={"TENURE_OUTBOX_URL": "postgresql://u:hunter2@127.0.0.1:1/x"})
    assert (away.returncode, json.loads(away.stdout)) == (0, {"queues": []})
    assert "what waits in the outbox is not known" in away.stderr
    assert "hunter2" not in away.stderr
    other = tenure("status", "--json", env={"DATABASE_URL": f"{postgresql.url}?table_prefix=none_"})
    assert (other.returncode, json.loads(other.stdout), other.stderr) == (0, {"queues": []}, "")
    file = tenure("status", "--json", env={"DATABASE_URL": f"sqlite:///{tenure.directory / 'none.sqlite'}"})
    assert (file.returncode, json.loads(file.stdout)) == (0, {"queues": [], "outbox": []})
    assert not (tenure.directory / "none.sqlite").exists()
