"""The application of the supervisor's tests: `tenure worker tests.worker.supervised:app --workers N`.

Its store is the environment's.
"""

import ctypes
import os

from tenure import Tenure
from tests.worker import program
from tests.worker.program import journal

kept: list[bytes] = []


async def exits() -> None:
    journal().write("start", "exits")
    os._exit(1)


async def dereferences_null() -> None:
    journal().write("start", "dereferences_null")
    ctypes.string_at(0)


async def swells(size: int) -> None:
    kept.append(b"x" * size)
    journal().write("end", "swells")


def build(url: str, namespace: str) -> Tenure:
    """Return an application with the jobs of these tests."""
    made = program.build(url, namespace)
    for function in (exits, dereferences_null, swells):
        made.job(name=function.__name__)(function)
    return made


app = build(os.environ.get("TENURE_URL", "memory://"), os.environ.get("QUEUE_NAMESPACE", "nobody"))
