"""A fresh store of each kind, as the contract suite takes it, closed and emptied at the end."""

import contextlib
import functools
import pathlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import redis.asyncio

from tenure.drivers.memory import MemoryQueue
from tenure.drivers.redis.scripts import Scripts
from tenure.queue import Queue
from tenure.testing.contract import Opener, StoreUnderTest
from tests.contract import openers
from tests.support.databases import Database
from tests.support.servers import Server


@asynccontextmanager
async def memory_store() -> AsyncIterator[StoreUnderTest]:
    queue = MemoryQueue()
    yield StoreUnderTest(queue=queue, another=lambda: queue, elsewhere=MemoryQueue)
    await queue.aclose()


@asynccontextmanager
async def sqlite_store(directory: pathlib.Path, namespace: str) -> AsyncIterator[StoreUnderTest]:
    path = str(directory / "jobs.db")
    opener = Opener(factory="tests.contract.openers:sqlite", args=(path, namespace))
    async with opened(openers.sqlite, opener) as store:
        yield store


@asynccontextmanager
async def database_store(database: Database, namespace: str) -> AsyncIterator[StoreUnderTest]:
    """Open a namespace of a database; its tables are shared by all tests of a run, and emptied of nothing."""
    name = database.name
    opener = Opener(factory=f"tests.contract.openers:{name}", args=(database.url, namespace))
    async with opened(getattr(openers, name), opener) as store:
        yield store


@asynccontextmanager
async def redis_store(server: Server, namespace: str, scripts: Scripts | None = None) -> AsyncIterator[StoreUnderTest]:
    """Open a namespace of a server. Other scripts than the packaged ones reach no other process."""
    async with redis_client(server) as client:

        async def put_raw(queue: str, job_id: str, record: bytes) -> None:
            start = f"{{{namespace}:{queue}}}"
            await client.hset(f"{start}:jobs", job_id, record)
            await client.rpush(f"{start}:ready", f"{job_id}|1")

        make = functools.partial(openers.redis, scripts=scripts)
        opener = Opener(factory="tests.contract.openers:redis", args=(server.url, namespace))
        async with opened(make, opener) as store:
            yield replace(store, put_raw=put_raw)
        await forget_namespace(client, namespace)


@asynccontextmanager
async def streams_store(
    server: Server, namespace: str, scripts: Scripts | None = None
) -> AsyncIterator[StoreUnderTest]:
    """Open a namespace of a server with streams in place of lists."""
    async with redis_client(server) as client:

        async def put_raw(queue: str, job_id: str, record: bytes) -> None:
            start = f"{{{namespace}:{queue}}}"
            await client.hset(f"{start}:jobs", job_id, record)
            await client.xadd(f"{start}:ready", {"j": f"{job_id}|1"})

        make = functools.partial(openers.streams, scripts=scripts)
        opener = Opener(factory="tests.contract.openers:streams", args=(server.url, namespace))
        async with opened(make, opener) as store:
            yield replace(store, put_raw=put_raw)
        await forget_namespace(client, namespace)


@asynccontextmanager
async def redis_client(server: Server) -> AsyncIterator["redis.asyncio.Redis"]:
    """Open a client of a test's own, beside the driver."""
    client = redis.asyncio.Redis(unix_socket_path=server.socket)
    try:
        yield client
    finally:
        await client.aclose()


async def forget_namespace(client: "redis.asyncio.Redis", namespace: str) -> None:
    """Remove all that a test left behind: the server is shared by all tests of a run."""
    async for key in client.scan_iter(match=f"*{namespace}*", count=1000):
        await client.unlink(key)


@asynccontextmanager
async def opened(make: Callable[[str, str], Queue], opener: Opener) -> AsyncIterator[StoreUnderTest]:
    """Hand out drivers on the store, and close all of them at the end."""
    address, namespace = opener.args
    async with contextlib.AsyncExitStack() as stack:

        def made(name: str) -> Queue:
            queue = make(address, name)
            stack.push_async_callback(queue.aclose)
            return queue

        yield StoreUnderTest(
            queue=made(namespace),
            another=lambda: made(namespace),
            elsewhere=lambda: made(f"{namespace}-elsewhere"),
            opener=opener,
        )
