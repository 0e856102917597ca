"""It comes back (I10); and whether a run has shown anything at all."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tenure.testing.history.events import Call, Dump, Fault, Worker
from tenure.testing.history.verdict import Violation


def coming_back(
    workers: Sequence[Worker], faults: Sequence[Fault], calls: Sequence[Call], margin: float
) -> list[Violation]:
    """Return the workers that lived on after a fault and settled nothing within the margin."""
    settled: defaultdict[str, list[int]] = defaultdict(list)
    for call in calls:
        if call.operation == "settle" and call.phase == "ok":
            settled[call.process].append(call.at)
    for times in settled.values():
        times.sort()
    found: list[Violation] = []
    for fault in faults:
        by = fault.ended + int(margin * 1e6)
        for worker in workers:
            # One that began or ended within the margin was not given its time.
            if worker.since > fault.ended or worker.until < by:
                continue
            times = settled[worker.process]
            place = bisect_left(times, fault.ended)
            if place == len(times) or times[place] > by:
                text = f"{worker.process} settled nothing in the {margin} s after {fault.name}"
                found.append(Violation("I10", text))
    return found


def doubts(
    faults: Sequence[Fault], calls: Sequence[Call], dumps: Sequence[Dump], overlap: int, wanted: int
) -> list[str]:
    """Return why a run proves nothing."""
    unsure: list[str] = []
    if not dumps:
        unsure.append("nobody looked at the store at rest")
    unsure += [f"{dump.queue} was not drained" for dump in dumps if not dump.drained]
    if len(faults) < wanted:
        unsure.append(f"{len(faults)} faults, where {wanted} were to be")
    begun = sorted(call.at for call in calls if call.phase == "invoke")
    for fault in faults:
        if not fault.proof:
            unsure.append(f"nothing shows that {fault.name} took effect")
        met = bisect_right(begun, fault.ended) - bisect_left(begun, fault.began)
        if (met if fault.overlap is None else fault.overlap) < overlap:
            unsure.append(f"{fault.name} met {met} calls, where {overlap} were to be")
    return unsure
