"""The Lua scripts: read from their files at first use, called by their digest.

A script's header names its keys; the call is made from those names, so the two cannot differ. A line
``-- include: name`` stands for the whole of ``include/name.lua``. Nothing else is ever joined to a script.
"""

import functools
import hashlib
import importlib.resources
import re
from collections.abc import Mapping

_INCLUDE = re.compile(r"^-- include: ([a-z]+)$", re.MULTILINE)
_KEYS = re.compile(r"^-- KEYS: ([a-z :]*)$", re.MULTILINE)


class Script:
    """One transition."""

    def __init__(self, name: str, source: str) -> None:
        keys = _KEYS.search(source)
        if keys is None:
            raise ValueError(f"{name}.lua names no keys")
        self.name = name
        self.source: bytes = source.encode()
        self.keys: tuple[str, ...] = tuple(keys[1].split())
        self.digest: bytes = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()
        self.key_count: bytes = str(len(self.keys)).encode()


class Scripts:
    """All scripts by name."""

    def __init__(self, sources: Mapping[str, str] | None = None) -> None:
        """Take the scripts as they are packaged, or the given sources (``include/…`` among them) instead."""
        self._sources = packaged() if sources is None else sources
        self._scripts: dict[str, Script] = {}

    def __getitem__(self, name: str) -> Script:
        script = self._scripts.get(name)
        if script is None:
            script = self._scripts[name] = Script(name, _INCLUDE.sub(self._included, self._sources[name]))
        return script

    def _included(self, line: re.Match[str]) -> str:
        return self._sources[f"include/{line[1]}"].rstrip("\n")


@functools.cache
def packaged() -> Mapping[str, str]:
    """Return the packaged sources by name."""
    root = importlib.resources.files("tenure.drivers.redis") / "lua"
    sources: dict[str, str] = {}
    for folder, start in ((root, ""), (root / "include", "include/")):
        for file in folder.iterdir():
            if file.name.endswith(".lua"):
                sources[start + file.name.removesuffix(".lua")] = file.read_text(encoding="utf-8")
    return sources
