"""The closed sets of options: what each may be, and which of two that speak of the same thing counts.

Options never mix with arguments: ``send.options(delay=30).push("ana@example.com")``. The nearest counts: the push's,
then the decorator's, then the application's, then the environment's; what nobody set travels as unset, and the flags
of the worker that claims the job fill it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict

import msgspec

from tenure.errors import InvalidOption
from tenure.naming import check_job_id, check_job_name, check_queue, shown
from tenure.outcomes import Outcome
from tenure.policies import ErrorClass, Policies, RetryOn, Verdict
from tenure.retry import Backoff, fixed
from tenure.sensitive import Discreet

MAX_SECONDS: Final = 100 * 365.25 * 24 * 3600
"""The longest duration that an option takes: a hundred years. A date may be further away."""
MAX_ATTEMPTS: Final = 1_000_000
PRIORITIES: Final = range(-100, 101)
MAX_META_BYTES: Final = 4096
MAX_META_DEPTH: Final = 4
MAX_KEY: Final = 1024


class PushOptions(TypedDict, total=False):
    """What a push may say besides the arguments."""

    queue: str
    delay: float | timedelta
    """Seconds before it may start: never earlier."""
    at: datetime
    """When it may start, with a time zone; the past means now. In a gap of daylight saving, as PEP 495 reads it."""
    priority: int
    """-100 to 100, higher first."""
    max_attempts: int
    timeout: float | timedelta
    """Seconds that one attempt may take."""
    backoff: float | timedelta
    """Seconds between attempts, always the same."""
    expires_in: float | timedelta
    """Seconds from now after which it is not worth running."""
    unique: bool | str
    """At most one with equal arguments (True), or with this text, waits or runs in the queue; others are ``held``."""
    id: str
    meta: Mapping[str, Any]
    """A small JSON object that travels with the job and that handlers find in ``current().meta``."""
    result_ttl: float | timedelta
    """Seconds that the result is kept."""
    durability: Literal[1, 2, 3]
    connection: str
    transaction: object
    after_commit: object


class AppOptions(TypedDict, total=False):
    """What an application may say for all its jobs."""

    queue: str
    priority: int
    max_attempts: int
    timeout: float | timedelta
    backoff: float | timedelta | Backoff
    expires_in: float | timedelta
    unique: bool | str
    result_ttl: float | timedelta
    durability: Literal[1, 2, 3]
    connection: str


class JobOptions(AppOptions, total=False):
    """What a decorator may say for all pushes of its job."""

    name: str
    aliases: Sequence[str]
    """Former names, under which jobs may still be stored."""
    executor: Literal["async", "thread", "process"]
    retry_on: RetryOn
    """Only exceptions of these classes are tried again; as a mapping, each after its own seconds or backoff."""
    give_up_on: Sequence[ErrorClass]
    """Exceptions of these classes fail the job at once. The most specific class of both lists decides."""
    atomic: str
    """The alias of a Django database: the handler runs in ``current().transaction(alias)``."""


class JobDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Validated options of a decorator over those of its application. None is unset."""

    queue: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    backoff: Backoff | None = None
    expires_in: float | None = None
    unique: bool | str | None = None
    result_ttl: float | None = None
    durability: int | None = None
    connection: str | None = None


class Options(Discreet, frozen=True, kw_only=True):
    """Validated options of a push; durations are seconds. None is unset."""

    queue: str | None = None
    delay: float | None = None
    at: float | None = None
    """Seconds since 1970."""
    priority: int | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    backoff: float | None = None
    expires_in: float | None = None
    unique: bool | str | None = None
    id: str | None = None
    meta: dict[str, Any] | None = None
    result_ttl: float | None = None
    durability: int | None = None
    connection: str | None = None
    transaction: object = None
    after_commit: object = None

    def with_(self, given: Mapping[str, Any]) -> "Options":
        """Return these options, those given over them; raises ``InvalidOption``. A delay replaces a date, and back."""
        if not given:
            return self
        if "delay" in given and "at" in given:
            raise InvalidOption("give delay or at, not both")
        checked = {name: _checked(name, value, _PUSH) for name, value in given.items()}
        if "delay" in checked:
            checked["at"] = None
        elif "at" in checked:
            checked["delay"] = None
        return msgspec.structs.replace(self, **checked)


UNSET: Final = Options()
"""Options of which none is set."""


def defaults(given: Mapping[str, Any], below: JobDefaults | None = None) -> JobDefaults:
    """Return validated options of a decorator or an application, over those below; raises ``InvalidOption``."""
    checked = {name: _checked(name, value, _DEFAULTS) for name, value in given.items()}
    return msgspec.structs.replace(below or JobDefaults(), **checked)


def aliases(given: object) -> tuple[str, ...]:
    """Return validated aliases; raises ``InvalidOption``."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidOption("aliases must be a list of job names")
    return tuple(check_job_name(name) for name in given)


def atomic(given: object) -> str:
    """Return a validated alias; raises ``InvalidOption``."""
    if not isinstance(given, str) or not given:
        raise InvalidOption(f"atomic must be the alias of a Django database, not {shown(given)}")
    return given


def policies(given: Mapping[str, Any]) -> Policies:
    """Return the policies that ``retry_on`` and ``give_up_on`` make; raises ``InvalidOption``."""
    rules: dict[ErrorClass, Verdict] = {}
    if "retry_on" in given:
        retried = given["retry_on"]
        for kind in _error_classes("retry_on", retried):
            wait = _backoff("retry_on", retried[kind]) if isinstance(retried, Mapping) else None
            rules[kind] = Verdict(backoff=wait)
    for kind in _error_classes("give_up_on", given["give_up_on"]) if "give_up_on" in given else ():
        if kind in rules:
            raise InvalidOption(f"{kind.__qualname__} is in retry_on and in give_up_on: which one counts?")
        rules[kind] = Verdict(final=True)
    return Policies(tuple(rules.items()), Verdict(final="retry_on" in given))


def _error_classes(name: str, value: object) -> list[ErrorClass]:
    if isinstance(value, str) or not isinstance(value, Sequence | Mapping) or not value:
        raise InvalidOption(f"{name} must be a tuple of exception classes, and not an empty one")
    classes = list(value)
    for kind in classes:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise InvalidOption(f"{name} must be exception classes: {shown(kind)} is none")
        if issubclass(kind, Outcome):
            raise InvalidOption(f"{name} cannot have {kind.__qualname__}: what a handler decides stands above it")
    return classes


# ---------------------------------------------------------------------------------------------------------- one option


def _checked(name: str, value: Any, rules: "Mapping[str, Rule]") -> Any:
    rule = rules.get(name)
    if rule is None:
        raise InvalidOption(f"there is no option {shown(name)}; the options are {', '.join(sorted(rules))}")
    return rule(name, value)


def _duration(name: str, value: Any, *, zero: bool) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    # bool is an int to Python and a mistake here. NaN fails every comparison, so it is refused too.
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= MAX_SECONDS:
        raise InvalidOption(f"{name} must be seconds (or a timedelta) from 0 to {MAX_SECONDS:.0f}, not {shown(value)}")
    if not zero and seconds == 0:
        raise InvalidOption(f"{name} must be more than 0 seconds")
    return float(seconds)


def _delay(name: str, value: Any) -> float:
    return _duration(name, value, zero=True)


def _span(name: str, value: Any) -> float:
    return _duration(name, value, zero=False)


def seconds(name: str, value: Any) -> float:
    """Return a validated duration above 0, in seconds; raises ``InvalidOption``."""
    return _span(name, value)


def _at(name: str, value: Any) -> float:
    if not isinstance(value, datetime):
        raise InvalidOption(f"{name} must be a datetime, not {shown(value)}")
    if value.utcoffset() is None:
        raise InvalidOption(f"{name} must have a time zone: a naive datetime is another moment on every machine")
    return value.timestamp()


def _whole(name: str, value: Any, allowed: range) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        raise InvalidOption(f"{name} must be a whole number from {allowed[0]} to {allowed[-1]}, not {shown(value)}")
    return int(value)


def _priority(name: str, value: Any) -> int:
    return _whole(name, value, PRIORITIES)


def _attempts(name: str, value: Any) -> int:
    return _whole(name, value, range(1, MAX_ATTEMPTS + 1))


def _durability(name: str, value: Any) -> int:
    return _whole(name, value, range(1, 4))


def _backoff(name: str, value: Any) -> Backoff:
    return value if isinstance(value, Backoff) else fixed(_delay(name, value))


def _unique(name: str, value: Any) -> bool | str:
    if isinstance(value, bool) or (isinstance(value, str) and 0 < len(value) <= MAX_KEY):
        return value
    raise InvalidOption(f"{name} must be True, False or a key of 1 to {MAX_KEY} characters")


def _meta(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidOption(f"{name} must be a JSON object, not {type(value).__name__}")
    copy = _json(name, value, MAX_META_DEPTH)
    try:
        size = len(msgspec.json.encode(copy))
    except UnicodeEncodeError:
        raise InvalidOption(f"{name} holds text that has no UTF-8 form") from None
    if size > MAX_META_BYTES:
        raise InvalidOption(f"{name} is {size} bytes, over the limit of {MAX_META_BYTES}")
    return copy  # type: ignore[no-any-return] # a mapping was copied, so it is a dict


def _json(name: str, value: Any, depth: int) -> Any:
    # A copy, so that what the caller changes later does not change the job.
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # of a subclass (an Enum, say) its text, which is what comes back
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if depth and isinstance(value, list | tuple):
        return [_json(name, item, depth - 1) for item in value]
    if depth and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str.__str__(key): _json(name, item, depth - 1) for key, item in value.items()}
    raise InvalidOption(
        f"{name} must be plain JSON of at most {MAX_META_DEPTH} levels: a {type(value).__name__} in it is not"
    )


def _connection(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.replace("-", "_").isidentifier():
        raise InvalidOption(f"{name} {shown(value)} is not the name of a connection")
    return value


def _queue(_: str, value: Any) -> str:
    return check_queue(value)


def _id(_: str, value: Any) -> str:
    return check_job_id(value)


def _given(name: str, value: Any) -> Any:
    if value is None:
        raise InvalidOption(f"{name} must not be None: leave it out")
    return value


Rule = Callable[[str, Any], Any]

_COMMON: Final[Mapping[str, Rule]] = {
    "queue": _queue,
    "priority": _priority,
    "max_attempts": _attempts,
    "timeout": _span,
    "expires_in": _span,
    "unique": _unique,
    "result_ttl": _span,
    "durability": _durability,
    "connection": _connection,
}
_DEFAULTS: Final[Mapping[str, Rule]] = {**_COMMON, "backoff": _backoff}
_PUSH: Final[Mapping[str, Rule]] = {
    **_COMMON,
    "delay": _delay,
    "at": _at,
    "backoff": _delay,
    "id": _id,
    "meta": _meta,
    "transaction": _given,
    "after_commit": _given,
}
