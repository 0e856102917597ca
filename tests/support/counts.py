"""Counts the contract tests that passed for each driver, and compares with the recorded numbers.

A contract test has a parameter named `driver`. Passed, not collected: a test that was skipped or deselected counts as
missing. Reports reach the controlling process under pytest-xdist too, so the sums are right with any number of
workers. Only a whole run can be compared, so nothing happens unless `--contract-counts` is given.
"""

import json
import os
from collections import Counter

import pytest

from tests.support import proven

RECORD = "tests/contract-counts.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--contract-counts",
        choices=["check", "write"],
        help="compare the passed contract tests of each driver with the record, or write it",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Counting(config), "contract-counting")


def driver_of(item: pytest.Item) -> str | None:
    """Return the driver that a test runs on: the parameter itself, or the id it was given."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "driver" not in callspec.params:
        return None
    value = callspec.params["driver"]
    return value if isinstance(value, str) else str(getattr(value, "name", callspec.id))


class Counting:
    """What one run proved about each driver."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.passed: Counter[str] = Counter()
        self.unproven: Counter[str] = Counter()
        self.fallen: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if driver := driver_of(item):
            item.user_properties.append(("driver", driver))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        drivers = Counter(str(value) for key, value in report.user_properties if key == "driver")
        if report.when == "call" and report.passed:
            self.passed += drivers
        elif proven.reason(report):
            self.unproven += drivers

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        mode = self.config.getoption("--contract-counts")
        if hasattr(self.config, "workerinput") or not mode:
            return
        record = self.config.rootpath / RECORD
        if mode == "write":
            record.write_text(json.dumps(dict(sorted(self.passed.items())), indent=1) + "\n")
            return
        # Elsewhere than in CI a missing server is no regression; the summary says what was not proven.
        excused = Counter() if os.environ.get("CI") else self.unproven
        for driver, wanted in json.loads(record.read_text()).items():
            if self.passed[driver] + excused[driver] < wanted:
                self.fallen.append(f"{driver}: {self.passed[driver]} contract tests passed, {wanted} are in {RECORD}")
        if self.fallen and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.passed:
            counted = ", ".join(f"{driver} {number}" for driver, number in sorted(self.passed.items()))
            terminalreporter.write_line(f"contract tests passed: {counted}")
        for complaint in self.fallen:
            terminalreporter.write_line(f"ERROR: {complaint}", red=True)
