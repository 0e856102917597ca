"""The stored form of a schedule."""

import msgspec
import pytest

from tenure.envelope import Envelope
from tenure.envelope import decode as decode_envelope
from tenure.errors import NewerEnvelope, Undecodable
from tenure.naming import check_job_id
from tenure.timetables import Cron, Definition, Interval, When
from tenure.timetables.definition import decode, slot_id

JOB = Envelope(v=1, id="schedule", name="job", queue="mail", args=msgspec.Raw(b'["Ana \xc3\xa9",[]]'), priority=3)
FULL = Definition(
    envelope=JOB,
    when=When("*/5 * * * *", "Europe/Berlin"),
    catch_up="all",
    overlap=False,
    jitter=2.5,
    since=12.5,
    source="cli",
    crash_limit=4,
    expires_in=60.0,
    keep=9.0,
    unique="ab" * 16,
)
SLOT = 1_793_520_000.25


@pytest.mark.parametrize("definition", [FULL, Definition(envelope=JOB, when=When(every=30.0))], ids=["full", "least"])
def test_a_definition_comes_back(definition: Definition) -> None:
    again = decode(definition.encode())
    assert msgspec.structs.asdict(again) == msgspec.structs.asdict(definition)
    assert again.encode() == definition.encode()
    assert isinstance(again.timetable, Cron if definition.when.cron else Interval)


def test_a_newer_version_is_told_from_what_cannot_be_read() -> None:
    stored = msgspec.json.decode(FULL.encode())
    for newer in ({**stored, "v": 2}, {"v": 2, "says": "something else"}):
        with pytest.raises(NewerEnvelope):
            decode(msgspec.json.encode(newer))


@pytest.mark.parametrize(
    "change",
    [
        {"v": 0}, {"v": "1"}, {"cron": "no"}, {"tz": "Nowhere/Land"}, {"job": {}}, {"job": [1]}, {"catch_up": "some"},
        {"cron": None}, {"jitter": -1},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_read_is_said_to_be_so_and_not_shown(change: dict[str, object]) -> None:
    stored = {**msgspec.json.decode(FULL.encode()), **change}
    with pytest.raises(Undecodable) as refused:
        decode(msgspec.json.encode(stored))
    assert not isinstance(refused.value, NewerEnvelope)
    assert "Ana" not in str(refused.value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"\xff\xfe", b"[" * 100_000], ids=["empty", "cut", "null", "odd", "deep"]
)
def test_no_bytes_break_the_reading(data: bytes) -> None:
    with pytest.raises(Undecodable):
        decode(data)


def test_a_slot_is_the_same_job_whoever_fires_it() -> None:
    first, second = FULL.push("nightly", SLOT, SLOT), decode(FULL.encode()).push("nightly", SLOT, SLOT)
    assert first == second
    assert first.id == slot_id("nightly", SLOT) == check_job_id(first.id)
    assert slot_id("nightly", SLOT + 0.001) != first.id != slot_id("weekly", SLOT)
    assert check_job_id(slot_id("x" * 255, 253_000_000_000.0))
    envelope = decode_envelope(first.envelope)
    assert (envelope.id, envelope.name, envelope.args) == (first.id, "job", JOB.args)
    assert envelope.meta == {"schedule": "nightly", "slot": "2026-11-01T08:00:00.250000+00:00"}
    assert (first.queue, first.priority, first.crash_limit, first.expires_in, first.keep, first.unique) == (
        "mail", 3, 4, 60.0, 9.0, "ab" * 16,
    )  # fmt: skip


def test_jitter_is_a_share_of_each_slots_own() -> None:
    delays = [FULL.push("nightly", slot, slot).delay for slot in map(float, range(1_793_520_000, 1_793_520_100))]
    assert len(set(delays)) == 100
    assert 0 <= min(delays) < 0.3
    assert 2.2 < max(delays) < 2.5
    # What is late is not delayed once more.
    assert FULL.push("nightly", SLOT, SLOT + 60).delay == 0
    assert Definition(envelope=JOB, when=When(every=30.0)).push("nightly", SLOT, SLOT).delay == 0


def test_a_definition_shows_nothing_of_its_job() -> None:
    assert "Ana" not in repr(FULL)
