"""Installs tenure with the newest releases that its requirements allow, for `make test-newest`."""

import pathlib
import subprocess
import sys
import tomllib

root = pathlib.Path(__file__).parents[1]
project = tomllib.loads((root / "pyproject.toml").read_text())
extras = ",".join(project["project"]["optional-dependencies"])
packages = [*project["dependency-groups"]["test"], *project["dependency-groups"]["build"]]
pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-qq", "--upgrade"]
subprocess.run([*pip, "-e", f"{root}[{extras}]", *packages], check=True)
