"""What handlers return is encoded as arguments are, and comes back as the annotation says."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tenure import Tenure
from tenure.definition import JobDefinition, define
from tenure.errors import Undecodable
from tenure.options import JobDefaults
from tenure.returned import ResultCodec, Unkeepable

LIMIT = 60_000


@dataclass(frozen=True)
class Receipt:
    number: int
    total: Decimal
    at: datetime


RECEIPT = Receipt(7, Decimal("1.10"), datetime(2025, 6, 1, 12, tzinfo=UTC))


def receipt() -> Receipt:
    return RECEIPT


async def receipts() -> "dict[str, list[Receipt]]":
    return {"a": [RECEIPT]}


def nothing() -> None: ...


def anything():  # type: ignore[no-untyped-def]
    return [1, "two", {"three": None}]


def unknown() -> "NoSuchName":  # type: ignore[name-defined]  # pyright: ignore  # noqa: F821
    return 1


class Counting:
    def __init__(self, n: int) -> None:
        self.n = n

    def handle(self) -> "tuple[int, ...]":
        return (self.n,)


def definition(target: Any) -> JobDefinition:
    return define(target, {}, JobDefaults())


@pytest.mark.parametrize(
    ("target", "value", "wire"),
    [
        (receipt, RECEIPT, b'{"number":7,"total":"1.10","at":"2025-06-01T12:00:00Z"}'),
        (receipts, {"a": [RECEIPT]}, None),
        (nothing, None, b"null"),
        (anything, [1, "two", {"three": None}], b'[1,"two",{"three":null}]'),
        (Counting, (3, 4), b"[3,4]"),
    ],
)
def test_what_a_job_returns_comes_back_as_its_annotation_has_it(target: Any, value: Any, wire: bytes | None) -> None:
    job = definition(target)
    data = job.encode_result(value, max_bytes=LIMIT)
    assert wire in {None, data}
    restored = job.restore(data)
    assert restored == value
    assert type(restored) is type(value)


def looped() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


class Spiteful(list[Any]):
    def __iter__(self) -> Any:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("target", "value", "problem"),
    [
        (receipt, 5, "expected Receipt, got int at result"),
        (receipts, {"a": [RECEIPT, "secret"]}, "got str at result"),
        (nothing, "secret", "result"),
        (anything, object(), "result"),
        (anything, {"secret": object()}, "result"),
        (anything, looped(), "nested more deeply"),
        (anything, "\ud800", "lone surrogate"),
        (anything, "x" * LIMIT, "60002 bytes, over the limit of 60000"),
        (list, None, "cannot be resolved"),
    ],
)
def test_what_cannot_be_kept_is_told_without_its_value(target: Any, value: Any, problem: str) -> None:
    job = definition(unknown if target is list else target)
    with pytest.raises(Unkeepable, match=problem) as refused:
        job.encode_result(value, max_bytes=LIMIT)
    assert "secret" not in str(refused.value)


def test_a_type_whose_own_code_fails_makes_no_error_but_this_one() -> None:
    class Model:
        __struct_fields__ = ()

    with pytest.raises(Unkeepable):
        ResultCodec(Model).encode(Model(), max_bytes=LIMIT)
    with pytest.raises(Unkeepable):
        ResultCodec(list[int]).encode(Spiteful([1]), max_bytes=LIMIT)


@pytest.mark.parametrize("data", [b"", b"{", b'{"number":"secret"}', b"[" * 10_000, b"\xff"])
def test_what_does_not_fit_the_annotation_any_more_is_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable) as refused:
        definition(receipt).restore(data)
    assert "secret" not in str(refused.value)


def test_the_forms_are_made_when_they_are_used() -> None:
    app = Tenure("memory://", namespace="tests")
    app.job(unknown)  # an annotation that makes no sense keeps nobody from registering and pushing the job
    assert app.push_sync(app.call(f"{__name__}.unknown")).id
