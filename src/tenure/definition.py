"""What the application knows of one job: its name, its function or class, its options and its services.

Annotations are read at first use, not at registration: names that a module defines further down are there by then,
and so is the second class that ``@dataclass(slots=True)`` makes when it stands above ``@app.job``.
"""

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import msgspec

from tenure import options as opts
from tenure.atomic import atomically
from tenure.envelope import Envelope, with_first
from tenure.errors import InvalidOption, NotEncodable, Undecodable
from tenure.hints import namespaces_of_class, resolved
from tenure.injection import is_injected, services_of_function, services_of_handle
from tenure.naming import check_job_name
from tenure.policies import NO_POLICIES, Policies
from tenure.sensitive import Discreet

if TYPE_CHECKING:
    from tenure.codec import ArgumentCodec
    from tenure.returned import ResultCodec

Executor = Literal["async", "thread", "process"]


class LoadedCall(Discreet, frozen=True, gc=False):
    """A stored call, ready to run: ``function(*args, **kwargs, **services)``."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    function: Callable[..., Any]


@dataclasses.dataclass(frozen=True, eq=False)
class JobDefinition:
    """One registered job. Frozen; what depends on annotations is worked out at first use."""

    name: str
    registered: Callable[..., Any]
    """The function or the class that was decorated."""
    executor: Executor
    asynchronous: bool = False
    """Whether its handler is a coroutine function."""
    aliases: tuple[str, ...] = ()
    options: opts.JobDefaults = dataclasses.field(default_factory=opts.JobDefaults)
    policies: Policies = NO_POLICIES
    """What becomes of its handler's exceptions."""
    atomic: str | None = None
    """The alias of the database whose transaction its handler runs in."""

    @property
    def queue(self) -> str | None:
        """The queue that its jobs go to, or None for the application's default."""
        return self.options.queue

    @property
    def is_class(self) -> bool:
        """Whether the job is a class: then ``target(*args, **kwargs).handle(**services)`` runs."""
        return isinstance(self.registered, type)

    @cached_property
    def target(self) -> Callable[..., Any]:
        """The function, or the class as its module has it now."""
        return _as_finished(self.registered) if isinstance(self.registered, type) else self.registered

    @cached_property
    def services(self) -> tuple[str, ...]:
        """The names of the parameters that the container fills."""
        if self.is_class:
            return services_of_handle(self.name, _handle_parameters(self.target))
        return services_of_function(self.name, _parameters(self.target))

    @cached_property
    def injected(self) -> Mapping[str, Any]:
        """Service by parameter of the function, or of ``handle()``; raises ``InvalidOption`` for one without sense."""
        if isinstance(self.target, type):
            handle = inspect.unwrap(self.target.handle)  # type: ignore[attr-defined] # checked when it was registered
            parameters, names = _handle_parameters(self.target), namespaces_of_class(self.target, handle)
        else:
            parameters, names = _parameters(self.target), [inspect.unwrap(self.target).__globals__]
        return MappingProxyType(
            {
                parameter.name: resolved(self.name, parameter.name, parameter.annotation, names)
                for parameter in parameters
                if parameter.name in self.services
            }
        )

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The parameters that a push fills: the function's without its services, or the constructor's."""
        found = _parameters(self.target)
        if isinstance(self.target, type):
            _require_recoverable(self.name, self.target, found)
            return found
        return tuple(parameter for parameter in found if not is_injected(parameter))

    @cached_property
    def codec(self) -> "ArgumentCodec":
        """What turns the arguments into their wire form and back."""
        from tenure.codec import ArgumentCodec  # noqa: PLC0415 - keeps `import tenure` light

        if isinstance(self.target, type):
            names = namespaces_of_class(self.target, vars(self.target).get("__init__", self.target))
        else:
            names = [inspect.unwrap(self.target).__globals__]
        hints = {
            parameter.name: resolved(self.name, parameter.name, parameter.annotation, names)
            for parameter in self.parameters
            if parameter.annotation is not parameter.empty
        }
        return ArgumentCodec(self.parameters, hints)

    @cached_property
    def returned(self) -> "ResultCodec":
        """What turns the result into its wire form and back; raises ``InvalidOption`` for an annotation without sense.

        Made where it is used: in the worker that keeps a result, and by the handle that restores it.
        """
        from tenure.returned import ResultCodec  # noqa: PLC0415 - keeps `import tenure` light

        if isinstance(self.target, type):
            function = inspect.unwrap(self.target.handle)  # type: ignore[attr-defined] # checked when it was registered
            names = namespaces_of_class(self.target, function)
        else:
            function = inspect.unwrap(self.target)
            names = [function.__globals__]
        annotations = getattr(function, "__annotations__", {})
        if "return" not in annotations:
            return ResultCodec()
        return ResultCodec(resolved(self.name, "return", annotations["return"], names))

    def encode_result(self, value: Any, *, max_bytes: int) -> bytes:
        """Return the wire form of what the handler returned; raises ``Unkeepable``, and nothing else."""
        from tenure.returned import Unkeepable  # noqa: PLC0415 - keeps `import tenure` light

        try:
            codec = self.returned
        except InvalidOption as problem:
            raise Unkeepable(str(problem)) from None
        return codec.encode(value, max_bytes=max_bytes)

    def restore(self, result: bytes) -> Any:
        """Return the result that was kept, as the job's annotation has it; raises ``Undecodable``."""
        return self.returned.decode(result)

    def encode(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, behind: int = 0
    ) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Return the wire form of the arguments of a call; raises ``NotEncodable`` or ``InvalidOption``.

        ``behind``: how many positional arguments will come before them, from elsewhere.
        """
        if kwargs and self.services and not self.is_class:
            for name in self.services:
                if name in kwargs:
                    raise InvalidOption(f"{self.name}: {name!r} is injected by the worker and cannot be pushed")
        return self.codec.encode(args, kwargs, behind=behind)

    def recover(self, instance: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the constructor's arguments of an instance of a class job; raises ``NotEncodable`` if one is lost.

        An argument is the attribute of the same name: what a dataclass does by itself, and a plain class must do.
        """
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in self.parameters:
            try:
                value = getattr(instance, parameter.name)
            except AttributeError:
                problem = (
                    f"the {type(instance).__name__} has no attribute of that name to read it from "
                    f"(set self.{parameter.name} in the constructor)"
                )
                raise NotEncodable(parameter.name, "", problem) from None
            if parameter.kind is parameter.POSITIONAL_ONLY:
                args.append(value)
            else:
                kwargs[parameter.name] = value
        return tuple(args), kwargs

    def load(self, envelope: Envelope, given: bytes | None = None) -> LoadedCall:
        """Return the call that an envelope holds; raises ``Undecodable`` when the arguments do not fit.

        ``given``, JSON, is its first argument: what the job before it in a chain has returned. A class is built here,
        so what its constructor refuses does not fit either.
        """
        first = envelope.args if given is None else with_first(envelope.args, given)
        args, kwargs = self.codec.decode(first, envelope.kwargs)
        if not self.is_class:
            return LoadedCall(args, kwargs, self._runnable(self.target))
        try:
            instance = self.target(*args, **kwargs)
        except Exception as error:
            # Its text may quote the value, so only its kind is told.
            raise Undecodable(
                f"the constructor of {self.name} refused its stored arguments ({type(error).__name__})"
            ) from error
        return LoadedCall((), {}, self._runnable(instance.handle))

    def _runnable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function if self.atomic is None else atomically(self.atomic, function)

    def __repr__(self) -> str:
        return f"<job {self.name}>"


def define(target: Any, given: Mapping[str, Any], below: opts.JobDefaults) -> JobDefinition:
    """Return the definition of a function or class with a decorator's options; raises ``InvalidOption``.

    Refused is what another process could not find again, or would run differently: lambdas, local functions, methods,
    generators, and what stands in ``__main__`` unless it is given a name.
    """
    chosen = dict(given)
    name, executor = chosen.pop("name", None), chosen.pop("executor", None)
    aliases = opts.aliases(chosen.pop("aliases", ()))
    policies = opts.policies({key: chosen.pop(key) for key in ("retry_on", "give_up_on") if key in chosen})
    atomic = opts.atomic(chosen.pop("atomic")) if "atomic" in chosen else None
    if not isinstance(target, type) and not _is_function(target):
        raise InvalidOption(f"a job must be a function or a class, not {type(target).__name__}")
    _require_importable(target, named=name is not None)
    name = check_job_name(f"{target.__module__}.{target.__qualname__}" if name is None else name)
    asynchronous = _is_asynchronous(name, target)
    runs_in = _executor(name, executor, asynchronous=asynchronous)
    if atomic is not None and runs_in != "thread":
        raise InvalidOption(
            f"job {name}: atomic is for plain functions in threads, as Django's transactions are; a coroutine writes "
            "in 'async with current().transaction(session)'"
        )
    definition = JobDefinition(
        name=name,
        registered=target,
        executor=runs_in,
        asynchronous=asynchronous,
        aliases=aliases,
        options=opts.defaults(chosen, below),
        policies=policies,
        atomic=atomic,
    )
    if not definition.is_class:
        _ = definition.services  # of a function all is known but its annotations: a wrong parameter is told at once
    return definition


def same_class(registered: object, other: type) -> bool:
    """Tell whether ``other`` is the class that was registered, remade with slots by a decorator above ``@app.job``."""
    return registered is other or (
        isinstance(registered, type)
        and (registered.__module__, registered.__qualname__) == (other.__module__, other.__qualname__)
        and getattr(registered, "handle", None) is getattr(other, "handle", None)
    )


# -------------------------------------------------------------------------------------------------------------- helpers


def _is_function(target: object) -> TypeGuard[FunctionType]:
    return inspect.isfunction(target)


def _require_importable(target: Any, *, named: bool) -> None:
    kind = "class" if isinstance(target, type) else "function"
    if target.__name__ == "<lambda>":
        raise InvalidOption("a lambda cannot be a job: a worker could not find it again; write a function")
    if "<locals>" in target.__qualname__:
        raise InvalidOption(
            f"the local {kind} {target.__qualname__} cannot be a job: a worker, which imports the module, "
            f"would not find it; move it to the top of the module"
        )
    if kind == "function" and "." in target.__qualname__:
        raise InvalidOption(f"the method {target.__qualname__} cannot be a job; write a function, or a class job")
    if target.__module__ == "__main__" and not named:
        raise InvalidOption(
            f"the {kind} {target.__qualname__} stands in __main__, which is another module in a worker; "
            "move it to a module, or give the job a name"
        )


def _is_asynchronous(name: str, target: Any) -> bool:
    function = getattr(target, "handle", None) if isinstance(target, type) else target
    if not callable(function):
        raise InvalidOption(f"the class job {name} needs a method handle()")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidOption(f"job {name} is a generator: nothing would run it")
    return inspect.iscoroutinefunction(inspect.unwrap(function)) or inspect.iscoroutinefunction(function)


def _executor(name: str, wanted: object, *, asynchronous: bool) -> Executor:
    natural: Executor = "async" if asynchronous else "thread"
    if wanted == "process":
        return "process"
    if wanted not in {None, "async", "thread"}:
        raise InvalidOption(f"job {name}: executor must be 'async', 'thread' or 'process'")
    if wanted not in {None, natural}:
        kind = "an async def" if asynchronous else "a plain def"
        raise InvalidOption(f"job {name} is {kind} and runs in the {natural!r} executor, not in {wanted!r}")
    return natural


def _parameters(target: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(target).parameters.values())


def _handle_parameters(target: Any) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(target.handle).parameters.values())[1:]


def _require_recoverable(name: str, target: type, parameters: tuple[inspect.Parameter, ...]) -> None:
    kept = {field.name for field in dataclasses.fields(target)} if dataclasses.is_dataclass(target) else None
    for parameter in parameters:
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise InvalidOption(f"the class job {name} cannot take {parameter}: its arguments are read from attributes")
        if kept is not None and parameter.name not in kept and "__init__" not in _written(target):
            raise InvalidOption(f"the class job {name} cannot take the InitVar {parameter.name!r}: it is not kept")


def _written(target: type) -> set[str]:
    # A dataclass may have an __init__ of its own (init=False): then its parameters are matched to attributes.
    params = getattr(target, "__dataclass_params__", None)
    return set() if params is None or params.init else {"__init__"}


def _as_finished(registered: type) -> type:
    found: Any = sys.modules.get(registered.__module__)
    for part in registered.__qualname__.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and same_class(registered, found) else registered
