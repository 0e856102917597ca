"""Listeners: jobs that run because something has happened, one job a listener.

An event is an object of a class that the application declares: a dataclass, a msgspec ``Struct`` or a pydantic model.
``@app.listener(OrderPaid)`` registers a job whose first parameter is the event, and ``app.emit(OrderPaid(…))`` pushes
one call of each. From then on they are jobs like all others: the class stands in the registered function's annotation,
which is the allow-list, and the stored event is validated into it before the listener sees it.
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar, get_args, get_origin, overload

from tenure.call import Call
from tenure.definition import JobDefinition
from tenure.errors import InvalidOption
from tenure.hints import resolved
from tenure.job import AsyncJob, Job, SyncJob
from tenure.naming import derived_id, shown
from tenure.options import UNSET, JobOptions

E = TypeVar("E")
P = ParamSpec("P")
R = TypeVar("R")


class ListenerOptions(JobOptions, total=False):
    """What ``@app.listener`` may say of the jobs of a listener."""

    after_commit: bool
    """It is only told of events that are tied to a transaction: an ``emit`` that is not is refused."""


class Listen(Protocol[E]):
    """What ``@app.listener(…)`` decorates with."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: Callable[Concatenate[E, P], Coroutine[Any, Any, R]], /
    ) -> AsyncJob[Concatenate[E, P], R]: ...
    @overload
    def __call__(self, target: Callable[Concatenate[E, P], R], /) -> SyncJob[Concatenate[E, P], R]: ...


class Listener(NamedTuple):
    """A job that wants to hear of one kind of event."""

    job: Job[..., Any]
    after_commit: bool


class Listeners:
    """The listeners of one application, by the class of the event. Exact: an event of a subclass is another event."""

    def __init__(self) -> None:
        self._by_kind: dict[type, list[Listener]] = {}
        self._checked: set[str] = set()

    def add(self, kind: type, job: Job[..., Any], *, after_commit: bool) -> None:
        """Add one."""
        self._by_kind.setdefault(kind, []).append(Listener(job, after_commit))

    def calls(self, event: object, options: Mapping[str, Any]) -> list[Call[Any]]:
        """Return the calls that tell all listeners of an event, in the order in which they were registered.

        Raises ``Refused`` when one of them cannot be told: then none is.
        """
        UNSET.with_(options)  # a wrong option is refused even when nobody listens
        listeners = self._by_kind.get(type(event), ())
        tied = "after_commit" in options or "transaction" in options
        found: list[Call[Any]] = []
        for job, after_commit in listeners:
            if after_commit and not tied:
                raise InvalidOption(
                    f"the listener {job.name} is told after a commit only: emit(event, after_commit=session), or "
                    "transaction=; nothing was sent"
                )
            self._check(type(event), job.definition)
            own = dict(options)
            if "id" in own:
                own["id"] = derived_id(own["id"], job.name)
            found.append(job.options(**own).bind(event))
        return found

    def _check(self, kind: type, definition: JobDefinition) -> None:
        """Raise ``InvalidOption`` unless the listener takes this very class: what it says is what is restored."""
        if definition.name in self._checked:
            return
        parameter = definition.parameters[0]
        hint = resolved(
            definition.name, parameter.name, parameter.annotation, [inspect.unwrap(definition.target).__globals__]
        )
        while get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        if hint is not kind:
            raise InvalidOption(
                f"the listener {definition.name} takes {shown(getattr(hint, '__qualname__', hint))}, and was "
                f"registered for {kind.__qualname__}: annotate its first parameter with that class; nothing was sent"
            )
        self._checked.add(definition.name)


def check_listener(kind: object, target: Any) -> None:
    """Raise ``InvalidOption`` for what cannot be a listener of this kind of event."""
    if not isinstance(kind, type):
        raise InvalidOption(
            f"@app.listener takes the class of an event, as in @app.listener(OrderPaid), not {shown(kind)}"
        )
    if not inspect.isfunction(target):  # a class, say
        raise InvalidOption("a listener must be a function that takes the event")
    name = target.__qualname__
    parameters = list(inspect.signature(target).parameters.values())
    if not parameters or parameters[0].kind not in {
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    }:
        raise InvalidOption(f"the listener {name} must take the event as its first parameter")
    first, *others = parameters
    if first.annotation is first.empty:
        raise InvalidOption(f"the listener {name}: annotate {first.name!r} with {kind.__qualname__}")
    several = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    for parameter in others:
        if parameter.default is parameter.empty and parameter.kind not in several:
            raise InvalidOption(f"the listener {name} gets the event alone: {parameter.name!r} needs a default")
