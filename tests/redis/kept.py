"""What the scripts must keep of jobs: the part of the model that knows of ends and progress."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Kept:
    values: dict[str, str] = field(default_factory=dict)
    until: dict[str, int] = field(default_factory=dict)

    def end(self, ends: list[tuple[Any, str, str]], now: int) -> None:
        """Take (job, letter, result) of those that have ended in one step."""
        noted = [(job, letter, result) for job, letter, result in ends if job.rest]
        if noted:
            self.forget_old(now)
        for job, letter, result in noted:
            until = now + int(job.rest[1:])
            self.values[job.id] = f"{letter}|{job.inc}|{now}|{until}|{result}"
            self.until[job.id] = until

    def forget_old(self, now: int) -> int:
        old = [job_id for job_id, until in self.until.items() if until <= now]
        for job_id in old:
            self.drop(job_id)
        return len(old)

    def drop(self, job_id: str) -> None:
        self.values.pop(job_id, None)
        self.until.pop(job_id, None)

    def report(self, reports: list[tuple[Any, str]]) -> str:
        """Take (job, progress), the job None where the lease is not current; return the answer."""
        for job, told in reports:
            if job is not None:
                self.values[job.id] = f"p|{job.inc}|{told}"
        return "".join("n" if job is None else "y" for job, _ in reports)

    def read(self, ids: list[str], now: int) -> list[bytes]:
        return [str(now).encode(), *(self.values.get(job_id, "").encode() for job_id in ids)]

    def state(self, job_id: str, now: int) -> str:
        if self.until.get(job_id, 0) <= now:
            return "g"
        letter = self.values[job_id][0]
        return "s" if letter == "n" else letter


def ended(job: Any, verb: str, detail: str, kind: str, *, requested: bool) -> list[tuple[Any, str, str]]:
    """Return (job, letter, result) if this settlement ends the job and is not a plain acknowledgement."""
    if verb == "k":
        return [(job, "n" if kind else "s", detail)]
    if verb == "d" or (verb == "r" and requested):
        return [(job, "c", "")]
    return [(job, verb, kind)] if verb in "fe" else []


def as_told(value: Any) -> Any:
    """Turn names into bytes, and (score, member) pairs round, as a client tells them."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return {as_told(name): as_told(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return as_told(value[1]), value[0]
    return [as_told(each) for each in value] if isinstance(value, list) else value
