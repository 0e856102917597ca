"""What is there at rest: counts conserve, and indexes agree with records both ways (I7)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tenure.testing.history.events import Dump
from tenure.testing.history.job import JobModel
from tenure.testing.history.verdict import Violation

MODELLED: Final = {"ready": "waiting", "delayed": "waiting", "leased": "leased", "failed": "failed"}


def check_rest(jobs: Mapping[tuple[str, str], JobModel], dumps: Sequence[Dump]) -> list[Violation]:
    """Return what the stores' contents at rest contradict."""
    found: list[Violation] = []
    for dump in dumps:
        found += _counted(dump)
        found += _indexed(dump)
        found += [Violation("I7", f"it is {why}", dump.queue, job_id) for job_id, why in _unlike(jobs, dump)]
        if not any(state in {"ready", "delayed", "leased"} for state in dump.records.values()):
            found += [
                Violation("I9", f"{slot} is still taken, and nothing waits or runs", dump.queue) for slot in dump.slots
            ]
        found += [Violation("I10", f"{what} is left behind", dump.queue) for what in dump.leaked]
    return found


def _counted(dump: Dump) -> list[Violation]:
    present = Counter(dump.records.values())
    return [
        Violation("I7", f"{number} {state} are counted, {present[state]} are there", dump.queue)
        for state, number in dump.counts.items()
        if present[state] != number
    ]


def _indexed(dump: Dump) -> list[Violation]:
    found: list[Violation] = []
    for name, members in dump.indexes.items():
        entries = Counter(members)
        wanted = {job_id for job_id, state in dump.records.items() if name in dump.needed.get(state, ())}
        found += [
            Violation("I7", f"it is {number} times in {name}", dump.queue, job_id)
            for job_id, number in entries.items()
            if number > 1
        ]
        found += [
            Violation("I7", f"it is in {name}, where it must not be", dump.queue, job_id)
            for job_id in entries.keys() - wanted
        ]
        found += [Violation("I7", f"it is missing in {name}", dump.queue, job_id) for job_id in wanted - entries.keys()]
    return found


def _unlike(jobs: Mapping[tuple[str, str], JobModel], dump: Dump) -> list[tuple[str, str]]:
    """Records against the audit, both ways."""
    unlike: list[tuple[str, str]] = []
    for job_id, state in dump.records.items():
        job = jobs.get((dump.queue, job_id))
        told = "never made" if job is None else job.state
        if state in MODELLED and told != MODELLED[state]:
            unlike.append((job_id, f"{state}, and by the audit {told}"))
    for (queue, job_id), job in jobs.items():
        if queue == dump.queue and job.state not in {"none", "gone"} and job_id not in dump.records:
            unlike.append((job_id, f"not there, and by the audit {job.state}"))
    return unlike
