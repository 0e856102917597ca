"""A call is a value: made once, never changed, and silent about what it holds."""

from typing import Any

import pytest

from tenure import Call, InvalidOption, NotEncodable, NotRegistered, NotSupported, PayloadTooLarge
from tests.unit import jobs


def test_a_call_holds_its_arguments_as_they_were_when_it_was_made() -> None:
    number = [1]
    call = jobs.app.bind(jobs.Report(5))
    other = jobs.take_all.bind(1, *number)
    number.append(2)
    assert bytes(other.args) == b"[1,1]"
    assert call.name == "tests.unit.jobs.Report"


def test_calls_with_equal_parts_are_equal() -> None:
    call = jobs.add.bind(1, 2)
    assert call == jobs.add.bind(1, 2)
    assert hash(call) == hash(jobs.add.bind(1, 2))
    assert call not in {jobs.add.bind(1, 3), jobs.add.bind(1, b=2), call.options(delay=1)}
    assert call != 3


def test_options_make_another_call_and_leave_the_first_as_it_was() -> None:
    call = jobs.add.bind(1)
    later = call.options(delay=30).options(priority=10)
    assert (later.overrides.delay, later.overrides.priority) == (30.0, 10)
    assert call.overrides.delay is None
    assert later.args is call.args


def test_options_of_a_job_travel_with_its_calls() -> None:
    urgent = jobs.add.options(priority=10)
    assert urgent.bind(1).overrides.priority == 10
    assert jobs.add.bind(1).overrides.priority is None
    assert urgent(1, 2) == 3
    assert type(urgent) is type(jobs.add)


def test_wrong_arguments_are_refused_as_python_would() -> None:
    bind: Any = jobs.add.bind
    for args, kwargs in [((), {}), ((1,), {"c": 2}), ((1, 2, 3), {}), ((1,), {"a": 2})]:
        with pytest.raises(InvalidOption):
            bind(*args, **kwargs)


def test_what_has_no_wire_form_is_refused_by_name_and_not_shown() -> None:
    with pytest.raises(NotEncodable, match="argument 'a'") as refusal:
        jobs.add.bind(b"secret")  # type: ignore[arg-type]
    assert "secret" not in str(refusal.value)


# K13
def test_a_repr_shows_no_value() -> None:
    shown = repr(jobs.send_welcome.bind("ana@example.com", "Ana", "hunter2").then(jobs.ordinary_text))
    assert shown.startswith("<call tests.unit.jobs.send_welcome(email=<str>")
    assert shown.endswith("then tests.unit.jobs.ordinary_text")
    assert "ana@" not in shown
    assert "hunter2" not in shown


# --------------------------------------------------------------------------------------------------------------- chains


def test_only_a_job_can_follow() -> None:
    with pytest.raises(NotRegistered, match="'ordinary'"):
        jobs.add.bind(1).then(jobs.ordinary)
    with pytest.raises(NotRegistered, match="'Report'"):
        jobs.add.bind(1).then(jobs.Report)


def test_a_service_cannot_be_given_to_a_step() -> None:
    with pytest.raises(InvalidOption, match="injected"):
        jobs.take_all.bind(1).then(jobs.send_welcome, mailer=jobs.Mailer())


def test_a_chain_is_a_value_too() -> None:
    chain = jobs.add.bind(1).then(jobs.add, 2).then(jobs.take_all.options(delay=3))
    assert isinstance(chain, Call)
    assert [step.definition for step in chain.steps] == [jobs.add.definition, jobs.take_all.definition]
    assert chain == jobs.add.bind(1).then(jobs.add, 2).then(jobs.take_all.options(delay=3))
    assert chain.options(priority=1).steps == chain.steps


def test_options_of_a_chain_are_those_of_its_first_job_but_for_the_time_to_live_of_its_result() -> None:
    chain = jobs.add.bind(1).then(jobs.add, 2).options(priority=1, result_ttl=60)
    assert (chain.overrides.priority, chain.overrides.result_ttl) == (1, None)
    assert [(step.overrides.priority, step.overrides.result_ttl) for step in chain.steps] == [(None, 60.0)]


def test_a_chain_in_a_bulk_push_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(NotSupported, match="chains in a bulk push"):
        jobs.app.push_many_sync([jobs.add.bind(1).then(jobs.add, 2)])


def test_too_much_or_too_deep_is_refused() -> None:
    with pytest.raises(PayloadTooLarge, match="60000"):
        jobs.send_welcome.push_sync("x" * 60_000)
