"""The memory driver: jobs of one process, for tests, small programs and as the model of what a driver does."""

from tenure.drivers.memory.queue import MemoryQueue

__all__ = ["MemoryQueue"]
