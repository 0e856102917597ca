"""A driver behind a proxy that loses replies, and one past it that sees what the store really holds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.layout import LISTS, Layout
from tenure.drivers.redis.scripts import Scripts
from tenure.queue import Ack, Fail, Release, Renewal
from tenure.testing.contract.steps import WHY, Q, assert_empty, done, job, pushed_and_claimed
from tests.contract import stores
from tests.support.proxy import Proxy
from tests.support.servers import Server


@dataclass(frozen=True)
class Bridge:
    """Two drivers on one store."""

    server: Server
    namespace: str
    proxy: Proxy
    shaky: RedisQueue
    """The one behind the proxy."""
    direct: RedisQueue
    """The one past it."""

    async def forget_clients(self) -> int:
        """Remove the store's records of all calls, as if they had expired; return how many there were."""
        async with stores.redis_client(self.server) as client:
            found = [key async for key in client.scan_iter(match=f"{{{self.namespace}:*}}:client:*", count=1000)]
            return int(await client.unlink(*found)) if found else 0


@asynccontextmanager
async def opened(
    server: Server, namespace: str, scripts: Scripts | None = None, layout: Layout = LISTS
) -> AsyncIterator[Bridge]:
    """Open both, use the one behind the proxy once, and empty the namespace at the end."""
    with Proxy(server.socket) as proxy:
        shaky = RedisQueue.from_url(proxy.url, namespace=namespace, layout=layout, scripts=scripts)
        direct = RedisQueue.from_url(server.url, namespace=namespace, layout=layout, scripts=scripts)
        try:
            # Scripts are loaded and lanes have begun, so that a fault hits the call it is meant for.
            await _warm_up(shaky)
            yield Bridge(server, namespace, proxy, shaky, direct)
        finally:
            proxy.heal()
            await shaky.aclose()
            await direct.aclose()
            async with stores.redis_client(server) as client:
                await stores.forget_namespace(client, namespace)


async def _warm_up(queue: RedisQueue) -> None:
    for end in (Ack, Release, lambda lease: Fail(lease, WHY)):
        lease = await pushed_and_claimed(queue, job("warm"))
        assert await queue.renew([lease]) == [Renewal.HELD]
        await done(queue, end(lease))
        await queue.cancel(Q, ["warm"])
        await queue.forget(await queue.failed(Q))
        await queue.clear(Q)
    await assert_empty(queue)
