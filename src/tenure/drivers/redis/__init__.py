"""The lease queue on Redis 6.2 or newer, or Valkey."""

from tenure.drivers.redis.driver import RedisQueue

__all__ = ["RedisQueue"]
