"""Every example in the README and in the documentation does what a reader would try first: it runs.

The examples of one document run in order and share a directory, as a reader's would.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.snippets import Snippet, commands, snippets
from tests.support.servers import Server

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [path for path in PAGES if path.exists() and "_build" not in path.parts]
SHELLS = {"sh", "bash", "shell", "console"}


def run(command: list[str], directory: Path, env: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"


def try_out(snippet: Snippet, directory: Path, env: dict[str, str]) -> None:
    """Run one example as a reader in that directory would."""
    if snippet.language == "python" and snippet.file_name:
        # A module for the examples behind it: run as a script it would be `__main__`, where no job may live.
        file = directory / snippet.file_name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(snippet.text)
    elif snippet.language == "python":
        run([sys.executable, "-c", snippet.text], directory, env)
    elif snippet.language in SHELLS:
        for command in commands(snippet):
            if command.startswith("make"):
                # What make would do is the suite itself; here only that the target exists.
                run(["sh", "-c", command.replace("make", "make -n", 1)], ROOT, env)
            else:
                run(["sh", "-c", command], directory, env)


def environment(directory: Path) -> dict[str, str]:
    """A reader's environment: nothing configured but an embedded store that is thrown away."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("TENURE_", "QUEUE_", "REDIS_", "DATABASE_", "MAKE", "MFLAGS"))
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    url = f"sqlite:///{directory}/tenure.sqlite3"
    return {**kept, "PATH": path, "PYTHONPATH": str(directory), "HOME": str(directory), "TENURE_URL": url}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_run(document: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = snippets(document.read_text())
    for place, snippet in enumerate(found):
        if snippet.not_run:
            continue
        if snippet.file_name:
            module = snippet.file_name.removesuffix(".py").replace("/", ".")
            used = any(module in later.text for later in found[place + 1 :] if not later.not_run)
            assert used, f"{document.name}, line {snippet.line}: no example uses {snippet.file_name}"
        env = environment(tmp_path)
        if snippet.server:
            server: Server = request.getfixturevalue(snippet.server)
            env["TENURE_URL"] = server.url
        try:
            try_out(snippet, tmp_path, env)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            pytest.fail(f"{document.name}, line {snippet.line}: {error}", pytrace=False)
