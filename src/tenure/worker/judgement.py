"""What an attempt's end says about its job, as data, so that it may come out of another process."""

from typing import Literal

from tenure.errors import TenureError
from tenure.outcomes import Discard, GiveUp, Retry, Snooze
from tenure.queue import Failure
from tenure.retry import Backoff
from tenure.sensitive import Discreet


class Judgement(Discreet, frozen=True, gc=False):
    """What a handler's exception means: it was judged where the exception was."""

    action: Literal["again", "give-up", "snooze", "discard"]
    failure: Failure | None = None
    """What the exception was; None where the attempt did not fail."""
    after: float | None = None
    """Seconds that the handler asked for."""
    backoff: Backoff | None = None
    """What its job's policies say of another attempt's delay; None leaves that to the job."""
    decision: bool = False
    """Whether the handler raised an outcome, to say so itself."""


class HandlerRaised(TenureError):
    """A handler in a process of its own raised something. It stays there; this tells of it, as data."""

    def __init__(self, judgement: Judgement) -> None:
        self.judgement: Judgement = judgement
        failure = judgement.failure or Failure(reason="exception")
        super().__init__(f"{failure.type}: {failure.message}")


class ProcessDied(TenureError):
    """The process of a handler ended in the middle of it."""

    def __init__(self, how: str) -> None:
        self.how: str = how
        """What a sentence about the process goes on with: by which signal, or with which code."""
        super().__init__(f"the process {how}")


class ProcessNotStarted(TenureError):
    """No process could be had for a job, so it has not run."""


class NoWireForm:
    """Stands for a result that could not come out of its process."""

    def __init__(self, problem: str) -> None:
        self.problem: str = problem

    def __repr__(self) -> str:
        return f"<no result: {self.problem}>"


def raised(judgement: Judgement) -> Exception:
    """Return the exception that stands for a judgement: an outcome where the handler raised one."""
    told = HandlerRaised(judgement)
    if not judgement.decision:
        return told
    reason = judgement.failure.message if judgement.failure is not None else ""
    decision: Exception
    match judgement.action:
        case "again":
            decision = Retry(reason, after=judgement.after)
        case "give-up":
            decision = GiveUp(reason)
        case "snooze":
            decision = Snooze(judgement.after or 0.0)
        case _:
            decision = Discard()
    decision.__cause__ = told
    return decision
