"""From a composition as a value to the nodes that a store takes: checked, and encoded part by part."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tenure.call import Call, Step
from tenure.composed import Whose
from tenure.compositions import RETENTION, Compositions, JobNode, NewComposition, Node, job_id
from tenure.config import AUTO
from tenure.connections import Connection
from tenure.drivers.sync import SyncQueue
from tenure.errors import InvalidOption, NotSupported
from tenure.flow.plan import Plan
from tenure.flow.tails import Planned
from tenure.flow.values import Composition
from tenure.naming import new_job_id
from tenure.operations import Operations
from tenure.preparing import Given, Preparing, is_unique, queue_of
from tenure.tracing import Departure

PART: Final = 500
"""Nodes that are prepared and stored together."""
FEATURE: Final = "compositions"

Top = Composition | Call[Any]


class Order:
    """One composition that is being stored."""

    def __init__(self, preparing: Preparing, top: Top, name: str | None, departure: Departure) -> None:
        self._preparing = preparing
        self._name = name
        self._departure = departure
        self._top = top
        self._plan = Plan(top)
        self._planned = self._plan.nodes()
        self._first: list[Node] = []
        self.whose: Whose = Whose()
        """Which member is which job."""

    def begin(self) -> None:
        """Read the first part of what the caller has given, and prepare it; raises ``Refused``, and sends nothing."""
        head = list(itertools.islice(self._planned, 1))
        first = self._plan.first
        assert first is not None, "what has no calls is refused"
        top = self._top if isinstance(self._top, Composition) else None
        self.connection: Connection = self._preparing.connection(first, self._name)
        self._refuse_connection()
        self._plan.limit(self.connection.settings.max_composition_members)
        self.new: NewComposition = NewComposition(
            id=(top and top.id) or new_job_id(),
            home=queue_of(first),
            kind=self._plan.kind,
            name="" if top is None else top.name,
            retention=RETENTION if top is None else top.retention,
        )
        self._planned = itertools.chain(head, self._planned)
        self._first = self._part()

    @property
    def inline(self) -> bool:
        """Whether it runs at once, here."""
        return isinstance(self.connection.queue, SyncQueue)

    @property
    def limit(self) -> int:
        """Bytes of the longest result that is passed on."""
        return self.connection.settings.max_payload_bytes

    def store(self, operations: Operations) -> Compositions:
        """Return where it is to be stored; raises ``NotSupported``."""
        return operations.compositions.store(self.connection.name)

    def parts(self) -> Iterator[Sequence[Node]]:
        """Yield its nodes, part by part."""
        part, self._first = self._first, []
        while part:
            yield part
            part = self._part()

    def all(self) -> list[Node]:
        """Return all of its nodes."""
        return [node for part in self.parts() for node in part]

    def _part(self) -> list[Node]:
        return [
            self._node(node) if isinstance(node, Planned) else node for node in itertools.islice(self._planned, PART)
        ]

    def _node(self, planned: Planned) -> JobNode:
        call, number = planned.call, planned.number
        self._refuse(call, planned)
        given = Given(job_id=job_id(self.new.id, number), result_ttl=planned.result_ttl)
        push = self._preparing.push(call, self.connection, self._departure, given)
        if number >= 0:
            self.whose.note(number, push.queue, call.definition)
        return JobNode(
            number=number,
            push=push,
            needs=planned.needs,
            when=planned.when,
            next=planned.next,
            takes=planned.takes,
            gives=planned.gives,
        )

    def _refuse_connection(self) -> None:
        """Raise ``NotSupported`` for a connection that cannot have compositions."""
        can = self.connection.capabilities
        if self.connection.settings.configured == AUTO:
            raise NotSupported(
                can.driver,
                f"{FEATURE} on an 'auto' connection",
                "a later process could choose another store, and would know nothing of them: name one",
            )
        if not can.compositions:
            raise NotSupported(can.driver, FEATURE)

    def _refuse(self, call: "Call[Any] | Step", planned: Planned) -> None:
        """Raise ``Refused`` for what a job cannot be pushed with inside of a composition."""
        refuse_inside(call, self.connection)
        options, can = call.overrides, self.connection.capabilities
        if options.connection and self._preparing.connection(call) is not self.connection:
            raise InvalidOption(
                f"{call.definition.name} is to go to another connection: a composition is in one; nothing was sent"
            )
        if options.at is not None and not planned.first:
            raise InvalidOption(
                f"{call.definition.name} has a date, and its turn may come after it: give it a delay, which is counted "
                "from then on; nothing was sent"
            )
        queue = queue_of(call)
        if queue != self.new.home and not can.spanning:
            raise NotSupported(
                can.driver,
                f"a composition over several queues ({self.new.home} and {queue})",
                "a queue is a slot of its own there, and no step can be atomic over two: use options(queue=…) to put "
                "all its jobs into one queue",
            )


def refuse_inside(call: Call[Any] | Step, connection: Connection) -> None:
    """Raise ``Refused`` for options that mean nothing to a job of a composition."""
    options, driver = call.overrides, connection.capabilities.driver
    if options.transaction is not None or options.after_commit is not None:
        raise NotSupported(
            driver,
            f"transaction= and after_commit= in {FEATURE}",
            "storing one takes several calls: push it after the commit",
        )
    if options.id is not None:
        raise InvalidOption(
            f"{call.definition.name} has an id: a composition numbers its jobs itself; give the composition an id; "
            "nothing was sent"
        )
    if is_unique(call):
        raise NotSupported(
            driver,
            f"unique jobs in {FEATURE}",
            "one that is held would leave its composition waiting for ever: use options(unique=False)",
        )
    if (options.durability or call.definition.options.durability or 1) > 1:
        raise NotSupported(driver, f"durability above 1 in {FEATURE}", "the settlement before it is what pushes a job")
