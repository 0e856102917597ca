"""Both type checkers infer what the public API promises, and refuse what it refuses."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.absent import not_proven

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}

pytestmark = pytest.mark.timeout(300)


def mypy_errors(file: Path) -> set[int]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(file)]
    command += ["--no-error-summary", "--cache-dir", str(file.parent / "cache")]
    paths = {"MYPYPATH": os.pathsep.join([str(ROOT / "src"), str(file.parent)])}
    done = subprocess.run(
        command, env={**ENVIRONMENT, **paths}, cwd=file.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if ": error:" in line]
    strange = [line for line in lines if not line.startswith(file.name)]
    assert not strange, "\n".join(strange)
    return {int(match[1]) for line in lines if (match := re.match(r"[^:]+:(\d+):", line))}


def pyright_errors(file: Path) -> set[int]:
    settings = {"include": [file.name], "extraPaths": [str(ROOT / "src")], "typeCheckingMode": "standard"}
    (file.parent / "pyrightconfig.json").write_text(json.dumps({**settings, "pythonVersion": "3.11"}))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "-p", str(file.parent)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {entry["range"]["start"]["line"] + 1 for entry in found if entry["severity"] == "error"}


CHECKERS = {"mypy": mypy_errors, "pyright": pyright_errors}


@pytest.fixture(params=CHECKERS)
def errors_of(request: pytest.FixtureRequest) -> Callable[[Path], set[int]]:
    if importlib.util.find_spec(request.param) is None:
        not_proven(request.param, "make test installs it")
    return CHECKERS[request.param]


def test_every_call_of_a_user_is_inferred_as_promised(errors_of: Callable[[Path], set[int]], tmp_path: Path) -> None:
    shutil.copy(HERE / "calls.py", tmp_path / "user_calls.py")
    assert errors_of(tmp_path / "user_calls.py") == set()


def test_every_wrong_call_of_a_user_is_an_error(errors_of: Callable[[Path], set[int]], tmp_path: Path) -> None:
    file = tmp_path / "wrong_calls.py"
    shutil.copy(HERE / "wrong_calls.txt", file)
    lines = file.read_text().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if line.endswith("# error")}
    assert len(expected) > 20
    assert errors_of(file) == expected
