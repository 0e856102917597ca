"""Compositions are judged whole: who ran, after whom, how often, and what the store counted."""

from collections.abc import Callable
from typing import Any

import pytest

from tenure.testing.history import Fault, Flow, Tally, Verdict
from tests.unit.history.runs import Q, Run, broken

BATCH = Flow(
    "f",
    Q,
    {"a": (), "b": (), "well": ("a", "b"), "ill": ("a", "b"), "over": ("a", "b")},
    {"ill": "failure", "over": "any"},
    callbacks=("well", "ill", "over"),
)


def _flow(run: Run, flow: Flow | None = None, tally: Tally | None = None, **more: Any) -> Verdict:
    return run.composed(flow or Flow("f", Q, {"c": ("p",)})).at_rest(
        compositions={"f": tally or Tally(2, succeeded=2)}, **more
    )


def _done(run: Run, *job_ids: str) -> Run:
    """Jobs that the store made by itself."""
    for job_id in job_ids:
        run.made(job_id).granted(job_id).taken("ack", job_id)
    return run


def _failed(run: Run, job_id: str) -> Run:
    return run.made(job_id).granted(job_id).taken("fail", job_id)


BAD: list[tuple[str, str, Callable[[Run], Verdict]]] = [
    (
        "I8",
        "a child that begins before its parent has ended",
        lambda run: _flow(run.pushed("p", "c").granted("c").taken("ack", "c").granted("p").taken("ack", "p")),
    ),
    ("I8", "a batch that counts one end too many", lambda run: _flow(_done(run, "p", "c"), tally=Tally(2, 3))),
    (
        "I8",
        "a batch that calls a failure a success",
        lambda run: _flow(_done(_failed(run, "a"), "b", "ill", "over"), BATCH, Tally(2, 2), records={"a": "failed"}),
    ),
    ("I8", "a batch that is never over", lambda run: _flow(_done(run, "p", "c"), tally=Tally(2, 2, over=False))),
    ("I8", "a batch that forgets a member", lambda run: _flow(_done(run, "p", "c"), tally=Tally(1, 1))),
    ("I8", "a callback that never begins", lambda run: _flow(_done(run, "a", "b", "well"), BATCH)),
    ("I8", "a callback twice", lambda run: _flow(_done(run, "a", "b", "well", "over", "over"), BATCH)),
    (
        "I8",
        "a callback for failures, and there was none",
        lambda run: _flow(_done(run, "a", "b", "well", "ill", "over"), BATCH),
    ),
    (
        "I8",
        "a callback for successes, and one failed",
        lambda run: _flow(
            _done(_failed(run, "a"), "b", "well", "ill", "over"), BATCH, Tally(2, 1, 1), records={"a": "failed"}
        ),
    ),
    (
        "I8",
        "a callback before the last member has ended",
        lambda run: _flow(_done(run, "a", "well", "over", "b"), BATCH),
    ),
    (
        "I8",
        "a step behind one that was dropped",
        lambda run: _flow(
            _done(
                run.made("p")
                .granted("p")
                .audit("ack", "p", token=run.token("p"))
                .told("settle", "done", "p", token=run.token("p"), verb="drop"),
                "c",
            ),
            tally=Tally(2, 1, 0, 1),
        ),
    ),
    (
        "I1",
        "a composition that was told to be started, and is nowhere",
        lambda run: _flow(run.ran("x").told("start", "", "g"), Flow("g", Q, {"c": ("p",)})),
    ),
]

GOOD: list[tuple[str, Callable[[Run], Verdict]]] = [
    ("a chain", lambda run: _flow(_done(run, "p", "c"))),
    ("a batch", lambda run: _flow(_done(run, "a", "b", "well", "over"), BATCH)),
    (
        "a batch with a failure",
        lambda run: _flow(_done(_failed(run, "a"), "b", "ill", "over"), BATCH, Tally(2, 1, 1), records={"a": "failed"}),
    ),
    ("a chain that ends early", lambda run: _flow(_failed(run, "p"), tally=Tally(2, 0, 1, 1), records={"p": "failed"})),
    (
        "a composition that was never started",
        lambda run: _flow(run.ran("x").told("start", "", "g", phase="fail"), Flow("g", Q, {"c": ("p",)}), Tally(0)),
    ),
]


@pytest.mark.parametrize(
    ("invariant", "made"), [(one[0], one[2]) for one in BAD], ids=[f"{one[0]}: {one[1]}" for one in BAD]
)
def test_a_bad_composition_is_invalid(invariant: str, made: Callable[[Run], Verdict]) -> None:
    verdict = made(Run())
    assert verdict.decision == "invalid", str(verdict)
    assert invariant in broken(verdict), str(verdict)


@pytest.mark.parametrize("made", [one[1] for one in GOOD], ids=[one[0] for one in GOOD])
def test_a_good_composition_is_valid(made: Callable[[Run], Verdict]) -> None:
    verdict = made(Run())
    assert verdict.decision == "valid", str(verdict)


def test_what_a_store_may_have_forgotten_is_held_against_nobody() -> None:
    run = Run().ran("a").told("push", "stored", "b").fault()
    run.events[-1] = Fault("failover", run.now - 1_000_000, run.now, "seen", 5, forgets=True)
    assert run.at_rest().decision == "valid"
    run = Run().ran("a").told("push", "stored", "b").wait(9).fault()
    run.events[-1] = Fault("failover", run.now - 1_000_000, run.now, "seen", 5, forgets=True)
    assert broken(run.at_rest()) == {"I1"}
