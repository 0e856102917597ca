"""The program of the cases with a job in a process of its own, which imports this module to find it."""

import os
import time

from tenure import Tenure
from tests.cases import program
from tests.worker import program as worker
from tests.worker.program import journal


def in_a_process(seconds: float) -> str:
    journal().write("start", "in_a_process")
    caught, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            time.sleep(0.01)  # handler
            int("no number")
        except BaseException:  # noqa: BLE001
            caught += 1
    journal().write("late", "in_a_process")
    return f"caught {caught}"


def build(url: str, namespace: str) -> Tenure:
    """Return an application that knows this job, too."""
    made = program.build(url, namespace)
    made.job(name="in_a_process", executor="process")(in_a_process)
    return made


app = build(os.environ.get("TENURE_TEST_URL", "memory://"), os.environ.get("TENURE_TEST_NAMESPACE", "apart"))


def main() -> None:
    from tests.cases.apart import app as importable  # noqa: PLC0415 - __main__ is another module

    worker.main(lambda *_: importable)


if __name__ == "__main__":
    main()
