"""Per-exception policies: what a job tries again, and what ends it at once."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tenure import GiveUp, Retry, Snooze, Tenure
from tenure.errors import InvalidOption
from tenure.retry import Backoff
from tests.worker.support import drain, until_counts

raised: list[BaseException] = []


class RateLimited(Exception): ...


class Flaky(OSError): ...


class Odd(type):
    """What may be the class of an exception's class: nothing of it can be compared or hashed."""

    __mro__ = property(lambda _: 1 / 0)  # pyright: ignore

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


class Hostile(Flaky, metaclass=Odd): ...


async def raises() -> None:
    raise raised[0]


async def failed_at_once(app: Tenure, error: BaseException, **options: Any) -> bool:
    """Run a job that raises this, and tell whether that was its end, or another attempt waits."""
    raised[:] = [error]
    await app.job(name="raises", max_attempts=5, **options)(raises).push()
    await drain(app, backoff=60.0)
    records = await app.failed("default")
    if not records:
        await until_counts(app, delayed=1, ready=0, leased=0)
        return False
    assert records[0].failure.reason == "gave-up"
    assert records[0].attempts == 1
    return True


@pytest.mark.parametrize(
    ("error", "options", "at_once"),
    [
        (ValueError(), {}, False),
        (ValueError(), {"give_up_on": (ValueError,)}, True),
        (UnicodeError(), {"give_up_on": (ValueError,)}, True),
        (KeyError(), {"give_up_on": (ValueError,)}, False),
        (TimeoutError(), {"retry_on": (TimeoutError,)}, False),
        (KeyError(), {"retry_on": (TimeoutError,)}, True),
        (SystemExit(3), {"retry_on": (TimeoutError,)}, True),
        # The most specific class decides, whichever list it is in.
        (Flaky(), {"retry_on": (Flaky,), "give_up_on": (OSError,)}, False),
        (OSError(), {"retry_on": (Flaky,), "give_up_on": (OSError,)}, True),
        (Flaky(), {"retry_on": (OSError,), "give_up_on": (Flaky,)}, True),
        (Hostile(), {"retry_on": (Flaky,), "give_up_on": (OSError,)}, False),
        # A group by its own class.
        (ExceptionGroup("several", [ValueError()]), {"give_up_on": (ValueError,)}, False),
        (ExceptionGroup("several", [ValueError()]), {"give_up_on": (ExceptionGroup,)}, True),
        # What the handler decides stands above.
        (Retry(), {"give_up_on": (Exception,)}, False),
        (Snooze(60), {"retry_on": (TimeoutError,)}, False),
        (GiveUp(), {"retry_on": (Exception,)}, True),
    ],
)
async def test_what_becomes_of_an_exception(
    quick: Tenure, error: BaseException, options: dict[str, Any], at_once: bool
) -> None:
    assert await failed_at_once(quick, error, **options) is at_once


async def test_a_class_may_have_a_delay_of_its_own(quick: Tenure) -> None:
    raised[:] = [RateLimited()]
    await quick.job(retry_on={RateLimited: 0, OSError: Backoff(base=7)}, max_attempts=3)(raises).push()
    await drain(quick, backoff=60.0)
    [record] = await quick.failed("default")
    assert (record.failure.reason, record.attempts) == ("exception", 3), "max_attempts holds"


async def sleeps() -> None:
    await asyncio.sleep(30)  # handler


async def test_the_timeout_of_the_job_is_no_exception_of_its_handler(quick: Tenure) -> None:
    await quick.job(timeout=0.05, give_up_on=(TimeoutError,), retry_on=(OSError,))(sleeps).push()
    await drain(quick, backoff=60.0)
    await until_counts(quick, delayed=1, failed=0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"retry_on": ()}, "retry_on must be a tuple of exception classes"),
        ({"retry_on": TimeoutError}, "retry_on must be a tuple of exception classes"),
        ({"give_up_on": None}, "give_up_on must be a tuple of exception classes"),
        ({"give_up_on": "ValueError"}, "give_up_on must be a tuple of exception classes"),
        ({"give_up_on": ("ValueError",)}, "give_up_on must be exception classes"),
        ({"give_up_on": (ValueError(),)}, "give_up_on must be exception classes"),
        ({"retry_on": (int,)}, "retry_on must be exception classes"),
        ({"retry_on": {TimeoutError: -1}}, "retry_on must be seconds"),
        ({"give_up_on": (Retry,)}, "give_up_on cannot have Retry"),
        ({"retry_on": (ValueError,), "give_up_on": (KeyError, ValueError)}, "ValueError is in retry_on and in give_up"),
    ],
)
def test_policies_that_cannot_be_meant_are_refused_at_the_decorator(options: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        Tenure("memory://").job(**options)(raises)
