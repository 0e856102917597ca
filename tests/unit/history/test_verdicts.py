"""What a check says besides: unknown, losses, timelines; and that it reads what was written."""

import pathlib
from collections.abc import Callable

import pytest

from tenure.testing.history import Call, Event, Flow, Verdict, check, encoded, read
from tests.unit.history.runs import Q, Run, broken

UNKNOWN: list[tuple[str, Callable[[Run], Verdict]]] = [
    ("nobody looked", lambda run: run.ran("a").judged()),
    ("nothing happened", lambda run: run.at_rest()),
    ("no drain finished", lambda run: run.ran("a").pushed("b").at_rest({"b": "ready"}, drained=False)),
    ("a fault without proof", lambda run: run.ran("a").fault(proof="").at_rest()),
    ("a fault that met nothing", lambda run: run.ran("a").fault(overlap=0).at_rest()),
    ("a fault that came when nobody called", lambda run: run.ran("a").wait(5).fault(overlap=None).at_rest()),
]


@pytest.mark.parametrize("made", [one[1] for one in UNKNOWN], ids=[one[0] for one in UNKNOWN])
def test_a_run_that_shows_nothing_is_unknown(made: Callable[[Run], Verdict]) -> None:
    verdict = made(Run())
    assert verdict.decision == "unknown", str(verdict)
    assert verdict.doubts


def test_too_few_faults_are_unknown() -> None:
    assert Run(faults=1).ran("a").at_rest().decision == "unknown"


def test_losses_are_told_by_their_place() -> None:
    run = Run()
    for name in "abcdefg":
        if name in "ac":
            run.told("push", "stored", name, by="p")
        elif name in "fg":
            run.pushed(name)
        else:
            run.ran(name).pushed(f"{name}2", by="p").granted(f"{name}2").taken("ack", f"{name}2")
    verdict = run.at_rest()
    (lost,) = (one for one in verdict.losses if one.writer == "p")
    assert (lost.prefix, lost.middle, lost.suffix) == (("a",), ("c",), ("f", "g"))
    assert "1 of its first, 1 in between, 2 of its last" in str(verdict)


def test_the_last_pushes_may_be_lost_where_the_class_allows_it() -> None:
    run = Run(losses=True)
    run.ran("a").told("push", "stored", "b", by="p")
    assert run.at_rest().decision == "valid"
    run = Run(losses=True)
    run.told("push", "stored", "b", by="p").ran("a")
    assert run.at_rest().decision == "invalid"


def test_crashes_beyond_the_limit_are_told() -> None:
    run = Run(crash_limit=1).pushed("a")
    for crashes in range(4):
        run.granted("a", crashes=crashes).wait(2)
    assert "I5" in broken(run.taken("ack", "a").at_rest())


def test_the_timeline_of_an_offender_is_told() -> None:
    run = Run().pushed("a").granted("a", lease=9).granted("a").effect("a").taken("ack", "a")
    told = str(run.at_rest())
    assert "I3 (one live lease a job, and its fence rises): granted while an earlier lease had" in told
    assert "q/a, in the store's order:" in told
    assert "grant, incarnation 1, token t2, fence 101, deliveries 2" in told
    assert "handler start" in told


def test_many_violations_are_told_in_short() -> None:
    run = Run().ran("z")
    for number in range(30):
        run.told("push", "stored", f"j{number}", by="p")
    told = str(run.at_rest())
    assert "… and 10 more" in told
    assert told.count("in the store's order") == 3


def test_lines_are_read_back_and_a_torn_one_is_left_out(tmp_path: pathlib.Path) -> None:
    run = Run().ran("a").fault().worker("w", 1, 2)
    run.events.append(Flow("f", Q, {}))
    run.at_rest()
    path = tmp_path / "log"
    path.write_bytes(b"".join(map(encoded, run.events)) + encoded(run.events[0])[:-5])
    events: list[Event] = list(read(path))
    assert events == run.events
    assert check(events, run.terms).decision == "valid"


def test_a_long_run_takes_time_in_proportion() -> None:
    run = Run()
    for number in range(3000):
        run.ran(f"j{number}").audit("clear")
    verdict = run.at_rest()
    assert verdict.decision == "valid"
    assert verdict.figures["jobs"] == 3000
    assert sum(isinstance(event, Call) for event in run.events) == 12_000
