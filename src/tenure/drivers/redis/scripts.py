"""The Lua scripts: read from their files at first use, called by their digest.

A script's header names its keys; the call is made from those names, so the two cannot differ. A line
``-- include: name`` stands for the whole of ``name.lua`` of the line's own folder, or of ``include``. Nothing else is
ever joined to a script.

The line is how a queue's ready jobs are kept: ``list`` or ``stream``. A folder of that name holds what differs; the
scripts themselves are the same. Where they name a key ``beside``, they mean what the line keeps beside its own key, and
its folder's ``line.lua`` tells the name.
"""

import functools
import hashlib
import importlib.resources
import re
from collections.abc import Mapping
from typing import Final, Literal

Line = Literal["list", "stream"]

FOLDERS: Final = ("include", "list", "stream")
"""Where the parts lie that scripts are made of; the scripts of one line alone lie in its folder, too."""
_INCLUDE = re.compile(r"^-- include: ([a-z]+)$", re.MULTILINE)
_KEYS = re.compile(r"^-- KEYS: ([a-z :]*)$", re.MULTILINE)
_BESIDE = re.compile(r"^-- beside: ([a-z:]+)$", re.MULTILINE)


class Script:
    """One transition."""

    def __init__(self, name: str, source: str) -> None:
        keys, beside = _KEYS.search(source), _BESIDE.search(source)
        if keys is None:
            raise ValueError(f"{name}.lua names no keys")
        self.name = name
        self.source: bytes = source.encode()
        self.keys: tuple[str, ...] = tuple(
            beside[1] if key == "beside" and beside is not None else key for key in keys[1].split()
        )
        self.digest: bytes = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()
        self.key_count: bytes = str(len(self.keys)).encode()


class Scripts:
    """All scripts of one line, by name."""

    def __init__(self, sources: Mapping[str, str] | None = None, *, line: Line = "list") -> None:
        """Take the scripts as they are packaged, or the given sources (those of all folders among them) instead."""
        self._sources = packaged() if sources is None else sources
        self._line = line
        self._scripts: dict[str, Script] = {}

    @property
    def names(self) -> list[str]:
        """The names of all of them, sorted."""
        texts = {name.removeprefix(f"{self._line}/"): text for name, text in self._sources.items()}
        return sorted(name for name, text in texts.items() if "/" not in name and _KEYS.search(text))

    def __getitem__(self, name: str) -> Script:
        script = self._scripts.get(name)
        if script is None:
            source = self._sources.get(name) or self._sources[f"{self._line}/{name}"]
            script = self._scripts[name] = Script(name, _INCLUDE.sub(self._included, source))
        return script

    def _included(self, line: re.Match[str]) -> str:
        own = self._sources.get(f"{self._line}/{line[1]}")
        return (self._sources[f"include/{line[1]}"] if own is None else own).rstrip("\n")


@functools.cache
def packaged() -> Mapping[str, str]:
    """Return the packaged sources by name."""
    root = importlib.resources.files("tenure.drivers.redis") / "lua"
    sources: dict[str, str] = {}
    for folder, start in ((root, ""), *((root / name, f"{name}/") for name in FOLDERS)):
        for file in folder.iterdir():
            if file.name.endswith(".lua"):
                sources[start + file.name.removesuffix(".lua")] = file.read_text(encoding="utf-8")
    return sources
