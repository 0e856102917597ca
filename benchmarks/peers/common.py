"""What the scripts of all libraries share: their verbs on the command line, and the bodies of the jobs.

    python -m benchmarks.peers.NAME VERB [NUMBER]

``prepare``, ``worker``, ``push_many``, ``push_awaited``, ``push_gathered``, ``push_blocking``, ``push_slow`` and
``push_timed`` are the verbs; those that push N jobs print how many seconds they took. ``push_timed`` pushes a job for
each line of its input.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

from benchmarks.record import PATH_KEY, Recorder

URL = os.environ["PEER_URL"]
QUEUE = os.environ["PEER_QUEUE"]
"""A name that no other run uses."""
VARIANT = os.environ.get("PEER_VARIANT", "")
CRASH = bool(os.environ.get("PEER_CRASH"))
"""Whether the worker is going to be killed: the library's time-outs are then set as short as they reasonably are."""
AT_ONCE = 50
SLOW_SECONDS = 0.05

recorder = Recorder(os.environ.get(PATH_KEY, os.devnull))


def noop() -> None:
    recorder.write(0.0)


def timed(sent: float) -> None:
    recorder.write(sent)


def slow(number: int) -> None:
    recorder.began(number)
    time.sleep(SLOW_SECONDS)
    recorder.ended(number)


async def async_slow(number: int) -> None:
    recorder.began(number)
    await asyncio.sleep(SLOW_SECONDS)
    recorder.ended(number)


BODIES = {"noop": noop, "timed": timed, "slow": slow}


class Peer:
    """How a library pushes and works. A library without the one kind of push leaves those methods as they are."""

    def prepare(self) -> None:
        """Make what must be there before anything else: tables."""

    def work(self, concurrency: int) -> None:
        """Run a worker until it is ended."""
        raise NotImplementedError

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Keep the blocking producer connected for the length of the block."""
        yield

    def push(self, job: str, *args: Any) -> None:
        """Push a job from plain code."""
        raise NotImplementedError

    def push_all(self, count: int) -> None:
        """Push no-op jobs by the library's call for many."""
        raise NotImplementedError

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Keep the asynchronous producer connected for the length of the block."""
        yield

    async def apush(self, job: str, *args: Any) -> None:
        """Push a job from a coroutine."""
        raise NotImplementedError

    async def apush_all(self, count: int) -> None:
        """Push no-op jobs by the library's asynchronous call for many."""
        raise NotImplementedError


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on the fastest loop that the library's environment has."""
    try:
        import uvloop  # noqa: PLC0415 - an environment may be without it
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def parts(count: int, size: int = 1000) -> Iterator[int]:
    """Cut a number of jobs into calls of a size that libraries take."""
    for begin in range(0, count, size):
        yield min(size, count - begin)


class Verbs:
    """The verbs, by the pushes that a library has."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def push_many(self, count: int) -> float:
        if self._has("apush_all"):
            return self._awaited(lambda: self._peer.apush_all(count))
        if self._has("push_all"):
            return self._blocking(lambda: self._peer.push_all(count))
        # There is no call for many: the fastest way is what an application would write.
        return self.push_gathered(count) if self._has("apush") else self.push_blocking(count)

    def push_awaited(self, count: int) -> float:
        async def body() -> None:
            for _ in range(count):
                await self._peer.apush("noop")

        return self._awaited(body)

    def push_gathered(self, count: int) -> float:
        async def one_after_the_other(number: int) -> None:
            for _ in range(number):
                await self._peer.apush("noop")

        async def body() -> None:
            shares = [count // AT_ONCE + (place < count % AT_ONCE) for place in range(AT_ONCE)]
            await asyncio.gather(*(one_after_the_other(share) for share in shares))

        return self._awaited(body)

    def push_blocking(self, count: int) -> float:
        def body() -> None:
            for _ in range(count):
                self._peer.push("noop")

        return self._blocking(body)

    def push_slow(self, count: int) -> float:
        async def awaited() -> None:
            for number in range(count):
                await self._peer.apush("slow", number)

        def blocking() -> None:
            for number in range(count):
                self._peer.push("slow", number)

        return self._awaited(awaited) if self._has("apush") else self._blocking(blocking)

    def push_timed(self, _: int) -> float:
        async def awaited() -> None:
            loop = asyncio.get_running_loop()
            while await loop.run_in_executor(None, sys.stdin.readline):
                await self._peer.apush("timed", time.time())
                print(flush=True)

        def blocking() -> None:
            while sys.stdin.readline():
                self._peer.push("timed", time.time())
                print(flush=True)

        return self._awaited(awaited) if self._has("apush") else self._blocking(blocking)

    def _has(self, name: str) -> bool:
        return getattr(type(self._peer), name) is not getattr(Peer, name)

    def _blocking(self, body: Any) -> float:
        with self._peer.opened():
            begin = time.perf_counter()
            body()
            return time.perf_counter() - begin

    def _awaited(self, body: Any) -> float:
        async def within() -> float:
            async with self._peer.connected():
                begin = time.perf_counter()
                await body()
                return time.perf_counter() - begin

        seconds: float = run(within())
        return seconds


def main(peer: Peer) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb")
    parser.add_argument("number", type=int, nargs="?", default=0)
    arguments = parser.parse_args()
    if arguments.verb == "prepare":
        peer.prepare()
    elif arguments.verb == "worker":
        peer.work(arguments.number)
    else:
        print(getattr(Verbs(peer), arguments.verb)(arguments.number), flush=True)
