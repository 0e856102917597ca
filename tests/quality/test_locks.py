"""The locks are those of the declared dependencies, agree with one another and are pinned by hash."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^ \\;]+)(?: ; (?P<marker>[^\\]+?))? *\\?$", re.MULTILINE)


def pins(name: str) -> set[tuple[str, str]]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return {(found["name"], found["version"]) for found in PIN.finditer(text)}


def declared(*, checkers: bool) -> set[str]:
    """The names in pyproject.toml, as locks spell them."""
    everything = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = everything["project"], everything["dependency-groups"]
    chosen = groups if checkers else {name: groups[name] for name in ("test", "build")}
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *chosen.values()]
    names = [re.match(r"[\w.-]+", requirement) for requirements in lists for requirement in requirements]
    return {re.sub(r"[._-]+", "-", name[0]).lower() for name in names if name}


@pytest.mark.parametrize(("lock", "checkers"), [("check", True), ("test", False)])
def test_every_declared_dependency_is_locked(lock: str, checkers: bool) -> None:
    missing = declared(checkers=checkers) - {name for name, _ in pins(lock)}
    assert not missing, f"{missing} not in requirements/{lock}.txt: run make lock"


def test_the_locks_agree() -> None:
    assert pins("run") <= pins("test") <= pins("check")
    assert pins("run")


@pytest.mark.parametrize("lock", ["run", "test", "check", "redis62"])
def test_every_package_is_pinned_by_hash(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    assert not [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry]
