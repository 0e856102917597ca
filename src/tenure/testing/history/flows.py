"""No job of a composition begins before those that it waits for have ended, and each is made once (I8)."""

from collections.abc import Mapping, Sequence

from tenure.testing.history.events import Flow
from tenure.testing.history.job import JobModel
from tenure.testing.history.verdict import Violation


def check_flows(
    flows: Sequence[Flow], jobs: Mapping[tuple[str, str], JobModel], begun: Mapping[tuple[str, str], int]
) -> list[Violation]:
    """Return what compositions contradict. ``begun`` tells the audit line of each job's first grant."""
    found: list[Violation] = []
    for flow in flows:
        for child, parents in flow.after.items():
            key = (flow.queue, child)
            job = jobs.get(key)
            if job is not None and job.pushes > 1:
                found.append(Violation("I8", f"{flow.composition} made it {job.pushes} times", *key))
            start = begun.get(key)
            if start is None:
                continue
            for parent in parents:
                before = jobs.get((flow.queue, parent))
                ended = None if before is None else before.ended_at
                if ended is None or ended > start:
                    found.append(Violation("I8", f"it began before {parent} had ended", *key))
        if flow.size is not None and flow.counted is not None and flow.counted != flow.size:
            found.append(Violation("I8", f"{flow.composition} counts {flow.counted} ends of {flow.size}", flow.queue))
    return found
