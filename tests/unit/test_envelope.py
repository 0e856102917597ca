"""The stored form of a job."""

import json
import pickle
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure import envelope, options
from tenure.envelope import MAX_BYTES, MAX_DEPTH, Envelope
from tenure.errors import NewerEnvelope, NotEncodable, PayloadTooLarge, Undecodable

MINIMAL = Envelope(v=1, id="a", name="n", queue="q")

text = st.text(st.characters(exclude_categories=["Cs"]))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | text | st.text('[]{}"\\'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text | st.text('[]{}"\\'), inner, max_size=4),
    max_leaves=60,
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:-]{0,254}", fullmatch=True)
envelopes = st.builds(
    Envelope,
    v=st.just(1),
    id=st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True).filter(str.isascii),
    name=names.filter(str.isascii),
    queue=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", fullmatch=True).filter(str.isascii),
    args=st.lists(documents, max_size=3).map(lambda value: msgspec.Raw(msgspec.json.encode(value))),
    kwargs=st.dictionaries(text, documents, max_size=3).map(lambda value: msgspec.Raw(msgspec.json.encode(value))),
    max_attempts=st.none() | st.integers(1, 1_000_000),
    priority=st.integers(-100, 100),
    timeout=st.none() | st.floats(0, 1e9, exclude_min=True),
    backoff=st.none() | st.floats(0, 1e9),
    meta=st.dictionaries(text, text | st.integers(-(2**63), 2**63 - 1), max_size=3),
)


def forged(**fields: Any) -> bytes:
    return json.dumps({"v": 1, "id": "a", "name": "n", "queue": "q"} | fields).encode()


def nested(levels: int) -> Envelope:
    """Return an envelope of so many levels, its own two included."""
    return msgspec.structs.replace(MINIMAL, args=msgspec.Raw(b"[" * (levels - 1) + b"]" * (levels - 1)))


def test_what_nobody_set_is_not_written() -> None:
    assert envelope.encode(MINIMAL) == b'{"v":1,"id":"a","name":"n","queue":"q"}'


@given(envelopes)
def test_an_envelope_comes_back_equal(sent: Envelope) -> None:
    try:
        data = envelope.encode(sent, max_bytes=10**9)
    except PayloadTooLarge:
        assert depth(json.loads(msgspec.json.encode(sent))) > MAX_DEPTH
        return
    back = envelope.decode(data)
    plain = ("v", "id", "name", "queue", "max_attempts", "priority", "timeout", "backoff", "meta")
    assert [getattr(back, field) for field in plain] == [getattr(sent, field) for field in plain]
    assert (bytes(back.args), bytes(back.kwargs)) == (bytes(sent.args), bytes(sent.kwargs))


def test_an_envelope_carries_whatever_the_options_of_a_push_allow() -> None:
    assert envelope.MAX_ATTEMPTS == options.MAX_ATTEMPTS
    assert envelope.MAX_SECONDS == options.MAX_SECONDS


def test_the_arguments_are_kept_byte_for_byte() -> None:
    stored = (
        b'{"args":[ 1.10 , 18446744073709551617,[]],"v":1,"id":"a","name":"n","queue":"q","kwargs":{"\\u00e9":1e2}}'
    )
    read = envelope.decode(stored)
    assert bytes(read.args) == b"[ 1.10 , 18446744073709551617,[]]"
    assert bytes(read.kwargs) == b'{"\\u00e9":1e2}'


# S10
def test_a_job_of_60000_bytes_is_taken_and_of_one_more_refused_with_both_sizes() -> None:
    def of(size: int) -> Envelope:
        empty = len(envelope.encode(msgspec.structs.replace(MINIMAL, args=msgspec.Raw(b'[""]'))))
        return msgspec.structs.replace(MINIMAL, args=msgspec.Raw(b'["' + b"x" * (size - empty) + b'"]'))

    assert len(envelope.encode(of(MAX_BYTES))) == 60_000
    with pytest.raises(PayloadTooLarge, match=r"60001 bytes, over the limit of 60000 \(QUEUE_MAX_PAYLOAD_BYTES\)"):
        envelope.encode(of(MAX_BYTES + 1))
    assert len(envelope.encode(of(70_000), max_bytes=70_000)) == 70_000


def test_the_limit_counts_encoded_bytes_not_characters() -> None:
    with pytest.raises(PayloadTooLarge):
        envelope.encode(msgspec.structs.replace(MINIMAL, meta={"a": "é" * 30_000}))


def test_32_levels_are_taken_and_33_refused_on_both_sides() -> None:
    assert envelope.decode(envelope.encode(nested(32))).name == "n"
    with pytest.raises(PayloadTooLarge, match="nested more deeply than 32 levels; nothing was sent"):
        envelope.encode(nested(33))
    with pytest.raises(Undecodable, match="nested more deeply than 32 levels"):
        envelope.decode(msgspec.json.encode(nested(33)))


@pytest.mark.parametrize("meta", [{"a": "\ud800"}, {"a": object()}, {"a": 10**5000}, {(1, 2): 3}])
def test_meta_that_is_not_json_is_refused_without_its_content(meta: dict[str, Any]) -> None:
    with pytest.raises(NotEncodable, match="argument 'meta' cannot be sent: it is not JSON") as refused:
        envelope.encode(msgspec.structs.replace(MINIMAL, meta=meta))
    assert "ud800" not in str(refused.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"{}",
        b"[]",
        b"null",
        b"1",
        b'{"v":1}',
        b'{"v":1,"id":"a","name":"n","queue":"q"',
        b'{"v":1,"id":"a","name":"n","queue":"q","args":[1,}',
        b'\xef\xbb\xbf{"v":1,"id":"a","name":"n","queue":"q"}',
        b'{"v":1,"id":"a","name":"\xff","queue":"q"}',
        b'{"v":1,"id":"a","name":"n","queue":"q"}\x00',
        pickle.dumps({"v": 1}),
        b"[" * 100_000,
        b'{"args":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"v":' + b"1" * 5_000 + b"}",
        forged(v=0),
        forged(v=-1),
        forged(v="1"),
        forged(v=1.5),
        forged(v=True),
        forged(v=None),
        forged(id=1),
        forged(id=""),
        forged(id="a" * 65),
        forged(id="a\n"),
        forged(name="new\nline"),
        forged(name="\x1b[2J"),
        forged(name=""),
        forged(queue="a}:{b"),
        forged(queue="x" * 129),
        forged(max_attempts=0),
        forged(max_attempts=-1),
        forged(max_attempts="x"),
        forged(max_attempts=1_000_001),
        forged(priority=101),
        forged(priority=-101),
        forged(priority=9007199254740993),
        forged(timeout=0),
        forged(timeout=-1),
        forged(timeout=1e10),
        forged(backoff=-0.5),
        forged(backoff=1e300),
        forged(timeout="1"),
        forged(meta=[]),
        forged(meta=None),
        b'{"v":1,"id":"a","name":"n","queue":"q","timeout":1e400}',
        b'{"v":1,"id":"a","name":"n","queue":"q","timeout":NaN}',
    ],
)
def test_what_is_no_envelope_is_undecodable_and_its_content_stays_out_of_the_message(data: bytes) -> None:
    with pytest.raises(Undecodable) as unreadable:
        envelope.decode(data)
    assert not isinstance(unreadable.value, NewerEnvelope)
    assert str(unreadable.value).isprintable()
    assert "new\nline" not in str(unreadable.value)


# S10
@pytest.mark.parametrize(
    "data",
    [
        forged(v=2),
        forged(v=2**63 - 1),
        b'{"v":2}',
        b'{"v":2,"job":{"id":7},"args":null}',
        forged(v=2, id=5, queue=None),
        forged(v=2, name="ein neuer Name"),
    ],
)
def test_a_newer_version_is_told_by_its_version_alone(data: bytes) -> None:
    with pytest.raises(NewerEnvelope):
        envelope.decode(data)


def test_fields_that_this_version_does_not_know_are_left_alone() -> None:
    assert envelope.decode(forged(colour="red")).id == "a"


def test_of_two_equal_fields_the_last_wins() -> None:
    assert envelope.decode(b'{"v":1,"id":"a","id":"b","name":"n","queue":"q"}').id == "b"


@given(st.binary() | envelopes.map(msgspec.json.encode))
def test_bytes_are_an_envelope_or_undecodable(data: bytes) -> None:
    with suppress(Undecodable):
        envelope.decode(data)


@given(data=envelopes.map(msgspec.json.encode), changes=st.data())
def test_a_damaged_envelope_is_an_envelope_or_undecodable(data: bytes, changes: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(changes.draw(st.integers(1, 4))):
        damaged[changes.draw(st.integers(0, len(damaged) - 1))] = changes.draw(st.integers(0, 255))
    with suppress(Undecodable):
        envelope.decode(bytes(damaged))


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@given(value=documents, around=st.integers(0, 40), indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_nesting_is_counted_as_a_parser_counts_it(
    value: Any, around: int, indent: int | None, ascii_only: bool
) -> None:
    for level in range(around):
        value = [value] if level % 2 else {'a"[': value}
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert envelope.too_deep(data) == (depth(value) > MAX_DEPTH)


@given(value=documents, cut=st.integers(0, 10_000), tail=st.text('[]{}"\\', max_size=200))
def test_nesting_is_never_counted_too_low_in_what_is_no_json(value: Any, cut: int, tail: str) -> None:
    data = msgspec.json.encode(value)[:cut] + tail.encode()
    if not envelope.too_deep(data):
        with suppress(msgspec.DecodeError):
            msgspec.json.decode(data + b"[" * 5)  # a parser goes no deeper than what was counted, so nothing overflows


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 33,
        b"[" * 100_000,
        b"{" * 100_000 + b"}" * 100_000,
        b'{"a":' * 40,
        b"[]" * 10 + b"[{" * 20,
        b'["\\\\",' * 33,
        b'["\\"",' * 33,
        b'["]]]]]]]]",' * 33,
    ],
)
def test_openings_without_an_end_are_too_deep(data: bytes) -> None:
    assert envelope.too_deep(data)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 32,
        b"[" + b"[]," * 1000 + b"[]]",
        b'["' + b"[" * 1000 + b'"]',
        b'["\\"' + b"[" * 1000 + b'"]',
        b'["\\\\","' + b"[" * 1000 + b'"]',
        b"]" * 1000,
    ],
)
def test_brackets_side_by_side_or_inside_strings_are_not_deep(data: bytes) -> None:
    assert not envelope.too_deep(data)
