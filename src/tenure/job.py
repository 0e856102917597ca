"""What stands where a decorated function stood: called, it runs; pushed, it runs in a worker."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, cast, overload

from tenure.call import Call, Registered
from tenure.definition import JobDefinition
from tenure.handle import JobHandle
from tenure.options import UNSET, Options, PushOptions
from tenure.portal import refuse_loop, require_loop

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C", bound="SyncHandles[Any]")


class AsyncHandles(Protocol[R_co]):
    """An instance of a class job whose ``handle`` is asynchronous."""

    def handle(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, R_co]:
        """Run the job."""
        ...


class SyncHandles(Protocol[R_co]):
    """An instance of a class job."""

    def handle(self, *args: Any, **kwargs: Any) -> R_co:
        """Run the job."""
        ...


class Dispatcher(Protocol):
    """What a job asks of its application."""

    async def push(self, call: Call[R], /) -> JobHandle[R]:
        """Store a call."""
        ...

    def push_sync(self, call: Call[R], /) -> JobHandle[R]:
        """Store a call, blocking."""
        ...


class Job(Registered, Generic[P, R_co]):
    """A registered function. ``push`` takes exactly the function's own parameters; options never mix with them."""

    def __init__(
        self,
        definition: JobDefinition,
        dispatcher: Dispatcher,
        overrides: Options = UNSET,
    ) -> None:
        functools.update_wrapper(cast("Any", self), definition.registered)
        self.definition: JobDefinition = definition
        self.overrides: Options = overrides
        self._dispatcher = dispatcher

    @property
    def name(self) -> str:
        """The name under which it is stored."""
        return self.definition.name

    def push(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, JobHandle[R_co]]:
        """Store a call of this job; await it.

        Refuses at once, with ``WrongContext``, where no event loop runs. See ``Tenure.push`` for what else it raises.
        """
        require_loop("push")
        return self._dispatcher.push(self.bind(*args, **kwargs))

    def push_sync(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Store a call of this job, blocking; refuses inside a running event loop."""
        refuse_loop("push")
        return self._dispatcher.push_sync(self.bind(*args, **kwargs))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]:
        """Return the call as a value. Raises ``InvalidOption`` for what the function does not take, and
        ``NotEncodable`` for an argument that has no wire form.
        """  # noqa: D205 - the promise takes two lines
        definition = self.definition
        stored_args, stored_kwargs = definition.encode(args, kwargs)
        return Call(definition, stored_args, stored_kwargs, self.overrides)

    def options(self, **options: Unpack[PushOptions]) -> Self:
        """Return the job with these options for its pushes; raises ``InvalidOption``."""
        return type(self)(self.definition, self._dispatcher, self.overrides.with_(options))

    def __repr__(self) -> str:
        return f"<job {self.name}>"


class AsyncJob(Job[P, R_co]):
    """A registered coroutine function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Call the function itself, here and now."""
        return self.definition.registered(*args, **kwargs)  # type: ignore[no-any-return] # the function's own


class SyncJob(Job[P, R_co]):
    """A registered plain function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself, here and now."""
        return self.definition.registered(*args, **kwargs)  # type: ignore[no-any-return] # the function's own


class Register(Protocol):
    """What ``@app.job(...)`` decorates with. A class comes back unchanged."""

    @overload
    def __call__(self, target: type[C], /) -> type[C]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJob[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[P, R], /) -> SyncJob[P, R]: ...
