"""Worker processes on a store, and waiting for what they do."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from tenure import Tenure
from tests.support import processes
from tests.support.processes import Child, eventually
from tests.worker.program import Journal, build


class Bench:
    """One namespace on a store, a journal, and worker processes."""

    def __init__(
        self,
        url: str,
        namespace: str,
        journal: Journal,
        *,
        program: str = "tests.worker.program",
        build: Callable[[str, str], Tenure] = build,
    ) -> None:
        self.url = url
        self.namespace = namespace
        self.journal = journal
        self.program = program
        self.app: Tenure = build(url, namespace)

    def push(self, job: str, *args: Any, **options: Any) -> str:
        call = self.app.call(job, args)
        return self.app.push_sync(call, **options).id

    @contextlib.contextmanager
    def worker(self, *, program: str | None = None, url: str | None = None, **options: Any) -> Iterator[Child]:
        options = {"sleep": 0.2, **options}
        arguments = [url or self.url, self.namespace, json.dumps(options)]
        environment = {
            "TENURE_TEST_JOURNAL": str(self.journal.path), "TENURE_TEST_URL": arguments[0],
            "TENURE_TEST_NAMESPACE": self.namespace,
        }  # fmt: skip
        with processes.python("-m", program or self.program, *arguments, env=environment) as child:
            child.wait_for_output("worker started", 30)
            yield child

    def journaled(self, count: int, what: str, timeout: float = 20) -> list[dict[str, Any]]:
        eventually(lambda: len(self.journal.lines(what)) >= count, timeout, what=f"{count} times {what}")
        return self.journal.lines(what)

    def counts(self, timeout: float = 20, **expected: int) -> None:
        def as_expected() -> bool:
            counts = self.app.counts_sync("default")
            return all(getattr(counts, name) == number for name, number in expected.items())

        eventually(as_expected, timeout, what=f"counts {expected}")


def ended_with(child: Child, reason: str, timeout: float = 10) -> None:
    assert child.wait(timeout) == 0, child.output
    assert f"exit reason: {reason}" in child.output, child.output
    assert "Traceback" not in child.output, child.output
