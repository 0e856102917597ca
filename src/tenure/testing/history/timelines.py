"""What happened to one job, line by line."""

from collections.abc import Sequence

from tenure.testing.history.events import Audit, Call, Effect


def timeline(queue: str, job_id: str, audit: Sequence[Audit], calls: Sequence[Call], effects: Sequence[Effect]) -> str:
    """Return all that was recorded of a job: the store's lines in the store's order, then the others by their times."""
    lines = [f"{queue}/{job_id}, in the store's order:"]
    first = 0
    for event in audit:
        if event.queue == queue and (event.id == job_id or event.what == "clear"):
            first = first or event.at
            lines.append(f"  {event.number:>8} {(event.at - first) / 1e6:10.3f} s  {_transition(event)}")
    others: list[tuple[int, str]] = []
    for call in calls:
        for one in call.subjects:
            if (one.queue, one.id) == (queue, job_id):
                what = f"{call.process}#{call.number} {call.operation} {call.phase}"
                others.append((call.at, f"{what} {one.verb} {one.outcome} {one.token} {call.error}"))
    others += [
        (effect.at, f"{effect.process} handler {effect.what}, fence {effect.fence}, attempt {effect.attempt}")
        for effect in effects
        if (effect.queue, effect.id) == (queue, job_id)
    ]
    lines.append("and by the clients' clock:")
    start = min((at for at, _ in others), default=0)
    lines += [f"  {(at - start) / 1e6:19.3f} s  {' '.join(text.split())}" for at, text in sorted(others)]
    return "\n".join(lines)


def _transition(event: Audit) -> str:
    parts = [event.what, f"incarnation {event.incarnation}"]
    for name in ("token", "fence", "deliveries", "free", "crashes"):
        value = getattr(event, name)
        if value not in {None, ""}:
            parts.append(f"{name} {value}")
    if event.until is not None:
        parts.append(f"until {(event.until - event.at) / 1e6:+.3f} s")
    return ", ".join(parts)
