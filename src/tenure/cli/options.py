"""Options of the commands, and how their values are checked."""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from tenure.errors import InvalidOption
from tenure.naming import check_job_id, check_job_name, check_namespace, check_queue, shown

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Check = Callable[[click.Context, click.Parameter, Any], Any]

_SPOKEN = ("kB", "MB", "GB", "KiB", "MiB", "GiB")
_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(rf"(\d{{1,18}}(?:\.\d{{1,9}})?) ?({'|'.join(_UNITS)})", re.ASCII | re.IGNORECASE)


def setting(*declarations: str, **attributes: Any) -> Callable[[F], F]:
    """Declare an option that the environment may set as well, as ``TENURE_<OPTION>``."""
    return click.option(*declarations, **{"envvar": _variable(declarations), **attributes})


def _variable(declarations: tuple[str, ...]) -> str:
    """Name the variable after the long option, which is what people see, and not after its parameter."""
    [name] = [name.partition("/")[0] for name in declarations if name.startswith("--")]
    return f"TENURE_{name[2:].replace('-', '_').upper()}"


def spoken(*declarations: str, **attributes: Any) -> Callable[[F], F]:
    """Declare an option that only the command line sets: it confirms something, or chooses what is changed."""
    return click.option(*declarations, **attributes)


def seconds(*declarations: str, least: float = 0.0, above: bool = False, **attributes: Any) -> Callable[[F], F]:
    """Declare a setting in finite seconds of at least ``least``, or above it."""
    check = finite("seconds", least=least, above=above)
    return setting(*declarations, type=float, callback=check, metavar="SECONDS", **attributes)


def size(*declarations: str, **attributes: Any) -> Callable[[F], F]:
    """Declare a setting in bytes, which may be written with a unit."""
    return setting(*declarations, callback=_bytes, metavar="SIZE", **attributes)


def _bytes(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    count = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if count < 1:
        raise click.BadParameter(f"{shown(value)} is not a size: bytes, or a number with {', '.join(_SPOKEN)}")
    return count


def finite(unit: str, *, least: float = 0.0, above: bool = False) -> Check:
    """Return the check of a finite number of at least ``least``, or above it."""

    def check(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
        # Not a range of click's: NaN is neither below nor above anything.
        if value is None or (math.isfinite(value) and (value > least or (value == least and not above))):
            return value
        relation = "more than" if above else "at least"
        raise click.BadParameter(f"{value} is not a finite number of {relation} {least:g} {unit}")

    return check


def queues(*declarations: str, **attributes: Any) -> Callable[[F], F]:
    """Declare a setting of queue names separated by commas; the order counts, a repetition does not."""
    return setting(*declarations, callback=_queues, metavar="NAME[,NAME]", **attributes)


def names(*declarations: str, **attributes: Any) -> Callable[[F], F]:
    """Declare a setting of connections' names separated by commas, in any order."""
    return setting(*declarations, callback=_names, metavar="NAME[,NAME]", **attributes)


def _names(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))


def chosen_queues(command: F) -> F:
    """Add ``--queue`` to a command that changes something: which queues, only the command line says."""
    option = spoken(
        "-q", "--queue", "names", callback=_queues, metavar="NAME[,NAME]", help="Only these queues.  [default: all]"
    )
    return option(command)


def _queues(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    return _refusing(lambda: tuple(dict.fromkeys(check_queue(name.strip()) for name in value.split(","))))


def queue_option(command: F) -> F:
    """Add ``--queue`` to a command about one thing that may be in any queue."""
    return spoken("-q", "--queue", callback=_one_queue, metavar="NAME", help="The queue.  [default: any]")(command)


def _one_queue(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _refusing(lambda: check_queue(value))


class Claimed(NamedTuple):
    """The queues that a worker claims from."""

    names: tuple[str, ...] | None = None
    weights: dict[str, int] | None = None
    """Their shares; None is strict order."""


def claimed_queues(command: F) -> F:
    """Add ``--queues``: names in strict order, or each with its weight."""
    option = setting(
        "-q",
        "--queues",
        "claimed",
        callback=_claimed,
        metavar="NAME[:WEIGHT],...",
        help="Where to claim from, the first one first; with weights, in shares.  "
        "[default: every registered job's queue]",
    )
    return option(command)


def _claimed(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Claimed:
    if value is None or ":" not in value:
        return Claimed(_queues(ctx, parameter, value))
    weights: dict[str, int] = {}
    for part in value.split(","):
        name, colon, weight = (text.strip() for text in part.partition(":"))
        queue = _refusing(partial(check_queue, name))
        if not colon:
            raise click.BadParameter(f"queue {queue} has no weight and others have: give each one, or none")
        if queue in weights:
            raise click.BadParameter(f"queue {queue} is named twice")
        # isdecimal alone would take other scripts' digits, too.
        if not (weight.isascii() and weight.isdecimal() and len(weight) <= 9):
            raise click.BadParameter(f"the weight of queue {queue} is not a whole number")
        weights[queue] = int(weight)
    return Claimed(tuple(weights), weights)


def queue_names(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Check an argument of queue names; repeated ones are named once."""
    return _refusing(lambda: tuple(dict.fromkeys(map(check_queue, value))))


def queue_name(_: click.Context, __: click.Parameter, value: str) -> str:
    """Check the name of one queue."""
    return _refusing(lambda: check_queue(value))


def job_name(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Check the name of a job, if there is one."""
    return None if value is None else _refusing(lambda: check_job_name(value))


def job_ids(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Check an argument of job ids; repeated ones are named once."""
    return _refusing(lambda: tuple(dict.fromkeys(map(check_job_id, value))))


def refuse_misplaced(ctx: click.Context) -> None:
    """Refuse options that stand before a subcommand, which would not see them."""
    for parameter in ctx.command.params:
        if parameter.name and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"Put {parameter.opts[-1]} behind {ctx.invoked_subcommand}")


def _refusing(check: Callable[[], T]) -> T:
    try:
        return check()
    except InvalidOption as error:
        raise click.BadParameter(str(error)) from None


def _namespace(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _refusing(lambda: check_namespace(value))


json_option: Callable[[Callable[..., Any]], Callable[..., Any]] = setting(
    "--json", "as_json", is_flag=True, envvar="TENURE_JSON", help="Print JSON instead of a table."
)


def store_options(command: F) -> F:
    """Add what tells an operator's command which store to use, when the environment does not say it."""
    add = setting("--connection", default="default", show_default=True, help="The named connection.")
    return store_options_without_connection(add(command))


def store_options_without_connection(command: F) -> F:
    """Add the same for a command that is about several connections, or about none."""
    for add in (
        # The environment's own keys for these two are read by the configuration, as workers read them.
        spoken(
            "--url",
            metavar="URL",
            help="The store; a password in it can be seen by others on this host.  [env var: TENURE_URL]",
        ),
        spoken(
            "--namespace",
            callback=_namespace,
            help="The namespace of the application.  [env var: QUEUE_NAMESPACE]",
        ),
        spoken("--app", metavar="MODULE:ATTRIBUTE", help="Use the store of this application, which is imported."),
    ):
        command = add(command)
    return command
