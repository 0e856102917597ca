"""Slots, and leases that were claimed ahead of them."""

import asyncio
import time
from typing import Any

from tenure.worker.held import Held, HeldLeases, Stage
from tenure.worker.line import Line
from tests.worker.leases import lease
from tests.worker.support import for_a_while


class Runs:
    """A line whose jobs run until they are told to end."""

    def __init__(self, size: int) -> None:
        self.leases = HeldLeases()
        self.line = Line(size, self.leases)
        self.line.feeds(self.start)
        self.running: list[Held] = []

    def start(self, held: Held) -> bool:
        if held.name == "has no call":
            return False
        held.enter(Stage.RUNNING, time.monotonic())
        self.running.append(held)
        return True

    def claim(self, number: int, *, name: str = "") -> None:
        for _ in range(number):
            held = Held(lease(), time.monotonic())
            held.name = name
            self.leases.add(held)
            self.line.offer(held)

    def end(self, number: int = 1) -> None:
        for held in self.running[:number]:
            held.enter(Stage.SETTLING, time.monotonic())
            self.line.freed()
        del self.running[:number]

    def settle(self) -> None:
        for held in self.leases.snapshot():
            if held.stage is Stage.SETTLING:
                self.leases.remove(held)
        self.line.settled(1)


async def room(line: Line) -> int:
    """Ask as the claim loop does, until there is something to claim."""
    async with asyncio.timeout(2):
        while not (free := await line.wait_for_room()):
            pass
    return free


async def test_an_idle_line_has_room_for_its_size_and_nothing_ahead() -> None:
    assert await room(Runs(10).line) == 10


async def test_a_full_line_waits_for_a_slot() -> None:
    runs = Runs(4)
    runs.claim(4)
    waiting = asyncio.create_task(room(runs.line))
    await for_a_while(0.02)
    assert not waiting.done()
    runs.end()
    assert await waiting == 1


async def test_slots_that_become_free_together_are_claimed_for_together() -> None:
    runs = Runs(4)
    runs.claim(4)
    waiting = asyncio.create_task(room(runs.line))
    await asyncio.sleep(0)
    runs.end(3)
    assert await waiting >= 3


async def test_what_has_no_call_takes_no_slot() -> None:
    runs = Runs(2)
    runs.claim(5, name="has no call")
    assert runs.line.running == 0
    assert await room(runs.line) == 1  # three times the size may be held, outcomes on their way included


async def test_slow_jobs_are_not_claimed_ahead() -> None:
    runs = Runs(10)
    runs.claim(10)
    await for_a_while(0.1)
    runs.end(1)
    assert await room(runs.line) == 1


async def test_quick_jobs_are_claimed_ahead_up_to_the_concurrency() -> None:
    runs = Runs(10)
    deadline = time.monotonic() + 0.2
    most = 0
    while time.monotonic() < deadline:
        runs.claim(await room(runs.line))
        most = max(most, len(runs.leases))
        await asyncio.sleep(0)
        runs.end(10)
        runs.settle()
    assert 10 < most <= 30


async def test_a_lease_that_waits_too_long_is_given_up() -> None:
    runs = Runs(2)
    runs.claim(5)
    assert runs.line.give_up(1.0) == []
    await for_a_while(0.06)
    runs.claim(1)
    assert len(runs.line.give_up(0.05)) == 3
    assert len(runs.line.give_up()) == 1
    assert runs.line.running == 2


async def test_a_waiting_lease_gets_the_next_slot_and_none_when_the_line_is_closed() -> None:
    runs = Runs(1)
    runs.claim(3)
    assert len(runs.running) == 1
    runs.end()
    assert len(runs.running) == 1
    runs.line.close()
    runs.end()
    assert runs.running == []
    async with asyncio.timeout(1):
        await runs.line.empty()


async def test_outcomes_that_the_store_does_not_take_stop_the_claiming() -> None:
    runs = Runs(2)
    for _ in range(3):
        runs.claim(2)
        runs.end(2)
    waiting: asyncio.Task[Any] = asyncio.create_task(room(runs.line))
    await for_a_while(0.05)
    assert not waiting.done()
    runs.settle()
    assert await waiting > 0
