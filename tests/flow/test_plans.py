"""The nodes that compositions become."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure import Call, InvalidOption
from tenure.call import Step
from tenure.compositions import Gate, When
from tenure.flow.plan import DEEPEST, Plan
from tenure.flow.tails import Planned
from tests.flow.graphs import check, expected, of_kind, planned, walked
from tests.flow.jobs import Report, add, app, one


@st.composite
def calls(draw: Any) -> Call[Any]:
    call: Call[Any] = one.bind(draw(st.integers(0, 9)))
    for _ in range(draw(st.integers(0, 3))):
        call = call.then(add, draw(st.integers(0, 9)))
    return call


@st.composite
def workflows(draw: Any, parts: Any) -> Any:
    workflow = app.workflow()
    steps: list[Any] = []
    for part in draw(st.lists(parts, min_size=1, max_size=6)):
        steps.append(workflow.add(part, after=draw(st.lists(st.sampled_from(steps))) if steps else ()))
    return workflow


def nested(parts: Any) -> Any:
    some = st.lists(parts, min_size=1, max_size=5)
    followers = st.one_of(st.none(), calls())
    batches = st.builds(
        lambda members, a, b, c: app.batch(members, on_success=a, on_failure=b, on_finish=c),
        some, followers, followers, followers,
    )  # fmt: skip
    return st.one_of(some.map(lambda steps: app.chain(*steps)), batches, workflows(parts))


PARTS = st.recursive(calls(), nested, max_leaves=25)


@given(PARTS)
def test_every_graph_is_one_that_a_store_can_rely_on(part: Any) -> None:
    check(planned(part))


@given(PARTS, st.sets(st.integers(0, 9), max_size=4))
def test_jobs_come_to_what_compositions_mean(part: Any, bad: set[int]) -> None:
    def fails(call: Call[Any] | Step) -> bool:
        return any(bytes(call.args) == b"[%d]" % number for number in bad)

    assert walked(part, fails) == expected(part, fails)


@pytest.mark.parametrize("members", [1, 2, 100, 101, 10_000, 10_001, 25_000])
def test_many_are_told_over_gates_that_tell_a_hundred_at_most(members: int) -> None:
    nodes = planned(app.batch(one.bind(number) for number in range(members)))
    check(nodes)
    gates = sum(isinstance(node, Gate) for node in nodes)
    assert gates <= 3 + members / 100 * 1.02 + 2


def test_a_chain_of_ten_thousand_is_planned_without_recursion() -> None:
    call: Call[Any] = one.bind(0)
    for _ in range(2_000):
        call = call.then(add)
    check(planned(app.chain(*[one.bind(1)] * 10_000, call)))


def test_members_are_read_as_they_are_stored() -> None:
    read = 0

    def members() -> Iterator[Call[Any]]:
        nonlocal read
        for number in range(5_000):
            read += 1
            yield one.bind(number)

    yielded = 0
    for node in Plan(app.batch(members())).nodes():
        yielded += isinstance(node, Planned)
        assert read - yielded <= 1


def test_jobs_are_numbered_in_the_order_in_which_they_appear() -> None:
    chain = app.chain(
        one.bind(0), app.batch([one.bind(1), one.bind(2).then(add, 3)], on_finish=one.bind(9)), Report(4), one.bind(5)
    )
    counted = sorted((node for node in planned(chain) if isinstance(node, Planned)), key=lambda node: node.number)
    assert [bytes(node.call.args) for node in counted if node.number >= 0][:3] == [b"[0]", b"[1]", b"[2]"]
    assert [node.call.definition.name.rpartition(".")[2] for node in counted if node.number >= 0] == [
        "one", "one", "one", "add", "Report", "one",
    ]  # fmt: skip
    [callback] = of_kind(counted, When.ANY)
    assert callback.number < 0


def test_only_results_of_steps_are_passed_on() -> None:
    nodes = {
        node.number: node
        for node in planned(app.chain(one.bind(1).then(add), one.bind(2)))
        if isinstance(node, Planned)
    }
    assert [(nodes[number].takes, nodes[number].gives) for number in range(3)] == [
        (False, True), (True, False), (False, False),
    ]  # fmt: skip


def test_the_time_to_live_of_results_is_that_of_the_nearest_batch() -> None:
    batch = app.batch([one.bind(1), app.batch([one.bind(2)], result_ttl=5)], result_ttl=60, on_finish=one.bind(3))
    kept = {bytes(node.call.args): node.result_ttl for node in planned(batch) if isinstance(node, Planned)}
    assert kept == {b"[1]": 60.0, b"[2]": 5.0, b"[3]": None}


# ------------------------------------------------------------------------------------------------------ what is refused


def test_what_has_no_calls_is_refused_by_name() -> None:
    for make in (app.chain, lambda: app.batch([]), lambda: app.batch(())):
        with pytest.raises(InvalidOption, match="has no calls; nothing was sent"):
            make()
    with pytest.raises(InvalidOption, match="the batch has no calls"):
        planned(app.batch(iter([])))
    with pytest.raises(InvalidOption, match=r"the batch 'mails' \(step 2 of the chain 'monthly'\) has no calls"):
        planned(app.chain(one.bind(1), app.batch(iter([]), name="mails"), name="monthly"))
    with pytest.raises(InvalidOption, match=r"the workflow \(member 1 of the batch\) has no calls"):
        planned(app.batch([app.workflow()]))


def test_a_batch_that_contains_itself_is_refused() -> None:
    members: list[Any] = [one.bind(1)]
    batch = app.batch(members)
    members.append(app.chain(batch))
    with pytest.raises(InvalidOption, match=r"the batch \(member 2, step 1 of the batch\) contains itself"):
        planned(batch)


def test_a_cycle_is_refused_by_name() -> None:
    workflow = app.workflow(name="nightly")
    workflow.add(one.bind(0), name="a")
    workflow.add(one.bind(1), name="b", after=["a", "d"])
    workflow.add(one.bind(2), name="c", after="b")
    workflow.add(one.bind(3), name="d", after=["c"])
    with pytest.raises(InvalidOption, match=r"'nightly' has a cycle.*: 'b' → 'c' → 'd' → 'b'"):
        planned(workflow)
    alone = app.workflow()
    alone.add(one.bind(1), name="x", after="x")
    with pytest.raises(InvalidOption, match="'x' → 'x'"):
        planned(alone)


def test_a_cycle_of_ten_thousand_is_found_without_recursion() -> None:
    workflow = app.workflow()
    for number in range(10_000):
        workflow.add(one.bind(1), name=f"n{number}", after=f"n{(number + 1) % 10_000}")
    with pytest.raises(InvalidOption, match=r"cycle.*…"):
        planned(workflow)


def test_names_may_be_given_before_their_steps_are_and_must_be_there_in_the_end() -> None:
    workflow = app.workflow()
    workflow.add(one.bind(2), after=["first", "first"])
    with pytest.raises(InvalidOption, match="'first', and the workflow has no step of that name"):
        planned(workflow)
    workflow.add(one.bind(1), name="first")
    check(planned(workflow))


def test_a_step_of_another_workflow_and_a_name_that_is_taken_are_refused() -> None:
    workflow, other = app.workflow(), app.workflow()
    step = other.add(one.bind(1), name="x")
    with pytest.raises(InvalidOption, match="belongs to another workflow"):
        workflow.add(one.bind(1), after=step)
    with pytest.raises(InvalidOption, match="has a step 'x' already"):
        other.add(one.bind(1), name="x")
    with pytest.raises(InvalidOption, match="steps or their names"):
        other.add(one.bind(1), after=[3])  # type: ignore[list-item]
    with pytest.raises(InvalidOption, match="must be a text"):
        other.add(one.bind(1), name="")


def test_too_deep_too_many_and_options_of_parts_are_refused() -> None:
    deep: Any = one.bind(1)
    for _ in range(DEEPEST + 1):
        deep = app.chain(deep)
    with pytest.raises(InvalidOption, match=f"more deeply than {DEEPEST}"):
        planned(deep)
    plan = Plan(app.batch(one.bind(1) for _ in range(6)))
    plan.limit(5)
    with pytest.raises(InvalidOption, match="more than 5 jobs"):
        list(plan.nodes())
    with pytest.raises(InvalidOption, match="id and retention are for the whole"):
        planned(app.chain(app.batch([one.bind(1)], id="x")))


@pytest.mark.parametrize(
    "options",
    [{"name": "x" * 201}, {"name": "a\nb"}, {"id": "x" * 53}, {"id": "a b"}, {"retention": 0}, {"nmae": "x"}],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        app.chain(one.bind(1), **options)


def test_what_is_no_call_is_refused() -> None:
    number: Any = 3
    text: Any = "one"
    function: Any = one
    with pytest.raises(ValueError, match="'int' is not a job"):
        app.chain(number)
    with pytest.raises(ValueError, match="push calls of it"):
        app.chain(function)
    with pytest.raises(ValueError, match="'int' is not a job"):
        planned(app.batch([one.bind(1), number]))
    with pytest.raises(InvalidOption, match="an iterable of calls, not int"):
        app.batch(number)
    with pytest.raises(ValueError, match="'str' is not a job"):
        app.batch([one.bind(1)], on_success=text)
