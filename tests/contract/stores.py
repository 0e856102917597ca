"""A fresh store of each kind, as the contract suite takes it, closed and emptied at the end."""

import contextlib
import importlib
import pathlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import redis.asyncio

from tenure.drivers.memory import MemoryQueue
from tenure.queue import Queue
from tenure.testing.contract import Opener, StoreUnderTest
from tests.support.servers import Server


@asynccontextmanager
async def memory_store() -> AsyncIterator[StoreUnderTest]:
    queue = MemoryQueue()
    yield StoreUnderTest(queue=queue, another=lambda: queue, elsewhere=MemoryQueue)
    await queue.aclose()


@asynccontextmanager
async def sqlite_store(directory: pathlib.Path, namespace: str) -> AsyncIterator[StoreUnderTest]:
    path = str(directory / "jobs.db")
    async with _opened("tests.contract.openers:sqlite", path, namespace) as store:
        yield store


@asynccontextmanager
async def redis_store(server: Server, namespace: str) -> AsyncIterator[StoreUnderTest]:
    async with _opened("tests.contract.openers:redis", server.url, namespace) as store:
        yield store
    async with redis.asyncio.Redis(unix_socket_path=server.socket) as client:
        async for key in client.scan_iter(match=f"*{namespace}*", count=1000):
            await client.unlink(key)


@asynccontextmanager
async def _opened(factory: str, address: str, namespace: str) -> AsyncIterator[StoreUnderTest]:
    """Hand out drivers on the store, and close all of them at the end."""
    module, _, function = factory.partition(":")
    make: Callable[[str, str], Queue] = getattr(importlib.import_module(module), function)
    async with contextlib.AsyncExitStack() as stack:

        def opened(name: str) -> Queue:
            queue = make(address, name)
            stack.push_async_callback(queue.aclose)
            return queue

        yield StoreUnderTest(
            queue=opened(namespace),
            another=lambda: opened(namespace),
            elsewhere=lambda: opened(f"{namespace}-elsewhere"),
            opener=Opener(factory=factory, args=(address, namespace)),
        )
