"""Numbered calls (P1): a lost reply is repeated, and the repeat changes nothing.

A lane is a client in the store's eyes: a random id, the number of its last call, and one call under way. The store
keeps each client's last number with its answer. Nothing here does I/O: ``NumberedCall`` says what to send, and what an
answer or a trouble means; the asynchronous and the blocking side carry it out.
"""

import random
import time
from collections.abc import Sequence

import msgspec

from tenure import naming
from tenure.drivers.redis.connection import Reply, pack
from tenure.drivers.redis.keys import QueueKeys
from tenure.drivers.redis.scripts import Script
from tenure.drivers.redis.trouble import Rejected, Trouble, Unloaded, Unsent
from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreRefused

ANSWER_KEPT = b"3600000"
"""Milliseconds for which the store keeps a client's last answer."""
IDLE = 1800.0
"""Seconds after which a lane takes a new id, well before the store forgets the old one."""

_JOBS = ("jobs",)
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 2.0


class Patience(msgspec.Struct, frozen=True):
    """How long to wait, in seconds."""

    answer: float = 5.0
    """For the answer to one sending; then it counts as lost."""
    repeats: float = 30.0
    """For a lost answer, from then on, by sending the call again."""
    moves: float = 10.0
    """For a queue that nobody takes calls for, as its slot is being moved or another server takes over."""


class Lane:
    """A client of the store: one writing call of one kind, to one queue, at a time."""

    __slots__ = ("client", "number", "used")

    def __init__(self) -> None:
        self.client: str = naming.new_token()
        self.number: int = 1
        """The number that its next call takes."""
        self.used: float = 0.0

    def recorded(self) -> None:
        """The store has recorded a call under the number."""
        self.number += 1
        self.used = time.monotonic()


class Lanes:
    """The lanes of one place (an event loop, a blocking pusher) that no call uses at the moment.

    Taking and giving back are single operations of a list, so threads may share it.
    """

    def __init__(self) -> None:
        self._free: dict[tuple[str, str], list[Lane]] = {}

    def take(self, kind: str, queue: str) -> Lane:
        """Return a lane for one call."""
        free = self._free.setdefault((kind, queue), [])
        try:
            lane = free.pop()
        except IndexError:
            return Lane()
        if lane.number > 1 and time.monotonic() - lane.used > IDLE:
            return Lane()
        return lane

    def give(self, kind: str, queue: str, lane: Lane) -> None:
        """Take back a lane whose last call's fate is known."""
        self._free[kind, queue].append(lane)


class NumberedCall:
    """One writing call to one queue, until its outcome is known or given up.

    Between ``command()`` and its ``answered()`` or ``troubled()`` lies one exchange with the server.
    """

    kept: bytes = ANSWER_KEPT
    """Milliseconds for which the store keeps its answer."""

    def __init__(
        self,
        lanes: Lanes,
        patience: Patience,
        queue: str,
        keys: QueueKeys,
        script: Script,
        arguments: Sequence[bytes | str | int],
    ) -> None:
        self._lanes = lanes
        self._patience = patience
        self._queue = queue
        self._keys = keys
        self._script = script
        self._arguments = arguments
        self._lane = lanes.take(script.name, queue)
        self._whole = False
        self._lost_since: float | None = None
        self._pause = _FIRST_PAUSE
        self._renewed = False

    @property
    def client(self) -> bytes:
        """The key under which the store keeps the call's number and answer, as things stand now."""
        return self._keys.client(self._lane.client)

    @property
    def key(self) -> bytes:
        """A key in the queue's slot."""
        return self._keys.all(_JOBS)[0]

    @property
    def tied(self) -> bool:
        """Each command stands for itself: it may go over a new connection."""
        return False

    @property
    def repeated(self) -> bool:
        """It was sent before, and what became of that sending is not known."""
        return self._lost_since is not None

    def command(self) -> bytes:
        """Return what is to be sent now."""
        lane, script = self._lane, self._script
        start = (b"EVAL", script.source) if self._whole else (b"EVALSHA", script.digest)
        return pack(
            *start,
            script.key_count,
            self._keys.client(lane.client),
            *self._other_keys(),
            lane.number,
            b"1" if self.repeated else b"0",
            self.kept,
            *self._arguments,
        )

    def _other_keys(self) -> Sequence[bytes]:
        names = self._script.keys[1:]
        if "fresh" not in names:
            return self._keys.all(names)
        fresh = self._keys.leftover(f"{self._lane.client}-{self._lane.number}")
        return [fresh if name == "fresh" else self._keys.named(name) for name in names]

    def answered(self, reply: Reply) -> bool:
        """Take the reply: True when it is the call's outcome, False when the call is to be sent again.

        Raises ``OutcomeUnknown`` when an earlier sending's fate can no longer be learnt.
        """
        status = reply[0]
        if status == b"old":
            # The store does not know the client (any more). What was sent once was not executed; what was sent before
            # may have been.
            if self.repeated or self._renewed:
                raise OutcomeUnknown("the store has lost its record of this call; it may or may not have happened")
            self._lane = Lane()
            self._renewed = True
            return False
        if status != b"empty":
            self._lane.recorded()
        self._lanes.give(self._script.name, self._queue, self._lane)
        return True

    def troubled(self, trouble: Trouble) -> float:
        """Take a trouble: return the seconds to wait before sending again, or raise the call's final error."""
        if isinstance(trouble, Unloaded):
            self._whole = True
            return 0.0
        self._whole = False
        if self._lost_since is None:
            if isinstance(trouble, Unsent):
                self._lanes.give(self._script.name, self._queue, self._lane)
                raise ConnectionFailed(str(trouble)) from trouble
            if isinstance(trouble, Rejected):
                if trouble.partly:
                    raise OutcomeUnknown("a script broke off in the store; see the server's log") from trouble
                self._lanes.give(self._script.name, self._queue, self._lane)
                raise StoreRefused(trouble.code, trouble.problem) from trouble
            self._lost_since = time.monotonic()
            return 0.0
        return self._next_pause(trouble, self._lost_since)

    def _next_pause(self, trouble: Trouble, since: float) -> float:
        left = since + self._patience.repeats - time.monotonic()
        if left <= 0:
            seconds = self._patience.repeats
            raise OutcomeUnknown(
                f"sent, and repeated for {seconds:g} s, without an answer; it may or may not have happened"
            ) from trouble
        pause = min(self._pause * random.uniform(0.5, 1.5), left)  # noqa: S311
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return pause
