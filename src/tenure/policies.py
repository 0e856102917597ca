"""What a job says of its handler's exceptions: which are tried again, after how long, and which end the job at once."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec

from tenure.retry import Backoff

ErrorClass = type[BaseException]
RetryOn = Sequence[ErrorClass] | Mapping[ErrorClass, float | timedelta | Backoff]
"""Classes of exceptions, or what their retries wait for by class."""


class Verdict(NamedTuple):
    """What a job's policies make of an exception."""

    final: bool = False
    """The job fails at once, whatever attempts are left."""
    backoff: Backoff | None = None
    """What another attempt waits for; None leaves it to the job."""


class Policies(msgspec.Struct, frozen=True):
    """The policies of one job, checked."""

    rules: tuple[tuple[ErrorClass, Verdict], ...] = ()
    otherwise: Verdict = Verdict()
    """For exceptions of other classes."""

    def judge(self, error: BaseException) -> Verdict:
        """Return what becomes of an attempt that raised this: its most specific class that has a rule decides.

        Never raises. A group is judged by its own class, not by its members; the exceptions with which a handler
        decides its outcome itself (``Retry``, ``GiveUp``, …) are not for policies.
        """
        # By identity, and not by what a metaclass may have made of __mro__ and __eq__.
        for kind in type.mro(type(error)) if self.rules else ():
            for ruled, verdict in self.rules:
                if ruled is kind:
                    return verdict
        return self.otherwise


NO_POLICIES: Final = Policies()
