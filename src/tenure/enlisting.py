"""Transactions of callers: a push can be part of one, or follow it.

What a library of databases must give for that (``Enlisted``, ``Statements``), and what a driver must (``Enlists``). The
adapters are found by their entry points in the group ``tenure.transactions``, each under the name of the root module
of the objects that it takes, so that nothing of a library is imported before an object of it is passed. A text is the
alias of a Django database.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from tenure.errors import InvalidOption, MissingExtra
from tenure.naming import shown
from tenure.queue import Push, Pushed

T = TypeVar("T")

GROUP: Final = "tenure.transactions"
BLOCKS: Final = "tenure.blocks"
"""The same for transactions that are still to be begun."""
ALIASES: Final = "django"
"""Whose databases have aliases."""

Values = Mapping[str, Any] | Sequence[Any]


class Trouble(Exception):
    """The caller's database refused a statement. ``cause`` is the client library's own error, never shown (P12)."""

    def __init__(self, cause: BaseException | None) -> None:
        self.cause: BaseException | None = cause
        super().__init__("the database refused a statement")


class Result(NamedTuple):
    """What a statement brought."""

    rows: list[Any]
    changed: int


class Statements(Protocol):
    """A caller's connection, in the middle of its transaction. Blocking; used where the library says."""

    @property
    def dialect(self) -> str:
        """``postgresql``, ``mysql`` (MariaDB too), ``sqlite``, or another's name."""
        ...

    def run(self, text: str, values: Values = (), /) -> Result:
        """Run one statement; raises ``Trouble``.

        Values are named ``%(name)s``, where a list stands for an array, or for what follows ``IN``; SQLite's texts
        are its own.
        """
        ...

    def run_each(self, text: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        """Run one statement for each row, in few round trips where the library can; raises ``Trouble``."""
        ...

    def aside(self, work: Callable[[], T]) -> T:
        """Do something that blocks, outside of the transaction, without blocking the caller's event loop."""
        ...


class Following(Protocol):
    """What is to be done once a transaction is committed: ``run``, or ``run_async`` where the commit is awaited."""

    def run(self) -> None:
        """Do it, blocking."""
        ...

    async def run_async(self) -> None:
        """Do it."""
        ...

    def abandon(self, error: BaseException) -> None:
        """Tell that it is not done, because what stood before it was interrupted."""
        ...


class Enlisted(Protocol):
    """A caller's open transaction."""

    def within(self, work: Callable[[Statements], T]) -> T:
        """Run statements in it, blocking; raises ``WrongContext`` when it is an asynchronous one."""
        ...

    async def within_async(self, work: Callable[[Statements], T]) -> T:
        """Run statements in it."""
        ...

    def after_commit(self, following: Following) -> None:
        """Do something after its outermost commit, in order; never if it, or a savepoint around this, rolls back."""
        ...


class Begun(Protocol):
    """A transaction that a block of ours begins and ends. Its steps block, and run inside ``call``."""

    def call(self, step: Callable[[], T]) -> T:
        """Run a step; raises ``WrongContext`` when the transaction is an asynchronous one."""
        ...

    async def call_async(self, step: Callable[[], T]) -> T:
        """Run a step."""
        ...

    def begin(self) -> None:
        """Begin; raises ``InvalidOption`` when it has begun already, or could not be committed by its own."""
        ...

    def within(self, work: Callable[[Statements], T]) -> T:
        """Run statements in it, behind all that waits to be written; raises ``Refused`` when it has ended or failed."""
        ...

    def commit(self) -> None:
        """Commit it."""
        ...

    def roll_back(self) -> None:
        """Roll it back."""
        ...


class Enlists(Protocol):
    """A driver whose jobs a caller's own connection can write, when it leads to the same database."""

    def push_within(self, caller: Statements, jobs: Sequence[Push]) -> Sequence[Pushed] | None:
        """Store jobs in the caller's transaction, and answer for each in order: true once that is committed.

        None, and nothing written, when the connection does not see the tables of this store.
        """
        ...


F = TypeVar("F", bound=Following)


def enlist(option: str, given: object) -> Enlisted:
    """Return the transaction that an option names; raises ``InvalidOption`` for what is none, or not an open one."""
    adapted: Enlisted = _adapted(GROUP, option, given)
    return adapted


def begin(option: str, given: object) -> Begun:
    """Return the transaction that a block will begin; raises ``InvalidOption`` for what none can be begun of."""
    adapted: Begun = _adapted(BLOCKS, option, given)
    return adapted


def _adapted(group: str, option: str, given: object) -> Any:
    roots = [base.__module__.partition(".")[0] for base in type(given).__mro__]
    for name in [ALIASES] if isinstance(given, str) else roots:
        adapter = _adapter(group, name)
        if adapter is not None:
            return adapter(option, given)
    raise InvalidOption(
        f"{option} takes a SQLAlchemy connection or session, or the alias of a Django database, not a "
        f"{shown(type(given).__name__)}; nothing was sent"
    )


@functools.cache
def _adapter(group: str, name: str) -> Callable[[str, object], Any] | None:
    from importlib.metadata import entry_points  # noqa: PLC0415 - keeps `import tenure` light

    for entry in entry_points(group=group, name=name):
        try:
            found: Callable[[str, object], Any] = entry.load()
        except ModuleNotFoundError as error:
            raise MissingExtra(name, "that transaction") from error
        return found
    return None


def follow(waiting: Sequence[F], run: Callable[[F], None]) -> None:
    """Run what follows a commit, in order; what an interruption leaves undone is told of."""
    for place, following in enumerate(waiting):
        try:
            run(following)
        except BaseException as error:
            for left in waiting[place + 1 :]:
                left.abandon(error)
            raise
