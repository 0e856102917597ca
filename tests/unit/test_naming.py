"""Which names are taken, and how ids are made."""

import re
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import InvalidOption
from tenure.naming import check_job_id, check_job_name, check_namespace, check_queue, new_job_id, new_token, shown

CHECKS: list[tuple[Callable[[Any], str], str, str, int]] = [
    (check_queue, r"[A-Za-z0-9]", r"[A-Za-z0-9._-]", 128),
    (check_namespace, r"[A-Za-z0-9]", r"[A-Za-z0-9._-]", 128),
    (check_job_id, r"[A-Za-z0-9._-]", r"[A-Za-z0-9._-]", 64),
    (check_job_name, r"[A-Za-z_]", r"[A-Za-z0-9_.:-]", 255),
]
HOSTILE = [
    "",
    " ",
    "a b",
    "a\n",
    "\na",
    "a\r\nb",
    "a\x00b",
    "a\x1b[31m",
    "a}:{b",
    "{x}",
    "*",
    "a?",
    "a[b",
    "a]b",
    "a/b",
    "a\\b",
    "'); DROP TABLE jobs; --",
    "%s",
    "$1",
    ']] redis.call("INFO") --',
    "é",
    "e\u0301",
    "\uff41",
    "\u0661",
    "\u202eabc",
    "\ud800",
    "x" * 10_000,
    None,
    5,
    b"emails",
    ["a"],
]


@pytest.mark.parametrize("check", [check for check, *_ in CHECKS])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_could_mean_something_to_a_store_or_a_terminal_is_refused(
    check: Callable[[Any], str], name: Any
) -> None:
    with pytest.raises(InvalidOption) as refused:
        check(name)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(("check", "first", "rest", "longest"), CHECKS)
def test_the_longest_name_is_taken_and_one_more_character_is_not(
    check: Callable[[Any], str], first: str, rest: str, longest: int
) -> None:
    assert check("a" * longest) == "a" * longest
    with pytest.raises(InvalidOption):
        check("a" * (longest + 1))


@pytest.mark.parametrize(("check", "first", "rest", "longest"), CHECKS)
@given(data=st.data())
def test_a_check_takes_exactly_its_allow_list(
    check: Callable[[Any], str], first: str, rest: str, longest: int, data: st.DataObject
) -> None:
    name = data.draw(st.text(max_size=8) | st.text("aZ09._-:{}* ", max_size=8))
    allowed = re.fullmatch(f"{first}{rest}{{0,{longest - 1}}}", name, re.ASCII) is not None
    try:
        assert check(name) == name
    except InvalidOption:
        assert not allowed
    else:
        assert allowed


@pytest.mark.parametrize("queue", ["emails", "e", "0", "a.b_c-d", "A" * 128])
def test_ordinary_queues_are_taken(queue: str) -> None:
    assert check_queue(queue) == queue


@pytest.mark.parametrize("queue", [".", "..", "-a", "_a", "a:b"])
def test_queues_that_look_like_paths_or_options_or_other_keys_are_refused(queue: str) -> None:
    with pytest.raises(InvalidOption, match="is not a queue name"):
        check_queue(queue)


@pytest.mark.parametrize("name", ["os:system", "builtins.eval", "__import__", "app.jobs.send_welcome", "v2:mail-out"])
def test_a_job_name_may_look_like_anything_because_it_is_only_looked_up(name: str) -> None:
    assert check_job_name(name) == name


def test_names_that_differ_in_case_are_different_names() -> None:
    assert check_queue("Emails") != check_queue("emails")


def test_a_new_id_is_a_uuid_of_version_7_and_a_job_id() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(new_job_id())
    after = time.time_ns() // 1_000_000
    assert made.variant == uuid.RFC_4122
    assert made.version == 7
    assert before <= made.int >> 80 <= after
    assert check_job_id(str(made)) == str(made)


def test_new_ids_are_all_different_and_sort_by_their_millisecond() -> None:
    made = [new_job_id() for _ in range(20_000)]
    assert len(set(made)) == len(made)
    moments = [uuid.UUID(one).int >> 80 for one in made]
    assert moments == sorted(moments)
    assert [one[:13] for one in made] == sorted(one[:13] for one in made)


def test_the_random_bits_of_an_id_are_all_used() -> None:
    made = [uuid.UUID(new_job_id()).int for _ in range(2000)]
    low = (1 << 80) - 1
    always, ever = low, 0
    for one in made:
        always &= one
        ever |= one & low
    version_and_variant = 0x7 << 76 | 0x2 << 62
    assert always == version_and_variant
    assert ever == low & ~(0x8 << 76) & ~(0x1 << 62)


def test_a_token_is_128_random_bits_that_fit_into_a_member() -> None:
    made = {new_token() for _ in range(1000)}
    assert len(made) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", token) for token in made)


@given(st.text() | st.binary() | st.integers())
def test_what_is_shown_is_one_short_printable_line(text: Any) -> None:
    line = shown(text)
    assert line.isprintable()
    assert line.isascii()
    assert len(line) <= 80
