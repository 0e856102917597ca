"""What differs between systems: memory, signals, and what an exit code says."""

import pathlib
import signal
import sys

import pytest

from tenure.worker import platform


def test_the_memory_in_use_rises_with_what_is_used_and_falls_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = platform.resident_memory()
    block = b"x" * 50_000_000
    with_block = platform.resident_memory()
    del block
    after = platform.resident_memory()
    assert before is not None
    assert with_block is not None
    assert after is not None
    assert with_block - before > 40_000_000
    assert with_block - after > 40_000_000
    # Without /proc it is the most that there ever was.
    monkeypatch.setattr(platform, "_STATM", pathlib.Path("nowhere"))
    most = platform.resident_memory()
    assert most is not None
    assert most >= with_block * 0.9


def test_the_memory_in_use_is_unknown_where_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "_STATM", pathlib.Path("nowhere"))
    monkeypatch.setitem(sys.modules, "resource", None)
    assert platform.resident_memory() is None


@pytest.mark.parametrize(
    ("code", "text"), [(0, "exit code 0"), (3, "exit code 3"), (-signal.SIGKILL, "SIGKILL"), (-64, "SIGRTMAX")]
)
def test_an_exit_code_is_told_as_what_it_was(code: int, text: str) -> None:
    assert platform.exit_text(code) == text


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    assert platform.exit_text(-63) == "signal 63"
