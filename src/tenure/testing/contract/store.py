"""What a driver's test module hands to each behaviour: a fresh store and ways into it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenure.queue import Queue


@dataclass(frozen=True, kw_only=True)
class Opener:
    """How another process opens the same store."""

    factory: str
    """``package.module:function``; called with ``args`` it returns a driver."""
    args: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoreUnderTest:
    """A driver on a store, or a namespace of one, that nobody has used before.

    The fixture that makes it closes all drivers it handed out, when the test has ended.
    """

    queue: Queue
    """The driver under test."""
    another: Callable[[], Queue]
    """Returns a second driver on the same store, as another process would have; for memory the same one."""
    elsewhere: Callable[[], Queue]
    """Returns a driver on the same server or file whose namespace is another one."""
    opener: Opener | None = None
    """How child processes open the store; None when it lives in this process alone: threads race instead."""
    put_raw: Callable[[str, str, bytes], Awaitable[None]] | None = None
    """Plants a record as it is under (queue, id) in the ready line; None when the store can hold no broken one."""
