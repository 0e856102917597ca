"""Concurrent pushes of one event loop, joined into few calls.

One call costs the client as much for one job as for fifty. So pushes that come while the calls before them are under
way wait for each other, briefly, and go together; each caller gets the answers for its own jobs.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from tenure.drivers.redis.connection import Reply
from tenure.drivers.redis.pushing import MOST_BYTES, MOST_JOBS, Answer, Bulk, Part
from tenure.drivers.redis.relaying import lane_of
from tenure.drivers.redis.session import Session
from tenure.errors import (
    ConnectionFailed,
    DurabilityNotReached,
    InvalidOption,
    NotSupported,
    OutcomeUnknown,
    StoreError,
)
from tenure.queue import Capabilities, Push, Pushed

UNDER_WAY = 2
"""How many calls to one queue may be under way: while the server works on one, the next is made."""


_Told = tuple[Answer, DurabilityNotReached | None]
"""What became of jobs; an error besides when they are stored, and what they waited for did not come."""


class Pushes:
    """The pushes of one event loop."""

    def __init__(self, session: Session, capabilities: Capabilities) -> None:
        self._session = session
        self._capabilities = capabilities
        self._lines: dict[tuple[str, int], _Line] = {}
        self._registered: set[str] = set()

    async def push(self, jobs: Sequence[Push]) -> list[Pushed]:
        """Store the jobs; see ``tenure.queue.Queue.push``."""
        bulk = Bulk(jobs, self._capabilities)
        for part in bulk.parts:
            try:
                answer, short = await self._line(part.queue, part.durability).send(part)
            except (StoreError, NotSupported) as error:
                bulk.failed(part, error)
                break
            if short is not None:
                bulk.unconfirmed(part, answer, short)
                break
            bulk.answered(part, answer)
        return bulk.result()

    def _line(self, queue: str, durability: int) -> "_Line":
        # What waits for a disk or a replica must not hold up the rest.
        line = self._lines.get((queue, durability))
        if line is None:
            line = self._lines[queue, durability] = _Line(self, self._session)
        return line

    async def send(self, queue: str, durability: int, arguments: list[bytes | str]) -> _Told:
        """Make one call."""
        known = await self._know(queue)
        short: DurabilityNotReached | None = None
        if durability == 1:
            reply = await self._session.write(queue, "push", arguments)
        else:
            reply, short = await self._session.write_confirmed(queue, "push", arguments, durability)
        return self._answer(queue, reply, known=known), short

    async def push_numbered(self, client: str, number: int, jobs: Sequence[Push]) -> list[Pushed]:
        """Store the jobs by the call of that number; see ``tenure.relaying.Relays``."""
        bulk = Bulk(jobs, self._capabilities)
        if len(bulk.parts) > 1:
            raise InvalidOption(
                "a numbered push carries jobs of one queue and one class, in one call; nothing was sent"
            )
        for part in bulk.parts:
            known = await self._know(part.queue)
            lane = lane_of(client, number)
            reply, short = await self._session.relay(part.queue, lane, part.arguments, part.durability)
            answer = self._answer(part.queue, reply, known=known)
            if short is None:
                bulk.answered(part, answer)
            else:
                bulk.unconfirmed(part, answer, short)
        return bulk.result()

    async def _know(self, queue: str) -> bool:
        """See to it that the store knows the queue's name; tell whether it was seen to before."""
        known = queue in self._registered
        if not known:
            try:
                await self._session.command(b"SADD", self._session.keyspace.queues, queue)
            except OutcomeUnknown as error:
                raise ConnectionFailed("the connection broke before the push was sent; nothing was stored") from error
            self._registered.add(queue)
        return known

    def _answer(self, queue: str, reply: Reply, *, known: bool) -> Answer:
        if known and reply[2:] == [b"1"]:
            # Its first jobs ever, and we knew it before: the store was emptied under us, and its list of queues too.
            self._registered.discard(queue)
        return Answer.told(reply[1])


class _Line:
    """The pushes to one queue, of one class of durability."""

    def __init__(self, pushes: Pushes, session: Session) -> None:
        self._pushes = pushes
        self._session = session
        self._waiting: deque[_Waiting] = deque()
        self._under_way = 0
        self._called = False

    async def send(self, part: Part) -> _Told:
        """Send the part with others of this moment. Cancelling the caller changes nothing."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Told] = loop.create_future()
        self._waiting.append((part, future))
        if not self._called and self._under_way < UNDER_WAY:
            # At the end of this round of the loop, when everyone who is ready has spoken.
            self._called = True
            loop.call_soon(self._go)
        return await future

    def _go(self) -> None:
        self._called = False
        while self._waiting and self._under_way < UNDER_WAY:
            taken = [self._waiting.popleft()]
            jobs, size = len(taken[0][0]), taken[0][0].size
            while self._waiting:
                part = self._waiting[0][0]
                jobs, size = jobs + len(part), size + part.size
                if jobs > MOST_JOBS or size > MOST_BYTES:
                    break
                taken.append(self._waiting.popleft())
            self._under_way += 1
            self._session.start(self._send(taken))

    async def _send(self, taken: "list[_Waiting]") -> None:
        outcome: list[_Told] | Exception = OutcomeUnknown("the queue was closed while the push was under way")
        try:
            arguments = [argument for part, _ in taken for argument in part.arguments]
            first = taken[0][0]
            answer, short = await self._pushes.send(first.queue, first.durability, arguments)
            outcome = [(own, short) for own in answer.parts(len(part) for part, _ in taken)]
        except (StoreError, NotSupported) as error:
            outcome = error
        finally:
            # Also when the loop is being shut down: whoever still waits must be told.
            _tell(taken, outcome)
            self._under_way -= 1
            self._go()


_Waiting = tuple[Part, "asyncio.Future[_Told]"]


def _tell(taken: list[_Waiting], outcome: list[_Told] | Exception) -> None:
    for place, (_, future) in enumerate(taken):
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome[place])
