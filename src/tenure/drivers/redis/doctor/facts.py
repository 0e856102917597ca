"""What a server says of itself, read once, for all checks to judge."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from tenure.errors import StoreRefused
from tenure.operating import Finding, Severity


class Ask(Protocol):
    """Sends a command that changes nothing; one that names no key goes to the server of ``key``, or to any."""

    async def __call__(self, *arguments: bytes | str | int, key: bytes = b"") -> Any:
        """Return the reply as it came; raises ``StoreError``."""
        ...


DENIED: Final = frozenset({"NOPERM", "ERR"})
"""Codes of a refusal that concerns the command alone: forbidden, renamed, or unknown to this server."""

SETTINGS: Final = (
    "appendfsync",
    "no-appendfsync-on-rewrite",
    "save",
    "stop-writes-on-bgsave-error",
    "maxmemory",
    "maxmemory-policy",
    "timeout",
    "maxclients",
    "lua-time-limit",
    "min-replicas-to-write",
)


class Facts:
    """INFO and the settings of one server; None for what its user may not read."""

    def __init__(self, info: Mapping[str, str], settings: Mapping[str, str]) -> None:
        self._info = info
        self._settings = settings

    @property
    def known(self) -> bool:
        """INFO could be read."""
        return bool(self._info)

    @property
    def hidden(self) -> Sequence[str]:
        """The settings that could not be read."""
        return [name for name in SETTINGS if name not in self._settings]

    def text(self, name: str) -> str | None:
        """Return a field of INFO."""
        return self._info.get(name)

    def number(self, name: str) -> int | None:
        """Return a field of INFO that is a whole number."""
        return _number(self._info.get(name))

    def setting(self, name: str) -> str | None:
        """Return a setting."""
        return self._settings.get(name)

    def amount(self, name: str) -> int | None:
        """Return a setting that is a whole number."""
        return _number(self._settings.get(name))

    @property
    def version(self) -> tuple[int, ...]:
        """The version of the commands that the server has; empty when it is not known."""
        # Valkey tells here which Redis it is compatible with.
        parts = (self.text("redis_version") or "").split(".")
        return tuple(int(part) for part in parts if part.isdigit())

    @property
    def server(self) -> str:
        """The server's name and version, for people."""
        valkey = self.text("valkey_version")
        return f"Valkey {valkey}" if valkey else f"Redis {self.text('redis_version')}"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


async def read(ask: Ask, key: bytes = b"") -> Facts:
    """Read those of the server of a key, or of any. A refusal that concerns more than the command itself is raised."""
    info: dict[str, str] = {}
    try:
        said: bytes = await ask(b"INFO", key=key)
    except StoreRefused as refusal:
        if refusal.code not in DENIED:
            raise
    else:
        for line in said.decode(errors="replace").splitlines():
            name, colon, value = line.partition(":")
            if colon:
                info[name] = value
    settings: dict[str, str] = {}
    for name in SETTINGS:
        try:
            pair = await ask(b"CONFIG", "GET", name, key=key)
        except StoreRefused as refusal:
            if refusal.code not in DENIED:
                raise
            break
        if len(pair) == 2:
            settings[name] = pair[1].decode(errors="replace")
    return Facts(info, settings)


def serious(check: str, found: str, risk: str, remedy: str) -> Finding:
    """Return a serious finding."""
    return Finding(severity=Severity.SERIOUS, check=check, found=found, risk=risk, remedy=remedy)


def warning(check: str, found: str, risk: str, remedy: str) -> Finding:
    """Return a warning."""
    return Finding(severity=Severity.WARNING, check=check, found=found, risk=risk, remedy=remedy)


def note(check: str, found: str, risk: str, remedy: str) -> Finding:
    """Return a note."""
    return Finding(severity=Severity.NOTE, check=check, found=found, risk=risk, remedy=remedy)
