"""Every error that tenure raises, in one tree.

::

    TenureError
    ├── ConfigurationError          a setting is missing or wrong; the message names its key
    │   ├── MissingExtra            an optional part is not installed; the message names the extra
    │   └── AppNotFound             the application could not be imported
    ├── Refused (ValueError)        bad input, refused before anything was sent
    │   ├── InvalidOption           an option, a name or a number that cannot be right
    │   ├── NotEncodable            an argument that has no wire form; names the argument and the path inside it
    │   ├── PayloadTooLarge         the encoded job is over the limit, or nested too deeply
    │   ├── NotRegistered           the function or class is not a job of this application
    │   ├── NotSupported            this driver cannot do that; names the driver and the feature
    │   └── WrongContext            an async call without an event loop, or a blocking call inside one
    ├── StoreError                  the store could not be used
    │   ├── ConnectionFailed        no connection; nothing was sent
    │   ├── StoreRefused            the store answered with a refusal (out of memory, read only, …); nothing was written
    │   ├── OutcomeUnknown          sent, and no answer came; it may or may not have happened
    │   └── DurabilityNotReached    stored on the server, and not confirmed on its disk or its replicas in time
    ├── StaleLease                  the lease was settled, reclaimed or cancelled; nothing was written
    ├── Undecodable                 a stored record cannot be turned into a call
    │   └── NewerEnvelope           written by a newer version of tenure; a newer worker can read it
    ├── PushIncomplete              a bulk push of which some jobs are not known to be stored
    ├── CompositionIncomplete       a composition that could not be stored whole, and of which nothing runs
    └── ResultUnavailable           a job's result cannot be had
        ├── JobGone                 the job ended and its result was not kept
        └── JobFailed               the job ended without a result

What each tells the reader: what happened, what was not lost, and what to do. None carries a payload or a secret.
"""

from collections.abc import Sequence
from typing import Any


class TenureError(Exception):
    """The root of every error of tenure."""


class ConfigurationError(TenureError):
    """A setting is missing or wrong."""

    def __init__(self, key: str, problem: str) -> None:
        self.key = key
        super().__init__(f"{key}: {problem}")


class MissingExtra(ConfigurationError):
    """An optional part of tenure is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        self.extra = extra
        super().__init__(f"tenure[{extra}]", f"{needed_for} needs it; install it with: pip install 'tenure[{extra}]'")


class AppNotFound(ConfigurationError):
    """The application named on the command line or in the configuration could not be imported."""


class Refused(TenureError, ValueError):
    """Bad input, refused before anything was sent."""


class InvalidOption(Refused):
    """An option, a name or a number that cannot be right."""


class NotEncodable(Refused):
    """An argument that has no wire form."""

    def __init__(self, argument: str, path: str, problem: str) -> None:
        self.argument = argument
        self.path = path
        super().__init__(f"argument {argument!r} cannot be sent: {problem} at {argument}{path}; nothing was sent")


class PayloadTooLarge(Refused):
    """The encoded job is over the size limit, or nested too deeply."""


class NotRegistered(Refused):
    """The function or class is not a job of this application."""


class NotSupported(Refused):
    """The driver cannot do what was asked; nothing was sent."""

    def __init__(self, driver: str, feature: str, hint: str = "") -> None:
        self.driver = driver
        self.feature = feature
        super().__init__(f"the {driver!r} driver does not support {feature}; nothing was sent{hint and '; ' + hint}")


class WrongContext(Refused, RuntimeError):
    """An async call without a running event loop, or a blocking call inside one; nothing was sent."""


class StoreError(TenureError):
    """The store could not be used."""


class ConnectionFailed(StoreError):
    """No connection to the store; nothing was sent."""


class StoreRefused(StoreError):
    """The store answered with a refusal; nothing was written."""

    def __init__(self, code: str, problem: str) -> None:
        self.code = code
        self.problem = problem
        super().__init__(f"the store refused the call ({code}): {problem}; nothing was written")


class OutcomeUnknown(StoreError):
    """The call was sent and no answer came: it may or may not have happened."""


class DurabilityNotReached(StoreError):
    """Jobs are stored on the server, and were not confirmed on its disk or its replicas in time.

    They will run, unless the server fails before it has caught up. ``ids`` names them: pushing the same calls with
    these ids again asks for the confirmation again, and makes no second job.
    """

    def __init__(self, durability: int, problem: str, ids: Sequence[str] = ()) -> None:
        self.durability = durability
        self.problem = problem
        self.ids: tuple[str, ...] = tuple(ids)
        where = "on its disk" if durability == 2 else "on its replicas"
        super().__init__(
            f"stored on the server, but not confirmed {where} (durability {durability}): {problem}; pushing again with "
            "the same id asks again and makes no second job"
        )


class StaleLease(TenureError):
    """The lease was settled, reclaimed or cancelled; nothing was written."""


class Undecodable(TenureError):
    """A stored record cannot be turned into a call. The message never holds any of its content."""


class NewerEnvelope(Undecodable):
    """The record was written by a newer version of tenure; a newer worker can read it."""


class PushIncomplete(TenureError):
    """A bulk push of which some jobs are not known to be stored.

    ``outcomes`` has one entry a job, in order (see ``tenure.queue.Pushed``); pushing the same calls again with the
    same ids stores only what is missing.
    """

    def __init__(self, message: str, outcomes: Sequence[Any]) -> None:
        self.outcomes = outcomes
        super().__init__(message)


class CompositionIncomplete(TenureError):
    """A composition that could not be stored whole and was given up: nothing of it runs, now or later.

    What was stored of it is forgotten after a day. Pushing it again, without its ``id`` or with another one, does no
    harm. The error's cause tells what happened.
    """

    def __init__(self, composition_id: str, problem: str) -> None:
        self.composition_id: str = composition_id
        super().__init__(
            f"composition {composition_id} was given up while it was stored, and nothing of it runs: {problem}"
        )


class ResultUnavailable(TenureError):
    """A job's result cannot be had."""


class JobGone(ResultUnavailable):
    """The job ended and nothing of it was kept."""


class JobFailed(ResultUnavailable):
    """The job ended without a result: it failed, expired or was cancelled.

    ``state`` says which. ``reason`` and ``type`` are those of the failure, as far as the store still knows them: why,
    and the class of the exception; its text and traceback are in the failed store alone.
    """

    def __init__(self, message: str, *, state: str = "failed", reason: str = "", type: str = "") -> None:  # noqa: A002
        self.state: str = state
        self.reason: str = reason
        self.type: str = type
        super().__init__(message)
