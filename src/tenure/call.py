"""A call is a value: one job, its encoded arguments, the options of its push, and the steps that follow it."""

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, Unpack, overload

from msgspec import Raw

from tenure.definition import JobDefinition
from tenure.errors import InvalidOption, NotRegistered
from tenure.naming import shown
from tenure.options import UNSET, Options, PushOptions

Q = ParamSpec("Q")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")


class Registered:
    """What stands for a registered function."""

    definition: JobDefinition


class Step(NamedTuple):
    """A call whose first argument is the result of the one before it; its other arguments are encoded."""

    definition: JobDefinition
    args: Raw
    kwargs: Raw
    overrides: Options

    def __repr__(self) -> str:
        return f"<step {self.definition.name}>"

    def __rich_repr__(self) -> list[Any]:
        return [self.definition.name]


class Call(Generic[R_co]):
    """A call of a job that was not pushed yet. Immutable: its arguments were encoded when it was made."""

    __slots__ = ("args", "definition", "kwargs", "overrides", "steps")

    def __init__(
        self,
        definition: JobDefinition,
        args: Raw,
        kwargs: Raw,
        overrides: Options = UNSET,
        steps: tuple[Step, ...] = (),
    ) -> None:
        self.definition: JobDefinition = definition
        self.args: Raw = args
        self.kwargs: Raw = kwargs
        self.overrides: Options = overrides
        self.steps: tuple[Step, ...] = steps

    @property
    def name(self) -> str:
        """The name of its job."""
        return self.definition.name

    def options(self, **options: Unpack[PushOptions]) -> "Call[R_co]":
        """Return the call with these options over those it has; raises ``InvalidOption``.

        Of a call with steps they are those of its first job, but for ``result_ttl``, which is that of its last. A step
        has its own: ``first.bind().then(second.options(queue="slow"))``.
        """
        if not self.steps or "result_ttl" not in options:
            return Call(self.definition, self.args, self.kwargs, self.overrides.with_(options), self.steps)
        ttl = options.pop("result_ttl")
        last = self.steps[-1]
        last = last._replace(overrides=last.overrides.with_({"result_ttl": ttl}))
        steps = (*self.steps[:-1], last)
        return Call(self.definition, self.args, self.kwargs, self.overrides.with_(options), steps)

    @overload
    def then(
        self, nxt: Callable[Concatenate[R_co, Q], Coroutine[Any, Any, S]], /, *args: Q.args, **kwargs: Q.kwargs
    ) -> "Call[S]": ...
    @overload
    def then(self, nxt: Callable[Concatenate[R_co, Q], S], /, *args: Q.args, **kwargs: Q.kwargs) -> "Call[S]": ...
    def then(self, nxt: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the call followed by another, whose first argument is this one's result.

        Raises ``NotRegistered`` when that is not a job: the types cannot tell a plain function from a job. Raises
        ``InvalidOption`` and ``NotEncodable`` for its other arguments, and for a job that cannot pass its result on.
        """
        if not isinstance(nxt, Registered):
            raise NotRegistered(f"then() takes a job made with @app.job, not {shown(getattr(nxt, '__name__', nxt))}")
        definition = nxt.definition
        before = self.steps[-1].definition if self.steps else self.definition
        if before.atomic is not None:
            raise InvalidOption(
                f"{before.name} is atomic: it is acknowledged before what it returns is known, which so cannot be "
                f"passed on to {definition.name}; nothing was sent"
            )
        stored_args, stored_kwargs = definition.encode(args, kwargs, behind=1)
        step = Step(definition, stored_args, stored_kwargs, getattr(nxt, "overrides", UNSET))
        return Call(self.definition, self.args, self.kwargs, self.overrides, (*self.steps, step))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Call):
            return NotImplemented
        return (
            self.definition is other.definition
            and bytes(self.args) == bytes(other.args)
            and bytes(self.kwargs) == bytes(other.kwargs)
            and self.overrides == other.overrides
            and self.steps == other.steps
        )

    def __hash__(self) -> int:
        return hash((self.definition.name, bytes(self.args), bytes(self.kwargs)))

    def __repr__(self) -> str:
        codec = self.definition.codec
        arguments = codec.shown(*codec.decode(self.args, self.kwargs))
        return " then ".join([f"<call {self.name}({arguments})>", *(step.definition.name for step in self.steps)])
