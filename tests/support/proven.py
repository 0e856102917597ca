"""Repeats at the end of a run what could not be proven on this machine, so that it is not lost among the dots."""

import collections

import pytest

from tests.support.absent import PREFIX


def reason(report: pytest.TestReport) -> str | None:
    """Return why a test was skipped, if it was for want of a server."""
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return None
    text = report.longrepr[2].removeprefix("Skipped: ")
    return text if text.startswith(PREFIX) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    missing = collections.Counter(
        text for report in terminalreporter.stats.get("skipped", []) if (text := reason(report))
    )
    for text, number in sorted(missing.items()):
        terminalreporter.write_line(f"{text}: {number} tests did not run", yellow=True, bold=True)
