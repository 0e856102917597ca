"""What a store may have forgotten of what it told: then nobody knows what became of it."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from tenure.testing.history.events import Call, Fault


def forgotten(at: int, faults: Sequence[Fault], around: float) -> bool:
    """Tell whether this time lies in a fault that forgets, or so many seconds before or after one."""
    apart = int(around * 1e6)
    return any(fault.forgets and fault.began - apart <= at <= fault.ended + apart for fault in faults)


def believed(calls: Iterable[Call], faults: Sequence[Fault], around: float) -> Iterator[Call]:
    """Yield the calls; the answers that the store may have forgotten are unknown outcomes."""
    some = [fault for fault in faults if fault.forgets]
    for call in calls:
        if call.phase != "invoke" and some and forgotten(call.at, some, around):
            yield replace(call, phase="info", subjects=tuple(replace(one, outcome="") for one in call.subjects))
        else:
            yield call
