"""A worker with jobs that a drain must handle in different ways: `python -m tests.torture.draining URL NAMESPACE`.

One job in so many lasts, in its first delivery, for longer than a drain.
"""

import asyncio
import time

from tenure import Tenure, current
from tests.worker import program
from tests.worker.program import journal

LONG_EVERY, LONG = 61, 1.0


def _is_long(number: int) -> bool:
    return number % LONG_EVERY == 0 and current().lease.deliveries == 1


async def on_the_loop(number: int) -> None:
    journal().write("start", number)
    await asyncio.sleep(LONG if _is_long(number) else number % 7 / 1000)  # handler
    journal().write("end", number)


def in_a_thread(number: int) -> None:
    journal().write("start", number)
    if _is_long(number):
        deadline = time.monotonic() + LONG
        while time.monotonic() < deadline:
            if current().cancelled:
                return
            time.sleep(0.005)  # handler
    time.sleep(number % 7 / 1000)  # handler
    journal().write("end", number)


def build(url: str, namespace: str) -> Tenure:
    """Return an application with both jobs."""
    app = Tenure(url, namespace=namespace)
    for function in (on_the_loop, in_a_thread):
        app.job(name=function.__name__)(function)
    return app


if __name__ == "__main__":
    program.main(build)
