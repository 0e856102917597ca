"""Leases as values, for tests of what decides about them."""

import time

from tenure.queue import Doom, Lease


def lease(
    *,
    deliveries: int = 1,
    free: int = 0,
    crashes: int = 0,
    envelope: bytes = b"",
    doomed: Doom | None = None,
    id: str = "job-1",  # noqa: A002 - as the lease calls it
    input: bytes | None = None,  # noqa: A002 - as above
) -> Lease:
    return Lease(
        queue="default",
        id=id,
        incarnation=1,
        token="t",
        fence=1,
        deliveries=deliveries,
        free=free,
        crashes=crashes,
        length=30.0,
        deadline=time.monotonic() + 30.0,
        envelope=envelope,
        doomed=doomed,
        input=input,
    )
