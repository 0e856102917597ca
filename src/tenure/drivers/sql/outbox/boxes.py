"""An opened outbox: one connection, a transaction for each step, and a lock for the line that is worked on."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

from tenure.drivers.sql.outbox import moving
from tenure.drivers.sql.outbox.lines import Line, Sending, Waiting
from tenure.drivers.sql.outbox.moving import Desk

T = TypeVar("T")


class Access(Protocol):
    """How one kind of database runs the steps. Blocking, one thread at a time; raises ``StoreError``."""

    def there(self) -> bool:
        """Tell whether there are tables, where looking for them would make them."""
        ...

    def read(self, step: Callable[[Desk], T]) -> T:
        """Run a step that changes nothing."""
        ...

    def write(self, step: Callable[[Desk], T]) -> T:
        """Run a step, whole or not at all."""
        ...

    def locked(self, line: Line) -> AbstractContextManager[bool]:
        """Keep other relays from a line for the length of the block; False when one of them has it.

        A lock ends with its holder, and what is promised does not hang on it: it saves two relays the same work.
        """
        ...

    def close(self) -> None:
        """Close what is open; idempotent. The next use opens again."""
        ...


class Box:
    """The outbox of one database. Blocking, one thread at a time; every call raises ``StoreError``."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def lines(self) -> list[Line]:
        """Return the lines in which jobs wait, sorted."""
        return self._access.read(moving.lines)

    def lag(self) -> list[Waiting]:
        """Return what waits in each line; nothing is made for it."""
        return self._access.read(moving.lag) if self._access.there() else []

    @contextmanager
    def locked(self, line: Line) -> Iterator[bool]:
        """Keep other relays from a line for the length of the block; False when one of them has it."""
        with self._access.locked(line) as got:
            yield got

    def begin(self, line: Line) -> Sending | None:
        """Return the line's recorded call, or record the next one; None when nothing waits."""
        return self._access.write(lambda desk: moving.begin(desk, line))

    def renew(self, line: Line, sending: Sending) -> bool:
        """Let a call be made by a new client, at the next ``begin``; False when it is not ours any more."""
        return self._access.write(lambda desk: moving.renew(desk, line, sending))

    def finish(self, line: Line, sending: Sending) -> bool:
        """Remove the rows of a call whose answer is in; False, and nothing removed, when it is not ours any more."""
        return self._access.write(lambda desk: moving.finish(desk, line, sending))

    def close(self) -> None:
        """Close what is open; idempotent. The next use opens again."""
        self._access.close()
