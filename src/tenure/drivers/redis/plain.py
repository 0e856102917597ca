"""Calls that may be made twice without harm: they read, or extend what is held. They carry no number."""

from collections.abc import Sequence

from tenure.drivers.redis.connection import Reply, pack
from tenure.drivers.redis.scripts import Script
from tenure.drivers.redis.trouble import Rejected, Trouble, Unloaded, Unsent
from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreRefused

_SENDINGS = 2
"""Once more after a lost answer: the usual reason is a connection that had died unnoticed."""


class PlainCall:
    """One such call, with the interface of ``NumberedCall``."""

    def __init__(self, *arguments: bytes | str | int, key: bytes = b"") -> None:
        self._arguments = arguments
        self._left = _SENDINGS
        named = arguments[1] if len(arguments) > 1 else b""
        self.key: bytes = key or (named if isinstance(named, bytes) else b"")
        """Its first key; of a command without one the server of ``key`` is asked, or any."""

    @classmethod
    def of(cls, script: Script, keys: Sequence[bytes], arguments: Sequence[bytes | str | int]) -> "PlainCall":
        """Make the call of a script that needs no number."""
        return _ScriptCall(script, keys, arguments)

    @property
    def tied(self) -> bool:
        """Each command stands for itself: it may go over a new connection."""
        return False

    def command(self) -> bytes:
        """Return what is to be sent now."""
        return pack(*self._arguments)

    def answered(self, reply: Reply) -> bool:  # noqa: ARG002
        """Take the reply: it is always the outcome."""
        return True

    def troubled(self, trouble: Trouble) -> float:
        """Take a trouble: return the seconds to wait before sending again, or raise the call's final error."""
        if isinstance(trouble, Unsent):
            raise ConnectionFailed(str(trouble)) from trouble
        if isinstance(trouble, Rejected):
            raise StoreRefused(trouble.code, trouble.problem) from trouble
        self._left -= 1
        if self._left <= 0:
            raise OutcomeUnknown("sent, and no answer came; calling again is harmless") from trouble
        return 0.0


class _ScriptCall(PlainCall):
    def __init__(self, script: Script, keys: Sequence[bytes], arguments: Sequence[bytes | str | int]) -> None:
        super().__init__(script.key_count, *keys, *arguments)
        self.key = keys[0]
        self._script = script
        self._whole = False

    def command(self) -> bytes:
        start = (b"EVAL", self._script.source) if self._whole else (b"EVALSHA", self._script.digest)
        return pack(*start, *self._arguments)

    def troubled(self, trouble: Trouble) -> float:
        if isinstance(trouble, Unloaded) and not self._whole:
            self._whole = True
            return 0.0
        return super().troubled(trouble)
