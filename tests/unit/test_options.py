"""Options are a closed set, and each is checked before anything is sent."""

import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tenure.errors import InvalidOption
from tenure.options import UNSET, JobDefaults, Options, defaults
from tenure.retry import Backoff, fixed


def given(**options: Any) -> Options:
    return UNSET.with_(options)


class Nowhere(tzinfo):
    """A zone that does not know where it is."""

    def utcoffset(self, _: datetime | None, /) -> None:
        return None

    def dst(self, _: datetime | None, /) -> None:
        return None

    def tzname(self, _: datetime | None, /) -> None:
        return None


@pytest.mark.parametrize("name", ["delay", "timeout", "backoff", "expires_in", "result_ttl"])
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, -1, -0.001, 1e400, 1e12, True, "5", None, [], timedelta(days=-1)]
)
def test_a_duration_that_cannot_be_meant_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=name):
        given(**{name: value})


@pytest.mark.parametrize("name", ["timeout", "expires_in", "result_ttl"])
def test_a_span_of_no_time_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match=f"{name} must be more than 0"):
        given(**{name: 0})


def test_durations_are_seconds_however_they_are_given() -> None:
    options = given(delay=timedelta(minutes=1), timeout=2, backoff=0, expires_in=timedelta(days=36_500))
    assert (options.delay, options.timeout, options.backoff) == (60.0, 2.0, 0.0)
    assert options.expires_in == 36_500 * 86_400


@pytest.mark.parametrize("value", [101, -101, 2**63, 1.0, math.nan, True, "1", None, 9007199254740993])
def test_a_priority_outside_its_range_or_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match="priority must be a whole number from -100 to 100"):
        given(priority=value)


@pytest.mark.parametrize("value", [100, -100, 0])
def test_the_whole_range_of_priorities_is_taken(value: int) -> None:
    assert given(priority=value).priority == value


@pytest.mark.parametrize("value", [0, -1, 1.5, math.nan, True, "3", None, 10**9])
def test_attempts_that_cannot_be_made_are_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match="max_attempts"):
        given(max_attempts=value)


def test_a_naive_date_is_refused() -> None:
    for value in (datetime(2030, 1, 1), datetime(2030, 1, 1, tzinfo=Nowhere())):  # noqa: DTZ001
        with pytest.raises(InvalidOption, match="time zone"):
            given(at=value)
    with pytest.raises(InvalidOption, match="datetime"):
        given(at="tomorrow")


def test_a_date_is_one_moment_in_every_zone() -> None:
    moments = {
        given(at=datetime(2030, 1, 1, 12, tzinfo=UTC)).at,
        given(at=datetime(2030, 1, 1, 0, tzinfo=timezone(timedelta(hours=-12)))).at,
        given(at=datetime(2030, 1, 1, 13, 0, 0, tzinfo=ZoneInfo("Europe/Vienna"))).at,
    }
    assert len(moments) == 1


def test_a_date_in_a_gap_of_daylight_saving_is_read_as_pep_495_says() -> None:
    gap = datetime(2030, 3, 31, 2, 30, tzinfo=ZoneInfo("Europe/Vienna"))
    assert given(at=gap).at == datetime(2030, 3, 31, 1, 30, tzinfo=UTC).timestamp()
    assert given(at=gap.replace(fold=1)).at == datetime(2030, 3, 31, 0, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("zone", [timezone(timedelta(hours=-12)), timezone(timedelta(hours=14)), UTC])
def test_the_last_and_the_first_date_are_taken_as_they_are(zone: timezone) -> None:
    assert given(at=datetime.max.replace(tzinfo=zone)).at is not None
    assert given(at=datetime.min.replace(tzinfo=zone)).at is not None


def test_delay_and_date_exclude_each_other_and_the_later_one_counts() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    with pytest.raises(InvalidOption, match="not both"):
        given(delay=1, at=moment)
    assert (given(delay=1).with_({"at": moment}).delay, given(at=moment).with_({"delay": 0}).at) == (None, None)


def test_an_unknown_option_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(InvalidOption, match=r"no option 'dealy'.*delay.*meta"):
        given(dealy=3)
    with pytest.raises(InvalidOption, match="no option 'delay'"):
        defaults({"delay": 3})


HOSTILE_NAMES = [
    "", " ", "a b", "a\n", "q:a", "q*", "q?", "[q]", "a}:{b", "{x}", "..", ".q", "-q", "q" * 129, "q" * 10_000, "é",
    "é", "q\0", "\ud800", b"q", None, 5, True, "');DROP TABLE", "%s/", ']] redis.call("X") --',
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_queue_name_is_refused_in_one_harmless_line(name: Any) -> None:
    with pytest.raises(InvalidOption) as refusal:
        given(queue=name)
    assert str(refusal.value).isascii()
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("value", ["", "a b", "a:b", "x" * 65, 5, None, 9007199254740993, "é", "a\n"])
def test_a_hostile_id_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match="job id"):
        given(id=value)


@pytest.mark.parametrize("value", ["", "a b", "a.b", "5", 5, "é", "a/b"])
def test_what_is_no_connection_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match="connection"):
        given(connection=value)


@pytest.mark.parametrize("value", [0, 4, True, "1", 1.0])
def test_an_unknown_durability_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match="durability"):
        given(durability=value)


@pytest.mark.parametrize("value", ["", "k" * 1025, 1, None, b"k", "k" * 2**20])
def test_what_is_no_unique_key_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match="unique"):
        given(unique=value)


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", {1: 2}, {"a": math.nan}, {"a": math.inf}, {"a": object()}, {"a": {1, 2}}, {"a": b"x"},
        {"a": 2**63}, {"a": "\ud800"}, {"\ud800": 1}, {"a": "x" * 4096}, {"a": [[[[1]]]]}, {"a": datetime.now(UTC)},
    ],
)  # fmt: skip
def test_meta_that_is_no_small_json_object_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption, match="meta"):
        given(meta=value)


def test_meta_that_contains_itself_is_refused() -> None:
    meta: dict[str, Any] = {}
    meta["self"] = meta
    with pytest.raises(InvalidOption, match="levels"):
        given(meta=meta)


def test_meta_is_copied_so_that_a_later_change_does_not_reach_the_job() -> None:
    meta = {"tenant": 7, "tags": ["a"], "nothing": None, "text": "é\0", "rate": 0.5, "yes": True}
    options = given(meta=meta)
    meta["tags"].append("b")  # type: ignore[attr-defined]
    assert options.meta == {"tenant": 7, "tags": ["a"], "nothing": None, "text": "é\0", "rate": 0.5, "yes": True}


@pytest.mark.parametrize("name", ["transaction", "after_commit"])
def test_no_session_at_all_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match=name):
        given(**{name: None})


def test_a_decorator_takes_a_backoff_or_seconds() -> None:
    assert defaults({"backoff": timedelta(seconds=5)}).backoff == fixed(5.0)
    assert defaults({"backoff": Backoff(base=2)}).backoff == Backoff(base=2)
    with pytest.raises(InvalidOption, match="backoff"):
        given(backoff=Backoff(base=2))  # a fixed time travels with the job, a policy stays with its definition


def test_a_decorator_counts_over_its_application() -> None:
    below = defaults({"queue": "all", "max_attempts": 9})
    assert defaults({"queue": "own"}, below) == JobDefaults(queue="own", max_attempts=9)
