"""Starts contenders: child processes where the store can be opened by another one, threads where it cannot."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from tenure.queue import Queue
from tenure.testing.contending.acts import perform
from tenure.testing.contending.talk import Report, Talk
from tenure.testing.contract.store import Opener, StoreUnderTest

PATIENCE = 40.0
"""Seconds within which a contender must report; a start on a busy machine is among them."""


class Contender(Protocol):
    """Somebody else who works on the store."""

    async def say(self, order: Mapping[str, Any]) -> None:
        """Give an order."""

    async def hear(self) -> Report:
        """Return the next report; fail when the contender ends or the time is over before."""
        ...

    async def kill(self) -> None:
        """End it in the middle of whatever it does, without a chance to tidy up."""


class ProcessContender:
    """A contender in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    async def say(self, order: Mapping[str, Any]) -> None:
        """Give an order."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()

    async def hear(self) -> Report:
        """Return the next report."""
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        assert line, f"a contender ended with {await self._process.wait()}; its errors are on standard error"
        report: Report = json.loads(line)
        return report

    async def kill(self) -> None:
        """SIGKILL it."""
        self._process.kill()
        await self._process.wait()

    async def close(self) -> None:
        """End it by ending its input."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            await self.kill()


class ThreadContender:
    """A contender in a thread with an event loop of its own, on the same driver."""

    def __init__(self, queue: Queue, act: str, params: Mapping[str, Any]) -> None:
        self._queue = queue
        self._act = act
        self._params = params
        self._home = asyncio.get_running_loop()
        self._reports: asyncio.Queue[str] = asyncio.Queue()
        self._started = asyncio.Event()
        self._thread = asyncio.create_task(asyncio.to_thread(asyncio.run, self._life()))

    async def _life(self) -> None:
        self._talk = Talk(lambda line: self._at_home(self._reports.put_nowait, line))
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(perform(self._act, self._queue, self._params, self._talk))
        self._at_home(self._started.set)
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()

    def _at_home(self, what: Any, *args: Any) -> None:
        self._home.call_soon_threadsafe(what, *args)

    async def say(self, order: Mapping[str, Any]) -> None:
        """Give an order."""
        await self._started.wait()
        self._talk.take(json.dumps(order))

    async def hear(self) -> Report:
        """Return the next report."""
        getting = asyncio.ensure_future(self._reports.get())
        await asyncio.wait([getting, self._thread], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if not getting.done() and self._thread.done():
            self._thread.result()
            await asyncio.sleep(0)  # its last report may still be on its way
        assert getting.done(), "a contender did not report in time"
        report: Report = json.loads(getting.result())
        return report

    async def kill(self) -> None:
        """Stop it where it stands. A lease that it holds stays held, as after the death of a process."""
        await self.close()

    async def close(self) -> None:
        """End it."""
        await self._started.wait()
        with contextlib.suppress(RuntimeError):  # its loop is closed already: it has ended
            self._loop.call_soon_threadsafe(self._task.cancel)
        await asyncio.wait([self._thread])


async def start(store: StoreUnderTest, act: str, params: Mapping[str, Any]) -> ProcessContender | ThreadContender:
    """Start one contender."""
    if store.opener is None:
        return ThreadContender(store.another(), act, params)
    return await spawn(store.opener, act, params)


async def spawn(opener: Opener, act: str, params: Mapping[str, Any]) -> ProcessContender:
    """Start one contending process, which finds the same modules as this one."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenure.testing.contending"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        limit=2**26,
    )
    contender = ProcessContender(process)
    await contender.say({"factory": opener.factory, "args": opener.args, "act": act, "params": params})
    return contender


@asynccontextmanager
async def contenders(
    store: StoreUnderTest, act: str, params: Sequence[Mapping[str, Any]]
) -> AsyncIterator[Sequence[Contender]]:
    """Start one contender for each entry of ``params`` and let them go all at once; they end with the block."""
    started: list[ProcessContender | ThreadContender] = []
    try:
        started.extend(await asyncio.gather(*(start(store, act, one) for one in params)))
        for contender in started:
            assert await contender.hear() == {"ready": True}
        for contender in started:
            await contender.say({"go": True})
        yield started
    finally:
        await asyncio.gather(*(contender.close() for contender in started))
