"""Prints the path of the other interpreter that the suite should run on; exits with 1 when there is none here.

That is the newest supported version, or the oldest when the newest is what runs this.
"""

import os
import shutil
import subprocess
import sys

OLDEST, NEWEST = (3, 11), (3, 13)
ASK = "import sys, venv, ensurepip; print(sys.executable if sys.version_info[:2] == {} else '')"


def answer(command: list[str], **env: str) -> str:
    """Return the first line that a command prints, or nothing when it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env={**os.environ, **env}, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find(version: tuple[int, int]) -> str:
    """Return the path of an interpreter of this version that can make environments."""
    name = f"python{version[0]}.{version[1]}"
    program = shutil.which(name)
    ask = [program or name, "-c", ASK.format(version)]
    if program and (path := answer(ask)):
        return path
    # A pyenv shim runs only the versions that are switched on; switch on the newest of this line.
    for installed in reversed(answer(["pyenv", "versions", "--bare"]).split()):
        if installed.startswith(f"{version[0]}.{version[1]}.") and (path := answer(ask, PYENV_VERSION=installed)):
            return path
    return ""


if __name__ == "__main__":
    found = find(OLDEST if sys.version_info[:2] >= NEWEST else NEWEST)
    if not found:
        print("Not run on another Python: none of the supported ones is installed", file=sys.stderr)
        raise SystemExit(1)
    print(found)
