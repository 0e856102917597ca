"""What all drivers' listings share: names without payloads, cursors that garbage cannot be, keys that are numbers."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import InvalidOption
from tenure.queue import JobState
from tenure.summaries import Cursors, check_age, job_name, number_after, page_length, record_number

WHOLE = st.integers(-(2**63), 2**63 - 1)
STATES = st.sampled_from([JobState.READY, JobState.DELAYED, JobState.RUNNING])


def test_a_name_is_read_from_a_sound_envelope_alone() -> None:
    assert job_name(b'{"v":1,"id":"x","name":"emails.welcome","queue":"q","args":["secret"]}') == "emails.welcome"
    for record in (b"", b"{}", b'{"v":1}', b"\xff", b'{"v":2,"id":"x","name":"n","queue":"q"}', b"[" * 9000):
        assert job_name(record) == ""


def test_a_name_that_could_not_be_pushed_is_not_shown() -> None:
    assert job_name(b'{"v":1,"id":"x","name":"\\u001b[31mred","queue":"q"}') == ""


@given(STATES, WHOLE, WHOLE)
def test_a_cursor_comes_back_as_it_was_written(state: JobState, rank: int, entry: int) -> None:
    cursors = Cursors("qq")
    written = cursors.written(state, rank, entry)
    assert written.isascii()
    assert written.isalnum()
    assert cursors.read(written, state) == (rank, entry)


@given(STATES, st.floats(allow_nan=False), WHOLE)
def test_a_cursor_may_hold_any_time(state: JobState, time: float, entry: int) -> None:
    cursors = Cursors("dq")
    assert cursors.read(cursors.written(state, time, entry), state) == (time, entry)


@given(st.text() | st.binary().map(bytes.hex), STATES)
def test_a_text_that_is_no_cursor_is_refused_and_nothing_else_happens(text: str, state: JobState) -> None:
    for numbers in ("qq", "dq"):
        cursors = Cursors(numbers)
        with contextlib.suppress(InvalidOption):
            assert cursors.written(state, *cursors.read(text, state)) == text


def test_a_time_that_is_no_number_is_no_place_in_a_line() -> None:
    cursors = Cursors("dq")
    with pytest.raises(InvalidOption):
        cursors.read(cursors.written(JobState.READY, float("nan"), 1), JobState.READY)


def test_a_cursor_is_read_for_its_own_state_alone() -> None:
    cursors = Cursors("qq")
    written = cursors.written(JobState.READY, 1, 2)
    for state in (JobState.DELAYED, JobState.RUNNING):
        with pytest.raises(InvalidOption, match="no cursor of this listing"):
            cursors.read(written, state)


@given(st.integers(0, 10**18 - 1))
def test_a_key_is_the_number_it_was_made_of(number: int) -> None:
    assert record_number(str(number)) == number


@pytest.mark.parametrize("key", ["", "-1", "+1", "01", "1.0", "1e3", " 1", "1_0", "٣", "²", "9" * 19, "x", "\x00"])
def test_a_text_that_is_no_number_is_no_key(key: str) -> None:
    assert record_number(key) is None
    if key:
        with pytest.raises(InvalidOption, match="not the key of an unreadable record"):
            number_after(key)


def test_a_listing_begins_before_every_key() -> None:
    assert number_after("") == 0
    assert number_after("17") == 17


def test_pages_are_bounded_and_hold_something() -> None:
    assert page_length(JobState.READY, 1) == 1
    assert page_length(JobState.RUNNING, 10**9) == 1000
    with pytest.raises(InvalidOption):
        page_length(JobState.READY, 0)
    with pytest.raises(InvalidOption, match="ready, delayed, running"):
        page_length(JobState.FAILED, 10)


def test_an_age_is_no_less_than_nothing() -> None:
    for age in (0, 0.5, float("inf")):
        check_age(age)
    for age in (-1e-9, float("nan")):
        with pytest.raises(InvalidOption, match="nothing was removed"):
            check_age(age)
