"""Pushes of durability 2 and 3: stored first, then confirmed, on the very connection that wrote (rule 8).

The server's WAIT and WAITAOF speak of what *this connection* wrote: asked on another one, even a new one to the same
server, they confirm what they know nothing of. And they always answer with a count, which has to be compared.

Class 2 is confirmed by WAITAOF. A server without it (Redis before 7.2) reaches the class by itself when it forces its
append-only file to the disk before each answer (``appendfsync always``): that is looked up before and after the push.
Nothing here does I/O.
"""

import time
from typing import Final

import msgspec

from tenure.drivers.redis.connection import Reply, pack
from tenure.drivers.redis.lanes import NumberedCall
from tenure.drivers.redis.trouble import Lost, Rejected, Trouble, Unsent
from tenure.errors import ConnectionFailed, DurabilityNotReached, NotSupported, StoreRefused

CLASSES: Final = frozenset({1, 2, 3})
SLICE: Final = 1.0
"""Seconds that one asking may last, well within the time that an answer may take."""
_UNAVAILABLE: Final = frozenset({"ERR", "NOPERM"})
"""Codes of a refusal that concerns the command alone."""
_ALWAYS: Final = {b"appendonly": b"yes", b"appendfsync": b"always", b"no-appendfsync-on-rewrite": b"no"}
"""The settings with which a server's answer means that the disk has it."""


class Assurance(msgspec.Struct, frozen=True):
    """What pushes of durability 2 and 3 wait for."""

    replicas: int = 1
    """How many replicas must have a push of class 3."""
    within: float = 5.0
    """Seconds to wait, counted from the server's first answer; then ``DurabilityNotReached``."""


USUAL: Final = Assurance()


class Known:
    """What one place (an event loop, a blocking pusher) has learnt of its server."""

    def __init__(self, driver: str) -> None:
        self.driver: str = driver
        """Whose server it is, for errors."""
        self.waits_for_disk = False
        """It has WAITAOF, and writes an append-only file. Forgotten when it fails to confirm."""


class ConfirmedCall:
    """A numbered push, until its class is reached or given up; it has the interface of ``NumberedCall``.

    Ends by ``DurabilityNotReached`` when the push was stored and not confirmed; its ``reply`` is there all the same.
    """

    def __init__(self, call: NumberedCall, durability: int, assurance: Assurance, known: Known) -> None:
        self._call = call
        self._durability = durability
        self._assurance = assurance
        self._known = known
        self._step = "write" if durability == 3 or known.waits_for_disk else "try"
        self._always = False
        self._until = 0.0
        self.reply: Reply = None
        """What the server answered to the push itself."""

    @property
    def key(self) -> bytes:
        """A key in the queue's slot."""
        return self._call.key

    @property
    def tied(self) -> bool:
        """The next command is about what was sent before: it must go over the same connection or not at all."""
        return self._step in {"touch", "confirm"}

    def command(self) -> bytes:
        """Return what is to be sent now."""
        match self._step:
            case "try":
                return pack(b"WAITAOF", 1, 0, 1)
            case "look":
                return pack(b"CONFIG", b"GET", b"*append*")
            case "write":
                return self._call.command()
            case "touch":
                return pack(b"PEXPIRE", self._call.client, self._call.kept)
            case _:
                return self._confirmation()

    def _confirmation(self) -> bytes:
        if self._always:
            return pack(b"CONFIG", b"GET", b"*append*")
        # Zero would mean for ever.
        most = max(1, round(min(SLICE, self._until - time.monotonic()) * 1000))
        if self._durability == 2:
            return pack(b"WAITAOF", 1, 0, most)
        return pack(b"WAIT", self._assurance.replicas, most)

    def answered(self, reply: Reply) -> bool:
        """Take the reply: True when the class is reached, False when there is more to send."""
        match self._step:
            case "try":
                self._known.waits_for_disk = True
                self._step = "write"
            case "look":
                self._always = _forces_each(reply)
                if not self._always:
                    raise _unsupported(self._known.driver, reply)
                self._step = "write"
            case "write":
                if self._call.answered(reply):
                    self.reply = reply
                    self._until = time.monotonic() + self._assurance.within
                    # A repeat has written nothing on this connection, so that it has nothing to wait for.
                    self._step = "touch" if reply[0] == b"repeated" else "confirm"
            case "touch":
                if reply != 1:
                    raise self._not_reached("the server has forgotten the call")
                self._step = "confirm"
            case _:
                return self._confirmed(reply)
        return False

    def _confirmed(self, reply: Reply) -> bool:
        if self._always:
            if _forces_each(reply):
                return True
            raise self._not_reached("the server no longer forces each write to the disk (appendfsync)")
        wanted = 1 if self._durability == 2 else self._assurance.replicas
        reached: int = reply[0] if self._durability == 2 else reply
        if reached >= wanted:
            return True
        if time.monotonic() < self._until:
            return False
        what = "the disk did not have it" if self._durability == 2 else f"{reached} of {wanted} replicas had it"
        raise self._not_reached(f"{what} within {self._assurance.within:g} s")

    def troubled(self, trouble: Trouble) -> float:
        """Take a trouble: return the seconds to wait before sending again, or raise the call's final error."""
        match self._step:
            case "write":
                return self._call.troubled(trouble)
            case "try" | "look":
                return self._unable(trouble)
            case _:
                problem = "the connection broke meanwhile"
                if isinstance(trouble, Rejected):
                    problem = f"the server refused to tell ({trouble.code}): {trouble.problem}"
                raise self._not_reached(problem) from trouble

    def _unable(self, trouble: Trouble) -> float:
        if isinstance(trouble, Unsent):
            raise ConnectionFailed(str(trouble)) from trouble
        if isinstance(trouble, Lost):
            raise ConnectionFailed("the connection broke before the push was sent; nothing was stored") from trouble
        if isinstance(trouble, Rejected) and trouble.code not in _UNAVAILABLE:
            raise StoreRefused(trouble.code, trouble.problem) from trouble
        if self._step == "look":
            raise _unsupported(self._known.driver, None) from trouble
        self._step = "look"
        return 0.0

    def _not_reached(self, problem: str) -> DurabilityNotReached:
        self._known.waits_for_disk = False
        return DurabilityNotReached(self._durability, problem)


def _forces_each(reply: Reply) -> bool:
    settings = dict(zip(reply[::2], reply[1::2], strict=True))
    return all(settings.get(name) == value for name, value in _ALWAYS.items())


def _unsupported(driver: str, reply: Reply) -> NotSupported:
    settings = {} if reply is None else dict(zip(reply[::2], reply[1::2], strict=True))
    if settings.get(b"appendonly") == b"no":
        hint = "the server writes no append-only file (appendonly)"
    elif settings:
        hint = "the server has no WAITAOF for this user (Redis 7.2, Valkey), and appendfsync is not always"
    else:
        hint = "this user may call neither WAITAOF nor CONFIG GET"
    return NotSupported(driver, "durability 2 on this server", hint)
