"""`tenure health` and `app.health()`: ready or not and why, within a deadline, never an exception, never a secret."""

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from tenure import Tenure
from tenure.config import Settings
from tenure.health import Health
from tests.cli.conftest import Program
from tests.support import faults
from tests.support.absent import not_proven
from tests.support.proxy import Proxy
from tests.support.servers import Server, redis7_binary, redis_like
from tests.support.topologies import acl_server, tell

CANARY = "hunter2-canary"


@pytest.fixture
def own() -> Iterator[Server]:
    """A server of the test's own."""
    binary = redis7_binary()
    if binary is None:
        not_proven("Redis 7", "apt-get install redis-server")
    with redis_like(binary, tcp=True) as server:
        yield server


def app_on(url: str, namespace: str = "health") -> Tenure:
    return Tenure(url, namespace=namespace, settings=Settings.from_environ({}))


def asked(url: str, namespace: str = "health", timeout: float = 2.0) -> Health:
    """Ask once, as a probe does."""

    async def ask() -> Health:
        app = app_on(url, namespace)
        try:
            return await app.health(timeout=timeout)
        finally:
            await app.aclose()

    return asyncio.run(ask())


# W6
def test_ready_is_0_and_counts_what_waits(tenure: Program) -> None:
    done = tenure("health")
    assert (done.returncode, done.stdout) == (0, "ready, 0 waiting\n")
    tenure("push", "greet", '["Ana"]', "--app", "shop:app")
    tenure("push", "greet", '["Ben"]', "--app", "shop:app", "--delay", "60")
    tenure("push", "sleep", "[1]", "--app", "shop:app")
    done = tenure("health", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"ready": True, "waiting": 2, "cause": "", "reason": ""}
    assert tenure("health", "-q", "default,slow").stdout == "ready, 3 waiting\n"


def test_not_ready_is_1_and_says_why_without_a_secret(tenure: Program, valkey: Server) -> None:
    wrong = f"redis://:{CANARY}@127.0.0.1:{valkey.port}"
    for url, cause in ((f"redis://:{CANARY}@127.0.0.1:1", "unreachable"), (wrong, "refused"), (f"x://{CANARY}", "")):
        done, plain = (tenure("health", *options, env={"TENURE_URL": url}) for options in (("--json",), ()))
        assert (done.returncode, plain.returncode) == (1, 1)
        assert CANARY not in done.stdout + done.stderr + plain.stdout + plain.stderr
        assert "Traceback" not in done.stderr + plain.stderr
        assert plain.stdout.startswith("not ready: ")
        told = json.loads(done.stdout)
        assert told["ready"] is False
        assert told["waiting"] is None
        assert told["cause"] == (cause or "configuration")
        assert told["reason"]


def test_a_connection_that_is_not_configured_is_told_not_raised() -> None:
    app = app_on("memory://")
    found = app.health_sync("reports")
    assert (found.ready, found.cause) == (False, "configuration")
    assert "TENURE_REPORTS_URL" in found.reason
    found = app.health_sync(queues=["no such queue"])
    assert (found.ready, found.cause) == (False, "configuration")
    app.close_sync()


def test_memory_is_always_ready() -> None:
    app = app_on("memory://")
    assert app.health_sync() == Health(ready=True, waiting=0)
    app.close_sync()


def test_the_store_s_own_refusals_are_told(own: Server) -> None:
    with faults.busy(own):
        found = asked(own.url)
        assert (found.cause, found.reason.partition(":")[0]) == ("refused", "the store refuses calls (BUSY)")
    with faults.no_more_clients(own):
        # The server hangs up at once; whether its words arrive before the connection is seen to be closed is a race.
        assert asked(own.tcp_url).cause in {"unreachable", "unanswered"}
    tell(own, "SET", "{health:default}:jobs", "something else")
    assert "(WRONGTYPE)" in asked(own.url).reason
    # What only concerns writes is no matter of a read; `tenure doctor` looks for that.
    tell(own, "UNLINK", "{health:default}:jobs")
    assert asked(own.url).ready


def test_a_server_that_loads_its_data_is_not_an_empty_queue(own: Server) -> None:
    with faults.loading(own):
        found = asked(own.url)
    assert (found.ready, found.cause) == (False, "refused")
    assert "(LOADING)" in found.reason
    assert asked(own.url).ready


def test_a_user_without_the_rights_is_told(own: Server) -> None:
    with acl_server(own.binary, "~other:* +@all") as server:
        found = asked(server.unix_url)
        assert "(NOPERM)" in found.reason
        assert server.password not in repr(found)


def test_a_store_that_does_not_answer_costs_the_deadline_and_no_more(own: Server) -> None:
    with Proxy(own.socket) as proxy:
        proxy.blackhole(requests=True)
        begun = time.monotonic()
        found = asked(proxy.url, timeout=0.3)
        assert time.monotonic() - begun < 2
        assert found == Health(ready=False, cause="unanswered", reason="the store did not answer within 0.3 s")
        proxy.heal()
        assert asked(proxy.url).ready


async def test_an_application_asks_again_and_again_on_its_own_connections(own: Server) -> None:
    """Down, up, down: each is told as it is, over the connections that the application has."""
    app = app_on(own.url)
    assert (await app.health()).ready
    await asyncio.to_thread(own.stop)
    assert (await app.health()).cause == "unreachable"
    own.start()
    assert (await app.health()).ready
    own.pause()
    assert (await app.health(timeout=0.2)).cause == "unanswered"
    own.cont()
    assert (await app.health()).ready
    await app.aclose()
