"""Compositions as values: what a chain, a batch or a workflow is made of, before it is stored."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Sized
from datetime import timedelta
from typing import Any, ClassVar, Final, Protocol, TypedDict

from tenure.call import Call
from tenure.compositions import RETENTION, Kind, When
from tenure.errors import InvalidOption
from tenure.flow.handle import CompositionHandle
from tenure.job import SyncHandles
from tenure.naming import check_job_id, shown
from tenure.options import seconds
from tenure.portal import refuse_loop, require_loop

LONGEST_ID: Final = 52
"""Characters of a composition's id: a point and a number follow it in those of its jobs."""
LONGEST_NAME: Final = 200


class CompositionOptions(TypedDict, total=False):
    """What may be said of a composition as a whole. Of a nested one, only the name."""

    name: str
    """What it is called in listings: shown to people, so it must hold no secret."""
    id: str
    """Made up if it is not given. Pushing an id that exists changes nothing, and answers with what exists."""
    retention: float | timedelta
    """Seconds for which it can be read once all of it has ended."""


class Composer(Protocol):
    """What compositions ask of their application."""

    def call(self, given: Any, /) -> Call[Any]:
        """Return a call, or an instance of a class job, as a call; raises ``NotRegistered``."""
        ...

    async def push(self, composition: "Composition", connection: str | None, /) -> CompositionHandle:
        """Store a composition."""
        ...

    def push_sync(self, composition: "Composition", connection: str | None, /) -> CompositionHandle:
        """Store a composition, blocking."""
        ...


class Composition(ABC):
    """Jobs that are tied together, as a value: a chain, a batch or a workflow.

    It may be a part of others. Pushed, it becomes one composition with all that is inside it.
    """

    kind: ClassVar[Kind]

    def __init__(self, composer: Composer, options: CompositionOptions) -> None:
        self._composer = composer
        if unknown := options.keys() - CompositionOptions.__annotations__.keys():
            raise InvalidOption(
                f"there is no option {shown(min(unknown))}; the options are "
                f"{', '.join(sorted(CompositionOptions.__annotations__))}"
            )
        self.name: str = _name(options.get("name", ""))
        self.id: str | None = _id(options["id"]) if "id" in options else None
        self.retention: float = seconds("retention", options["retention"]) if "retention" in options else RETENTION
        self.whole: bool = bool(options.keys() - {"name"})
        """Whether something was said of it that can be said only of what is no part of another."""

    def push(self, *, connection: str | None = None) -> Coroutine[Any, Any, CompositionHandle]:
        """Store the composition, and let it begin; await it.

        Refuses at once, with ``WrongContext``, where no event loop runs. Raises ``Refused`` and ``StoreError`` when
        nothing was stored, and ``CompositionIncomplete`` when it was not stored whole: nothing of it runs then.
        ``OutcomeUnknown`` says that all of it is stored, and that it may or may not have begun.
        """
        require_loop("push")
        return self._composer.push(self, connection)

    def push_sync(self, *, connection: str | None = None) -> CompositionHandle:
        """Do what ``push`` does, blocking; refuses inside a running event loop."""
        refuse_loop("push")
        return self._composer.push_sync(self, connection)

    @property
    @abstractmethod
    def label(self) -> str:
        """What messages call it."""

    def _called(self) -> str:
        return f"the {self.kind}{self.name and f' {shown(self.name)}'}"

    def _part(self, given: Any) -> "Part":
        return given if isinstance(given, Composition) else self._composer.call(given)

    def __repr__(self) -> str:
        return f"<{self.label.removeprefix('the ')}>"


Part = Call[Any] | Composition
"""What compositions are made of."""
Single = Call[Any] | SyncHandles[Any]
"""A call, or an instance of a class job."""
Given = Single | Composition
"""What they are given."""


class Chain(Composition):
    """Calls one after the other: the next begins when the one before it has succeeded."""

    kind = Kind.CHAIN

    def __init__(self, composer: Composer, calls: Iterable[Any], options: CompositionOptions) -> None:
        super().__init__(composer, options)
        self.steps: tuple[Part, ...] = tuple(self._part(call) for call in calls)
        if not self.steps:
            raise InvalidOption(f"{self.label} has no calls; nothing was sent")

    @property
    def label(self) -> str:
        """What messages call it."""
        return self._called()


class Batch(Composition):
    """Calls side by side, and what follows when all of them have ended, whatever became of them."""

    kind = Kind.BATCH

    def __init__(
        self,
        composer: Composer,
        calls: "Iterable[Given]",
        options: CompositionOptions,
        *,
        on_success: "Single | None" = None,
        on_failure: "Single | None" = None,
        on_finish: "Single | None" = None,
        result_ttl: float | timedelta | None = None,
    ) -> None:
        super().__init__(composer, options)
        if not isinstance(calls, Iterable):
            raise InvalidOption(f"a batch takes an iterable of calls, not {type(calls).__name__}")
        self.calls: Iterable[Any] = calls
        self.result_ttl: float | None = None if result_ttl is None else seconds("result_ttl", result_ttl)
        """Of its members that have none of their own."""
        given = {When.SUCCESS: on_success, When.FAILURE: on_failure, When.ANY: on_finish}
        self.callbacks: tuple[tuple[When, Call[Any]], ...] = tuple(
            (when, composer.call(call)) for when, call in given.items() if call is not None
        )
        if isinstance(calls, Sized) and not len(calls):
            raise InvalidOption(f"{self.label} has no calls; nothing was sent")

    @property
    def label(self) -> str:
        """What messages call it."""
        return self._called()

    def part(self, given: Any) -> Part:
        """Return a member; raises ``NotRegistered`` for what cannot be one."""
        return self._part(given)


def _name(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not (value.isprintable() or not value):
        raise InvalidOption(f"name must be a printable text of at most {LONGEST_NAME} characters")
    return value


def _id(value: object) -> str:
    if len(check_job_id(value)) > LONGEST_ID:
        raise InvalidOption(f"the id of a composition has at most {LONGEST_ID} characters: its jobs' ids begin with it")
    return str(value)
