"""An atomic block that ``current().transaction()`` enters and leaves."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connections, transaction

from tenure.enlisting import Begun, Statements
from tenure.errors import InvalidOption, WrongContext
from tenure.ext.django.transactions import DjangoTransaction, transaction_of
from tenure.naming import shown

T = TypeVar("T")


def begin(option: str, given: object) -> Begun:
    """Return the atomic block of an alias, in this thread; raises ``InvalidOption`` and ``WrongContext``."""
    enlisted = transaction_of(option, given, "use 'with' in a plain function")
    return _Block(option, str(given), enlisted)


class _Block:
    def __init__(self, option: str, alias: str, enlisted: DjangoTransaction) -> None:
        self._option = option
        self._alias = alias
        self._enlisted = enlisted
        # Without an argument it is a context manager, and not a decorator: Django has no annotations that say so.
        self._atomic: Any = transaction.atomic(using=alias)
        self._open = False

    def call(self, step: Callable[[], T]) -> T:
        return step()

    async def call_async(self, step: Callable[[], T]) -> T:
        del step
        raise WrongContext(f"{self._option}: Django's transactions belong to blocking code: use 'with'")

    def begin(self) -> None:
        if connections[self._alias].in_atomic_block:
            raise InvalidOption(
                f"{self._option}: an atomic block is open on {shown(self._alias)} already: the transaction is to begin "
                "and to end with this one; nothing was sent"
            )
        connections[self._alias].close_if_unusable_or_obsolete()  # what Django does before each request
        self._atomic.__enter__()
        self._open = True

    def within(self, work: Callable[[Statements], T]) -> T:
        return self._enlisted.within(work)

    def commit(self) -> None:
        self._open = False
        self._atomic.__exit__(None, None, None)

    def roll_back(self) -> None:
        if self._open:
            self._open = False
            transaction.set_rollback(True, using=self._alias)
            self._atomic.__exit__(None, None, None)
