"""Compositions: stored in parts, read and operated upon by steps. What advances them is in the scripts."""

import base64
import binascii
from collections.abc import Sequence

from tenure import naming
from tenure.compositions import (
    ABANDONED,
    CompositionPage,
    CompositionState,
    CompositionStatus,
    Gate,
    JobNode,
    Kind,
    NewComposition,
    Node,
    When,
    ended_as,
)
from tenure.drivers.redis import record
from tenure.drivers.redis.pushing import MOST_BYTES, MOST_JOBS, check
from tenure.drivers.redis.session import Session
from tenure.errors import InvalidOption, NotSupported, StoreRefused
from tenure.queue import Capabilities, Lease
from tenure.summaries import LONGEST_PAGE, check_age, check_limit

MOST_GROWN = 500
"""How many jobs are added to a batch at a time."""

_KINDS = {Kind.CHAIN: "c", Kind.BATCH: "b", Kind.WORKFLOW: "w"}
_KIND_OF = {letter.encode(): kind for kind, letter in _KINDS.items()}
_WHEN = {When.SUCCESS: "s", When.FAILURE: "f", When.ANY: "a"}
_UNKNOWN = "there is no such composition that has not started; one that never starts is forgotten in a day"


class Composer:
    """The compositions of one event loop."""

    def __init__(self, session: Session, capabilities: Capabilities) -> None:
        self._session = session
        self._capabilities = capabilities

    async def prepare(self, new: NewComposition) -> bool:
        """Begin to store a composition; False when there is one with this id in this home."""
        retention = record.milliseconds(new.retention, "retention")
        arguments = (naming.check_job_id(new.id), _KINDS[new.kind], retention, int(ABANDONED * 1000), new.name)
        await self._session.command(b"SADD", self._session.keyspace.queues, naming.check_queue(new.home))
        _, letter = await self._session.write(new.home, "prepare", arguments)
        return bool(letter == b"y")

    async def add(self, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        """Store nodes, in parts."""
        parts: list[list[bytes | str | int]] = []
        room = 0
        for node in nodes:
            text = self._text(home, node)
            if not parts or len(parts[-1]) > 2 * MOST_JOBS - 1 or len(text) > room:
                parts.append([naming.check_job_id(composition_id)])
                room = MOST_BYTES
            parts[-1] += (node.number, text)
            room -= len(text)
        for part in parts or [[naming.check_job_id(composition_id)]]:
            _, letter = await self._session.write(home, "add", part)
            if letter != b"y":
                raise StoreRefused("UNKNOWN", _UNKNOWN)

    def _text(self, home: str, node: Node) -> bytes:
        """Return a node as it is stored."""
        if isinstance(node, Gate):
            return f"g|{node.needs}|{','.join(map(str, node.next))}".encode()
        options = self._options(home, node)
        # A callback that runs in any case is one also when its composition was cancelled.
        flags = "t" * node.takes + "g" * node.gives + "a" * (node.when is When.ANY and not node.counted)
        told = "" if node.next is None else str(node.next)
        return f"j|{node.needs}|{_WHEN[node.when]}|{told}|{flags}|{options}\n".encode() + node.push.envelope

    def _options(self, home: str, node: JobNode) -> str:
        """Return what a push has for its options, or raise ``NotSupported``."""
        if node.push.queue != home:
            raise NotSupported(
                self._capabilities.driver,
                "a composition whose jobs are in several queues",
                "what lies in several parts of the server cannot change in one step; put them into one queue",
            )
        check(node.push, self._capabilities)
        return record.push_options(node.push)

    async def start(self, home: str, composition_id: str) -> None:
        """Let it begin."""
        _, letter = await self._session.write(home, "start", (naming.check_job_id(composition_id),))
        if letter == b"g":
            raise InvalidOption("a composition begins with the gate -1; nothing was started")
        if letter == b"n":
            raise StoreRefused("UNKNOWN", _UNKNOWN)

    async def grow(self, lease: Lease, nodes: Sequence[Node]) -> bool:
        """Add counted jobs that tell what the lease's job tells; False when that cannot be any more."""
        arguments: list[bytes | str | int] = [record.member(lease)]
        for node in nodes:
            if isinstance(node, Gate) or not node.counted or len(nodes) > MOST_GROWN:
                raise InvalidOption(f"a batch grows by up to {MOST_GROWN} counted jobs at a time; nothing was added")
            arguments += (_WHEN[node.when], self._options(lease.queue, node), node.push.envelope)
        if not lease.composition:
            return False
        _, letter = await self._session.write(lease.queue, "grow", arguments)
        return bool(letter == b"y")

    async def status(self, home: str, composition_id: str) -> CompositionStatus | None:
        """Return how far it has come, or None."""
        stored = await self._session.run(home, "composition", (naming.check_job_id(composition_id),))
        return _status(home, composition_id, stored) if stored else None

    async def page(self, home: str, limit: int, cursor: str | None) -> CompositionPage:
        """Return a page of a listing; one without any is passed over."""
        check_limit(limit)
        most = min(limit, LONGEST_PAGE)
        after = "" if cursor is None else _read(cursor)
        while True:
            reply = await self._session.run(home, "compositions", (most, after))
            pairs = list(zip(reply[::2], reply[1::2], strict=True))
            found = [_status(home, name.decode(), stored) for name, stored in pairs if stored]
            if len(pairs) < most:
                return CompositionPage(compositions=found, cursor=None)
            after = pairs[-1][0].decode()
            if found:
                return CompositionPage(compositions=found, cursor=base64.urlsafe_b64encode(after.encode()).decode())

    async def cancel(self, home: str, composition_id: str) -> bool:
        """Cancel it, step by step; False for one that is unknown or over."""
        composition = naming.check_job_id(composition_id)
        at = ""
        while True:
            # A cancelled caller ends it between two steps: what is left ends when it is claimed, or told.
            _, answer = await self._session.through(self._session.write(home, "halt", (composition, at)))
            at = answer.decode()
            if not at or at == "n":
                return not at

    async def prune(self, home: str, older_than: float) -> int:
        """Forget those that were over long ago, step by step; return their number."""
        check_age(older_than)
        age = record.milliseconds(min(older_than, record.LONGEST_MS / 1000), "older_than")
        total, until, after = 0, "", ""
        while True:
            step = self._session.write(home, "dissolve", (age, until, after))
            _, answer = await self._session.through(step)
            forgotten, until, after = answer.decode().split("|")
            total += int(forgotten)
            if not after:
                return total


def _read(cursor: str) -> str:
    try:
        return naming.check_job_id(base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode())
    except (binascii.Error, UnicodeError, InvalidOption):
        raise InvalidOption(f"{naming.shown(cursor)} is no cursor of this listing; begin without one") from None


def _status(home: str, composition_id: str, stored: bytes) -> CompositionStatus:
    """Return what can be read of it."""
    _, kind, asked, *counted, _, _, _, name = stored.split(b"|", 13)
    total, succeeded, failed, cancelled, _, created, finished = map(int, counted)
    cancelling = asked == b"1"
    if finished:
        state = ended_as(_KIND_OF[kind], failed=failed, cancelled=cancelled, cancelling=cancelling)
    else:
        state = CompositionState.CANCELLING if cancelling else CompositionState.ACTIVE
    return CompositionStatus(
        id=composition_id,
        home=home,
        kind=_KIND_OF[kind],
        name=name.decode(),
        state=state,
        total=total,
        succeeded=succeeded,
        failed=failed,
        cancelled=cancelled,
        created_at=created / 1000,
        finished_at=finished / 1000 if finished else None,
    )
