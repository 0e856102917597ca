"""Settlements: grouped by queue, each lease named by its member, so that nothing stale can change anything."""

from collections.abc import Sequence

from tenure.drivers.redis import keeping, record
from tenure.drivers.redis.session import Session
from tenure.errors import StoreError
from tenure.queue import Ack, Drop, Fail, Release, Settled, Settlement

MOST = 500
MOST_BYTES = 1 << 20
"""What one call carries at most."""
MOST_KEPT = 100
"""How many ends it keeps at most: as many as it forgets whose time is over."""
_REMEMBERED = 10_000

_LETTERS = {"d": Settled.DONE, "c": Settled.CANCELLED, "s": Settled.STALE}
_REPEATED = {**_LETTERS, "d": Settled.REPEATED}


class _Group:
    """Settlements of one queue that go in one call: acknowledgements first, the others behind them."""

    __slots__ = ("ack_places", "acks", "kept", "other_members", "other_places", "others", "queue", "size")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.ack_places: list[int] = []
        self.acks: list[str] = []
        self.other_places: list[int] = []
        self.other_members: list[str] = []
        self.others: list[bytes | str | int] = []
        self.size = 0
        self.kept = 0

    @property
    def full(self) -> bool:
        many = len(self.ack_places) + len(self.other_places) >= MOST or self.kept >= MOST_KEPT
        return many or self.size >= MOST_BYTES

    def add(self, place: int, member: str, settlement: Settlement) -> None:
        keeps = settlement.lease.keep > 0
        self.kept += keeps
        acknowledged = isinstance(settlement, Ack)
        if isinstance(settlement, Ack | Drop) and not record.looked_at(settlement.lease, acknowledged=acknowledged):
            self.ack_places.append(place)
            self.acks.append(member)
            return
        self.other_places.append(place)
        self.other_members.append(member)
        if isinstance(settlement, Release):
            # A crash is never free.
            kind = "crashed" if settlement.crashed else "free" if settlement.free else ""
            self.others += ("r", member, record.milliseconds(settlement.delay, "delay"), kind)
        elif isinstance(settlement, Fail):
            line = record.failure_line(settlement.failure)
            self.size += len(line)
            why = keeping.reason(settlement.failure) if keeps else b""
            self.others += (keeping.failed_letter(settlement.failure), member, line, why)
        elif isinstance(settlement, Ack):
            result = settlement.result if keeps or settlement.lease.gives else None
            self.size += len(result or b"")
            self.others += ("k", member, result or b"", "none" if result is None else "")
        elif isinstance(settlement, Drop):
            self.others += ("d", member, "", "")
        else:
            self.others += ("s", member, settlement.reason, "")

    @property
    def places(self) -> list[int]:
        return self.ack_places + self.other_places

    @property
    def members(self) -> list[str]:
        return self.acks + self.other_members

    @property
    def arguments(self) -> list[bytes | str | int]:
        return [len(self.acks), *self.acks, *self.others]


class Settlements:
    """The settlements of one event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Done by calls that then failed at another queue: asked for again, they are repeats, not stale.
        self._done_before: dict[tuple[str, str], Settled] = {}

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        """End each lease; see ``tenure.queue.Queue.settle``."""
        outcomes = [Settled.STALE] * len(settlements)
        groups: list[_Group] = []
        open_groups: dict[str, _Group] = {}
        named: set[tuple[str, str]] = set()
        for place, settlement in enumerate(settlements):
            lease = settlement.lease
            member = record.member(lease)
            if (lease.queue, member) in named:
                # Named before in this call: the first one counts, this one is stale.
                continue
            named.add((lease.queue, member))
            group = open_groups.get(lease.queue)
            if group is None or group.full:
                group = open_groups[lease.queue] = _Group(lease.queue)
                groups.append(group)
            group.add(place, member, settlement)
        sent: list[_Group] = []
        try:
            for group in groups:
                await self._send(group, outcomes)
                sent.append(group)
        except StoreError:
            self._remember(sent, outcomes)
            raise
        return outcomes

    async def _send(self, group: _Group, outcomes: list[Settled]) -> None:
        status, letters = await self._session.write(group.queue, "settle", group.arguments)
        meanings = _REPEATED if status == b"repeated" else _LETTERS
        if not letters:
            for place in group.places:
                outcomes[place] = meanings["d"]
            return
        for place, member, letter in zip(group.places, group.members, letters.decode(), strict=True):
            before = self._done_before.pop((group.queue, member), None) if letter == "s" else None
            outcomes[place] = before or meanings[letter]

    def _remember(self, sent: list[_Group], outcomes: list[Settled]) -> None:
        if len(self._done_before) > _REMEMBERED:
            self._done_before.clear()
        for group in sent:
            for place, member in zip(group.places, group.members, strict=True):
                if outcomes[place] is not Settled.STALE:
                    done = outcomes[place]
                    self._done_before[group.queue, member] = Settled.REPEATED if done is Settled.DONE else done
