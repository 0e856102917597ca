"""Small steps that the driver's tests are made of."""

from collections.abc import Sequence

import redis

from tenure.drivers.redis import RedisQueue
from tenure.queue import Lease, Push
from tests.support.processes import eventually_async

Q = "q"


def job(job_id: str, *, queue: str = Q, envelope: bytes = b"{}", **options: float | str | None) -> Push:
    return Push(queue=queue, id=job_id, envelope=envelope, **options)  # type: ignore[arg-type]


def jobs(number: int, start: str = "j", *, envelope: bytes = b"{}") -> list[Push]:
    return [job(f"{start}{place}", envelope=envelope) for place in range(number)]


async def claim(queue: RedisQueue, limit: int = 1, *, lease: float = 60, wait: float = 0) -> Sequence[Lease]:
    return (await queue.claim([Q], limit=limit, lease=lease, wait=wait)).leases


async def claim_one(queue: RedisQueue, *, lease: float = 60, wait: float = 0) -> Lease:
    (only,) = await claim(queue, lease=lease, wait=wait)
    return only


async def waiting(client: redis.Redis, number: int = 1) -> None:
    """Return when so many claims wait in the server."""

    async def there() -> bool:
        return sum(one["cmd"] == "blpop" for one in client.client_list()) >= number

    await eventually_async(there, what=f"{number} claims wait", every=0.002)


def ids(leases: Sequence[Lease]) -> list[str]:
    return [lease.id for lease in leases]
