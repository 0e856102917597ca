"""The house rules hold in every file of the project, and each rule finds what it forbids."""

import functools
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from tests.quality import rules

ROOT = Path(__file__).parents[2]


@functools.cache
def files() -> list[tuple[PurePosixPath, str]]:
    """Every file that is or may become part of the project, with its text."""
    # A checkout may belong to another user than the one who tests it.
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    paths = [path for path in dict.fromkeys(listed) if path and (ROOT / path).is_file()]
    return [(PurePosixPath(path), (ROOT / path).read_text(errors="replace")) for path in paths]


# S2
@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps(rule: rules.Rule) -> None:
    assert len(files()) > 20
    found = [f"{path}:{finding}" for path, text in files() for finding in rule(path, text)]
    assert not found, "\n".join([rule.__doc__ or "", *found])


PLANTED: list[tuple[rules.Rule, str, str]] = [
    (rules.short_files, "src/a.py", "x = 1\n" * 400),
    (rules.short_files, "src/a.lua", "\n" * 400),
    (rules.no_whole_database, "tests/test_a.py", "client.flush" + "db()"),
    (rules.no_whole_database, "src/a.lua", "redis.call('FLUSH" + "ALL')"),
    (rules.no_whole_database, "src/a.lua", "redis.call('KE" + "YS', ARGV[1])"),
    (rules.no_whole_database, "src/a.py", "client.ke" + "ys('ns:*')"),
    (rules.no_broad_kill, "tools/a.sh", "p" + "kill -f worker"),
    (rules.no_registry, "requirements/run.txt", "--index-url https://py" + "pi.org/simple"),
    (rules.no_machine_path, "docs/a.md", "cd /wo" + "rk/main"),
    (rules.no_machine_path, "tests/a.py", "open('/ro" + "ot/.bashrc')"),
    (rules.no_fakes, "tests/test_a.py", "from unittest import mo" + "ck"),
    (rules.no_fakes, "tests/test_a.py", "import fakere" + "dis"),
    (rules.no_sleeping_tests, "tests/test_a.py", "import time\ntime.sleep(0.1)"),
    (rules.no_sleeping_tests, "tests/test_a.py", "async def f():\n    await asyncio.sleep(1)"),
    (rules.no_swallowed_errors, "src/a.py", "try:\n    f()\nexcept Exception:\n    pass"),
    (rules.no_swallowed_errors, "src/a.py", "try:\n    f()\nexcept:\n    ..."),
    (rules.no_swallowed_errors, "src/a.py", "with contextlib.suppress(Exception):\n    f()"),
]
ALLOWED: list[tuple[rules.Rule, str, str]] = [
    (rules.short_files, "src/a.py", "x = 1\n" * 399),
    (rules.no_whole_database, "src/a.lua", "redis.call('HGET', KEYS[1], 'k')"),
    (rules.no_whole_database, "src/a.py", "for k in d.keys(): f(k, KEYS)"),
    (rules.no_machine_path, "src/a.py", "f'{root}/work/x ~/work https://example.com/root'"),
    (rules.no_sleeping_tests, "tests/test_a.py", "await_ = asyncio.sleep(0)"),
    (rules.no_sleeping_tests, "tests/test_a.py", "time.sleep(60)  # handler"),
    (rules.no_sleeping_tests, "tests/support/a.py", "time.sleep(60)"),
    (rules.no_swallowed_errors, "src/a.py", "try:\n    f()\nexcept KeyError:\n    pass"),
]


@pytest.mark.parametrize(("rule", "path", "text"), PLANTED)
def test_a_rule_finds_what_it_forbids(rule: rules.Rule, path: str, text: str) -> None:
    assert rule(PurePosixPath(path), text)


@pytest.mark.parametrize(("rule", "path", "text"), ALLOWED)
def test_a_rule_leaves_the_rest_alone(rule: rules.Rule, path: str, text: str) -> None:
    assert not rule(PurePosixPath(path), text)
