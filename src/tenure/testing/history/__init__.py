"""Judges recorded runs: ten invariants, checked job by job, with a verdict of valid, invalid or unknown.

For authors of drivers: record what clients call and what they are told (``Call``), what the store did in its own order
(``Audit``), the faults with proof that they took effect (``Fault``) and the store at rest (``Dump``), and ``check`` it.
Nothing here touches a store; ``read`` reads JSON lines. See ``docs/reliability.md``.
"""

from tenure.testing.history.checking import History, Terms, check
from tenure.testing.history.events import (
    Audit,
    Call,
    Dump,
    Effect,
    Event,
    Fault,
    Flow,
    Subject,
    Tally,
    Worker,
    encoded,
    parsed,
    read,
)
from tenure.testing.history.verdict import INVARIANTS, Losses, Verdict, Violation

__all__ = [
    "INVARIANTS",
    "Audit",
    "Call",
    "Dump",
    "Effect",
    "Event",
    "Fault",
    "Flow",
    "History",
    "Losses",
    "Subject",
    "Tally",
    "Terms",
    "Verdict",
    "Violation",
    "Worker",
    "check",
    "encoded",
    "parsed",
    "read",
]
