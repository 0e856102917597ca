"""Every invariant has histories that break it and nothing else, and good ones that look like them."""

from collections.abc import Callable

import pytest

from tenure.testing.history import INVARIANTS, Flow, Verdict
from tests.unit.history.runs import Q, Run, broken

BAD: list[tuple[str, str, Callable[[Run], Verdict]]] = [
    (
        "I1",
        "an acknowledged push that the store never had",
        lambda run: run.ran("a").told("push", "stored", "b").at_rest(),
    ),
    ("I1", "a job that vanished while it waited", lambda run: run.ran("a").pushed("b").at_rest()),
    ("I1", "a job that vanished under its lease", lambda run: run.pushed("a").granted("a").at_rest()),
    ("I2", "a job that nobody pushed", lambda run: run.ran("a").made("b").at_rest({"b": "ready"})),
    (
        "I2",
        "a job made twice while it waits",
        lambda run: run.pushed("a").made("a").granted("a").taken("ack", "a").at_rest(),
    ),
    (
        "I2",
        "a job made again after its end",
        lambda run: run.ran("a").made("a").granted("a").taken("ack", "a").at_rest(),
    ),
    (
        "I2",
        "a push that was refused and is there",
        lambda run: run.told("push", "refused", "a").made("a").granted("a").taken("ack", "a").at_rest(),
    ),
    (
        "I2",
        "a handler of a job that was never leased",
        lambda run: run.ran("a").pushed("b").effect("b").at_rest({"b": "ready"}),
    ),
    (
        "I3",
        "a second lease before the first one's deadline",
        lambda run: run.pushed("a").granted("a", lease=9).granted("a").taken("ack", "a").at_rest(),
    ),
    (
        "I3",
        "a lease taken away before its deadline",
        lambda run: run.pushed("a").granted("a", lease=9).audit("lapse", "a").granted("a").taken("ack", "a").at_rest(),
    ),
    (
        "I3",
        "a fence that falls",
        lambda run: (
            run.pushed("a").granted("a").taken("release", "a").granted("a", fence=1).taken("ack", "a").at_rest()
        ),
    ),
    (
        "I3",
        "a fence given twice",
        lambda run: run.pushed("a").granted("a", fence=7).wait(2).granted("a", fence=7).taken("ack", "a").at_rest(),
    ),
    (
        "I3",
        "a token given twice",
        lambda run: (
            run.pushed("a")
            .granted("a", token="t")
            .wait(2)
            .granted("a", token="t")
            .taken("ack", "a", token="t")
            .at_rest()
        ),
    ),
    (
        "I4",
        "a settlement by a stale lease",
        lambda run: (
            run.pushed("a").granted("a", token="old").wait(2).granted("a").taken("ack", "a", token="old").at_rest()
        ),
    ),
    (
        "I4",
        "a renewal by a stale lease",
        lambda run: (
            run.pushed("a")
            .granted("a", token="old")
            .wait(2)
            .granted("a")
            .audit("renew", "a", token="old")
            .taken("ack", "a")
            .at_rest()
        ),
    ),
    (
        "I4",
        "a renewal that takes what waits",
        lambda run: (
            run.pushed("a")
            .granted("a")
            .taken("release", "a")
            .audit("renew", "a", token="t1")
            .granted("a")
            .taken("ack", "a")
            .at_rest()
        ),
    ),
    ("I4", "a second settlement by one lease", lambda run: run.ran("a").audit("ack", "a", token="t1").at_rest()),
    (
        "I4",
        "a settlement of a lease that the call did not name",
        lambda run: run.pushed("a").granted("a").taken("ack", "a", named=False).at_rest(),
    ),
    (
        "I4",
        "an answer of success, and nothing was done",
        lambda run: (
            run.pushed("a")
            .granted("a")
            .told("settle", "done", "a", token="t1")
            .wait(2)
            .granted("a")
            .taken("ack", "a")
            .at_rest()
        ),
    ),
    (
        "I4",
        "an answer of failure, and it was done",
        lambda run: run.ran("b").pushed("a").granted("a").taken("ack", "a", "stale").at_rest(),
    ),
    (
        "I4",
        "a settlement that nobody asked for",
        lambda run: run.ran("b").pushed("a").granted("a").audit("ack", "a", token="t2").at_rest(),
    ),
    (
        "I4",
        "a renewal that is told and was not made",
        lambda run: run.pushed("a").granted("a").told("renew", "held", "a", token="t1").taken("ack", "a").at_rest(),
    ),
    (
        "I5",
        "a delivery that is not counted",
        lambda run: run.pushed("a").granted("a").wait(2).granted("a", deliveries=1).taken("ack", "a").at_rest(),
    ),
    (
        "I5",
        "a crash that is not counted",
        lambda run: run.pushed("a").granted("a", crashes=0).wait(2).granted("a", crashes=0).taken("ack", "a").at_rest(),
    ),
    (
        "I5",
        "a release that makes two attempts free",
        lambda run: run.pushed("a").granted("a").taken("release", "a", free=2).granted("a").taken("ack", "a").at_rest(),
    ),
    ("I6", "a lease on what is over", lambda run: run.ran("a").granted("a").taken("ack", "a").at_rest()),
    (
        "I6",
        "a lease on an earlier life",
        lambda run: run.ran("b").pushed("a").granted("a", incarnation=1).taken("ack", "a").at_rest(),
    ),
    (
        "I6",
        "a retry of what did not fail",
        lambda run: run.ran("a").audit("retry", "a").granted("a", deliveries=1).taken("ack", "a").at_rest(),
    ),
    (
        "I6",
        "a cancel that removes what runs",
        lambda run: run.ran("b").pushed("a").granted("a").audit("cancel", "a").at_rest(),
    ),
    ("I7", "a counter that is off", lambda run: run.ran("a").pushed("b").at_rest({"b": "ready"}, counts={"ready": 2})),
    (
        "I7",
        "a record that its index does not have",
        lambda run: run.pushed("b").at_rest({"b": "ready"}, indexes={"line": []}, needed={"ready": ["line"]}),
    ),
    (
        "I7",
        "an index that has what is not there",
        lambda run: run.ran("b").at_rest({}, indexes={"line": ["b"]}, needed={"ready": ["line"]}),
    ),
    (
        "I7",
        "an index that has it twice",
        lambda run: run.pushed("b").at_rest({"b": "ready"}, indexes={"line": ["b", "b"]}, needed={"ready": ["line"]}),
    ),
    ("I7", "a record of what is over", lambda run: run.ran("a").at_rest({"a": "ready"})),
    (
        "I8",
        "a child that begins before its parent has ended",
        lambda run: (
            run.composed(Flow("f", Q, {"c": ("p",)}))
            .pushed("p", "c")
            .granted("c")
            .taken("ack", "c")
            .granted("p")
            .taken("ack", "p")
            .at_rest()
        ),
    ),
    (
        "I9",
        "a push held by a job that had ended",
        lambda run: (
            run.made("a")
            .told("push", "stored", "a", unique="u")
            .granted("a")
            .taken("ack", "a")
            .wait(5)
            .told("push", "held", "b", unique="u", holder="a")
            .at_rest()
        ),
    ),
    (
        "I4",
        "a charged release that nobody asked for",
        lambda run: (
            run.ran("b")
            .pushed("a")
            .granted("a")
            .audit("release", "a", token=run.token("a"), free=0, crashes=0)
            .granted("a")
            .taken("ack", "a")
            .at_rest()
        ),
    ),
    (
        "I9",
        "a job before its time",
        lambda run: run.pushed("a", until=run.now + 9_000_000).granted("a").taken("ack", "a").at_rest(),
    ),
    (
        "I9",
        "two jobs with one unique text",
        lambda run: (
            run.made("a")
            .told("push", "stored", "a", unique="u")
            .made("b")
            .told("push", "stored", "b", unique="u")
            .at_rest({"a": "ready", "b": "ready"})
        ),
    ),
    ("I9", "a place that is never given back", lambda run: run.ran("a").at_rest(slots=["u"])),
    ("I10", "a worker that does not come back", lambda run: _outage(run, comes_back=False)),
    ("I10", "a connection that is left behind", lambda run: run.ran("a").at_rest(leaked=["a connection"])),
]


def _outage(run: Run, *, comes_back: bool) -> Verdict:
    begun = run.now
    run.ran("a").fault()
    if comes_back:
        run.ran("b")
    run.wait(9)
    return run.worker("w", begun, run.now).at_rest()


@pytest.mark.parametrize(
    ("invariant", "made"), [(one[0], one[2]) for one in BAD], ids=[f"{one[0]}: {one[1]}" for one in BAD]
)
def test_a_bad_history_is_invalid(invariant: str, made: Callable[[Run], Verdict]) -> None:
    verdict = made(Run())
    assert verdict.decision == "invalid", str(verdict)
    assert invariant in broken(verdict), str(verdict)


def test_every_invariant_has_a_bad_history() -> None:
    assert {one[0] for one in BAD} == set(INVARIANTS)


GOOD: list[tuple[str, Callable[[Run], Verdict]]] = [
    ("a job", lambda run: run.ran("a").at_rest()),
    (
        "a lease that lapsed",
        lambda run: run.pushed("a").granted("a").wait(2).granted("a", crashes=1).taken("ack", "a").at_rest(),
    ),
    (
        "a lapse that is told",
        lambda run: (
            run.pushed("a").granted("a").wait(2).audit("lapse", "a").granted("a", crashes=1).taken("ack", "a").at_rest()
        ),
    ),
    (
        "a lapsed lease that nobody has reclaimed is renewed, and settles",
        lambda run: (
            run.pushed("a")
            .granted("a")
            .wait(2)
            .audit("renew", "a", token="t1", until=run.now + 9_000_000)
            .taken("ack", "a")
            .at_rest()
        ),
    ),
    (
        "a release, a failure, a retry",
        lambda run: (
            run.pushed("a")
            .granted("a")
            .taken("release", "a")
            .granted("a")
            .taken("fail", "a")
            .audit("retry", "a", incarnation=9)
            .granted("a", incarnation=9, deliveries=1)
            .taken("ack", "a")
            .at_rest()
        ),
    ),
    ("a stale settlement that is refused", lambda run: run.ran("a").told("settle", "stale", "a", token="t0").at_rest()),
    (
        "a settlement whose answer was lost, and that is stale when it is made again",
        lambda run: (
            run.ran("b")
            .pushed("a")
            .granted("a")
            .audit("ack", "a", token="t2")
            .told("settle", "", "a", token="t2", phase="info")
            .told("settle", "stale", "a", token="t2")
            .at_rest()
        ),
    ),
    (
        "a push that is unknown, and is there",
        lambda run: run.made("a").told("push", "", "a", phase="info").at_rest({"a": "ready"}),
    ),
    ("a push that is unknown, and is not", lambda run: run.ran("b").told("push", "", "a", phase="info").at_rest()),
    (
        "a push whose process died",
        lambda run: run.made("a").told("push", "", "a", phase="invoke").at_rest({"a": "ready"}),
    ),
    ("a push that was held by itself", lambda run: run.pushed("a").told("push", "held", "a").at_rest({"a": "ready"})),
    ("jobs that are cleared", lambda run: run.ran("b").pushed("a").audit("clear").at_rest()),
    (
        "a push held by a job that runs",
        lambda run: (
            run.made("a")
            .told("push", "stored", "a", unique="u")
            .granted("a")
            .told("push", "held", "b", unique="u", holder="a")
            .taken("ack", "a")
            .at_rest()
        ),
    ),
    (
        "a free release that nobody asked for",
        lambda run: (
            run.ran("b")
            .pushed("a")
            .granted("a")
            .audit("release", "a", token=run.token("a"), free=1)
            .granted("a")
            .taken("ack", "a")
            .at_rest()
        ),
    ),
    ("an outage", lambda run: _outage(run, comes_back=True)),
    (
        "two jobs with one unique text, one after the other",
        lambda run: (
            run.made("a")
            .told("push", "stored", "a", unique="u")
            .granted("a")
            .taken("ack", "a")
            .made("b")
            .told("push", "stored", "b", unique="u")
            .at_rest({"b": "ready"})
        ),
    ),
    (
        "a failed job that stays",
        lambda run: run.pushed("a").granted("a").taken("fail", "a").at_rest({"a": "failed"}, counts={"failed": 1}),
    ),
]


@pytest.mark.parametrize("made", [one[1] for one in GOOD], ids=[one[0] for one in GOOD])
def test_a_good_history_is_valid(made: Callable[[Run], Verdict]) -> None:
    verdict = made(Run())
    assert verdict.decision == "valid", str(verdict)
