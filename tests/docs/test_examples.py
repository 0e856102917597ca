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
    if snippet.language == "python":
        name = snippet.file_name or f"example_{snippet.line}.py"
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(snippet.text)
        run([sys.executable, name], directory, env)
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
    for snippet in snippets(document.read_text()):
        if snippet.not_run:
            continue
        env = environment(tmp_path)
        if snippet.server:
            server: Server = request.getfixturevalue(snippet.server)
            env["TENURE_URL"] = server.url
        try:
            try_out(snippet, tmp_path, env)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            pytest.fail(f"{document.name}, line {snippet.line}: {error}", pytrace=False)
