"""A reply that a pusher or a keeper loses in its thread changes nothing either (P1)."""

import asyncio

from tenure.queue import Renewal
from tenure.testing.contract.steps import drained, ids, job, pushed_and_claimed
from tests.contract.bridges import Bridge
from tests.contract.test_numbered_calls import DRIVERS, SCRIPT, bridge

__all__ = ["DRIVERS", "bridge"]


async def test_a_pusher_whose_reply_is_cut_makes_exactly_one_job(bridge: Bridge) -> None:
    pusher = bridge.shaky.pusher()
    try:
        await asyncio.to_thread(pusher.push, [job("warm", queue="warm")])
        fault = bridge.proxy.cut_next_reply(match=SCRIPT)
        answers = await asyncio.to_thread(pusher.push, [job("x"), job("y")])
        assert fault.happened
        assert [one.outcome for one in answers] == ["stored", "stored"]
        assert ids(await drained(bridge.direct, 2)) == ["x", "y"]
    finally:
        pusher.close()


async def test_a_keeper_whose_reply_is_cut_still_answers_or_tells(bridge: Bridge) -> None:
    lease = await pushed_and_claimed(bridge.shaky)
    keeper = bridge.shaky.keeper()
    try:
        assert await asyncio.to_thread(keeper.renew, [lease]) == [Renewal.HELD]
        fault = bridge.proxy.cut_next_reply(match=SCRIPT)
        assert await asyncio.to_thread(keeper.renew, [lease]) == [Renewal.HELD]
        assert fault.happened
    finally:
        keeper.close()
