"""Bytes and texts that nobody meant for it: whatever reads them answers, or raises what it says that it raises.

A slice by default; ``make torture`` tries a million inputs (``TENURE_FUZZ_INPUTS=…`` another number).
"""

import inspect
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tenure import envelope, naming, urls
from tenure.cli.main import COMMANDS, cli
from tenure.codec import ArgumentCodec
from tenure.drivers.redis import record
from tenure.errors import ConfigurationError, InvalidOption, TenureError, Undecodable
from tenure.queue import FailedRecord, Lease
from tenure.returned import ResultCodec
from tests.support.fuzzing import BARRED, DIGITS, HOSTILE, JSONISH, LINES, TEXT, inputs

FAILURE = b'\n{"reason":"exception"}\n{}'
HINTS: dict[str, Any] = {
    "anything": Any,
    "texts": dict[str, list[str]],
    "days": dict[int, tuple[date, ...]],
    "money": Decimal | None,
    "ids": frozenset[UUID],
    "when": datetime | timedelta,
    "rest": bytes,
}


@pytest.mark.torture
@given(HOSTILE)
@inputs(0.3)
def test_an_envelope_is_one_or_is_undecodable(data: bytes) -> None:
    try:
        assert envelope.decode(data).v == 1
    except Undecodable:
        return


@pytest.mark.torture
@given(JSONISH, JSONISH, st.sampled_from(sorted(HINTS)))
@inputs(0.2)
def test_arguments_are_restored_or_are_undecodable(args: bytes, kwargs: bytes, name: str) -> None:
    parameter = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    codec = ArgumentCodec([parameter], {name: HINTS[name]})
    for given_args, given_kwargs in (
        (b"[" + args + b"]", b"{}"),
        (b"[]", b'{"' + name.encode() + b'":' + kwargs + b"}"),
    ):
        try:
            codec.decode(msgspec.Raw(given_args), msgspec.Raw(given_kwargs))
        except Undecodable:
            continue


@pytest.mark.torture
@given(JSONISH, st.sampled_from(sorted(HINTS)))
@inputs(0.1)
def test_a_result_is_restored_or_is_undecodable(data: bytes, name: str) -> None:
    try:
        ResultCodec(HINTS[name]).decode(data)
    except Undecodable:
        return


@pytest.mark.torture
@given(BARRED, LINES | st.lists(DIGITS, min_size=8, max_size=8).map(b"|".join).map(lambda line: line + FAILURE))
@inputs(0.2)
def test_a_stored_record_is_a_lease_or_a_failure_or_nothing(member: bytes, stored: bytes) -> None:
    assert isinstance(record.held_lease("q", member, stored, 0.0), Lease | None)
    assert isinstance(record.failed_record("q", member, stored), FailedRecord | None)


@pytest.mark.torture
@given(TEXT, TEXT)
@inputs(0.1)
def test_a_url_or_a_name_is_taken_or_refused(scheme: str, rest: str) -> None:
    for url in (
        f"{scheme}://{rest}",
        f"redis://{rest}",
        f"postgresql://{rest}",
        f"sqlite:///{rest}",
        f"redis+sentinel://{rest}",
    ):
        try:
            urls.parse(url, "KEY")
        except ConfigurationError:
            continue
    for check in (naming.check_job_id, naming.check_job_name, naming.check_queue, naming.check_namespace):
        try:
            assert check(rest) == rest
        except InvalidOption:
            continue


@pytest.mark.torture
@given(
    st.sampled_from(sorted(set(COMMANDS) - {"demo", "worker", "completion", "restart", "migrate"})),
    st.lists(TEXT, max_size=4),
)
@inputs(0.02)
def test_a_command_answers_or_tells_what_is_wrong(command: str, arguments: list[str]) -> None:
    runner = CliRunner(env={"TENURE_URL": "memory://", "QUEUE_NAMESPACE": "fuzz", "TENURE_APP": ""})
    done = runner.invoke(cli, [command, *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit | TenureError), repr(done.exception)
