"""The lease queue on Redis 6.2 or newer, or Valkey."""

import importlib.util

from tenure.errors import MissingExtra

for _library in ("redis", "hiredis"):
    if importlib.util.find_spec(_library) is None:
        raise MissingExtra("redis", "the Redis driver")

from tenure.drivers.redis.driver import RedisQueue  # noqa: E402 - what it needs is told first

__all__ = ["RedisQueue"]
