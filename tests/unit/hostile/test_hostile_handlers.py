"""What handlers do that they should not, and what is told of a job.

Numbered as in the list of hostile inputs.
"""

import logging

import msgspec
import pytest

from tenure import Tenure
from tenure.errors import ResultUnavailable
from tenure.queue import JobState
from tests.support.hostile import (
    CANARY,
    QUEUE,
    RAISED,
    RETURNED,
    Seen,
    after_a_good_job,
    call,
    drain,
    left,
    put,
    stored,
    tell_tale,
)


@pytest.mark.parametrize("kind", RAISED)
async def test_27_whatever_a_handler_raises_is_a_counted_failure(app: Tenure, seen: Seen, kind: str) -> None:
    await app.push(call(app, "raising", kind).options(max_attempts=2))
    assert left(await after_a_good_job(app)) == {"failed": 1}
    assert sorted(seen.values) == sorted([kind, kind, "good"])
    [record] = await app.failed(QUEUE)
    assert record.attempts == 2
    assert record.failure.reason == "exception"
    assert len(record.failure.message) <= 1_000


@pytest.mark.parametrize("kind", RETURNED)
async def test_28_what_a_handler_returns_is_not_looked_at_when_nobody_asked_for_it(
    app: Tenure, seen: Seen, kind: str
) -> None:
    await app.push(call(app, "returning", kind))
    assert left(await after_a_good_job(app)) == {}
    assert sorted(seen.values) == sorted([kind, "good"])


@pytest.mark.parametrize("kind", RETURNED)
async def test_28_a_job_whose_result_cannot_be_kept_has_succeeded_all_the_same(
    app: Tenure, seen: Seen, kind: str
) -> None:
    handle = await app.push(call(app, "returning", kind).options(result_ttl=60))
    assert left(await after_a_good_job(app)) == {}
    assert sorted(seen.values) == sorted([kind, "good"])
    assert await handle.wait(timeout=10) is JobState.SUCCEEDED
    with pytest.raises(ResultUnavailable, match="could not be kept"):
        await handle.result(timeout=10)


async def test_30_nothing_of_an_argument_is_logged_or_shown(
    app: Tenure, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = call(app, "keep_secret", CANARY, CANARY)
    handle = await app.push(made)
    shown = [repr(made), repr(handle), str(made), repr(made.definition), repr(made.options(meta={"a": CANARY}))]
    await put(app, stored(msgspec.json.encode([CANARY]), name="hostile.keep_secret"))  # one is missing
    await put(app, stored(msgspec.json.encode([5, CANARY]), name="hostile.keep_secret"))  # one does not fit
    await put(app, stored(msgspec.json.encode([CANARY] * 3), name="hostile.keep_secret"))  # one is too many
    await put(
        app, stored(b"[]", msgspec.json.encode({"value": "a", "token": "b", CANARY: 1}), name="hostile.keep_secret")
    )
    await put(app, CANARY.encode())
    await put(app, stored(b"[]", name=CANARY))
    assert left(await after_a_good_job(app)) == {"failed": 4, "unreadable": 2}
    assert seen.values == [CANARY, "good"]
    shown += [str(record.failure) for record in await app.failed(QUEUE)]
    shown += [repr(await app.counts(QUEUE)), repr(app), repr(app.queue())]
    assert not [text for text in shown if tell_tale(text)]
    assert not [record for record in caplog.records if tell_tale(record.getMessage())]
    assert not tell_tale(caplog.text)


async def test_30_an_exceptions_text_stays_one_line_in_the_log(quick: Tenure, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    RAISED["canary"] = lambda: ValueError(CANARY)
    try:
        await quick.push(call(quick, "raising", "canary").options(max_attempts=1))
        assert left(await drain(quick)) == {"failed": 1}
    finally:
        del RAISED["canary"]
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("tenure")]
    assert lines
    assert all(line.isprintable() for line in lines)
