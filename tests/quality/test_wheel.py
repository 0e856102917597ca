"""What users install holds everything that the checkout holds: scripts and the mark of a typed package too."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def test_the_wheel_is_complete(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("tenure-*.whl")
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "tenure").rglob("*")
        if path.is_file() and not CACHES & set(path.parts)
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("tenure/")}
    assert "tenure/py.typed" in packed
    assert packed == expected
