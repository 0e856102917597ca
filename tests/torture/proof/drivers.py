"""The drivers of recorded processes: the ordinary ones, with their calls written down."""

import time
from collections.abc import Callable
from typing import Any

import tenure.drivers.redis
import tenure.drivers.sql
import tenure.drivers.sql.postgresql
from tenure.drivers.redis.lanes import Patience
from tenure.drivers.redis.layout import LISTS, Layout
from tests.torture.proof import redis_audit
from tests.torture.proof.recording import Log, recorded


def record(log: Log, options: dict[str, Any]) -> None:
    """Have the applications of this process use recorded drivers."""
    if options.get("ahead"):
        set_clock(options["ahead"])
    more = {"patience": Patience(**options["patience"])} if "patience" in options else {}
    plain = tenure.drivers.redis.RedisQueue

    def redis_queue(*args: Any, layout: Layout = LISTS, **kwargs: Any) -> Any:
        driver = recorded(plain, log, scripts=redis_audit.instrumented(layout.line), **more)
        return driver(*args, layout=layout, **kwargs)

    tenure.drivers.redis.__dict__["RedisQueue"] = redis_queue
    tenure.drivers.sql.__dict__["SqliteQueue"] = recorded(tenure.drivers.sql.SqliteQueue, log)
    postgres = tenure.drivers.sql.postgresql
    postgres.__dict__["PostgresQueue"] = recorded(postgres.PostgresQueue, log)


def set_clock(ahead: float) -> None:
    """Put this process's wall clock off, as a host's may be."""
    right: Callable[[], float] = time.time
    time.__dict__["time"] = lambda: right() + ahead
