"""Compositions as dictionaries, over the model of a queue: what a driver answers when nobody else is there.

Written from the promises, not from a driver: a node that ends tells the next at once, in one recursion, without steps,
lines or leftovers. What begins in one call begins together: in which order is the driver's.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tenure.compositions import START, Gate, JobNode, Kind, Node, When, ended_as, job_id
from tenure.queue import Ack, Cancelled, FailedRecord, Lease, Push, Release, Settled, Settlement
from tests.contract.model import Model

Ended = str
"""``succeeded``, ``failed`` or ``cancelled``."""


@dataclass
class Spot:
    """A node of a composition that was stored."""

    node: Node
    needs: int
    well: bool = True
    input: bytes | None = None
    ended: bool = False

    @property
    def counted(self) -> bool:
        return self.node.number >= 0


@dataclass
class Composition:
    kind: Kind
    spots: dict[int, Spot]
    cancelled: bool = False
    ends: dict[Ended, int] = field(default_factory=lambda: dict.fromkeys(("succeeded", "failed", "cancelled"), 0))

    @property
    def total(self) -> int:
        return sum(spot.counted for spot in self.spots.values())

    @property
    def pending(self) -> int:
        return self.total - sum(self.ends.values())

    @property
    def over(self) -> bool:
        return all(spot.ended for spot in self.spots.values())

    def called_off(self, spot: Spot) -> bool:
        any_callback = isinstance(spot.node, JobNode) and spot.node.when is When.ANY and not spot.counted
        return self.cancelled and not any_callback

    def status(self) -> tuple[str, int, int, int, int]:
        if self.pending:
            state = "cancelling" if self.cancelled else "active"
        else:
            failed, cancelled = self.ends["failed"], self.ends["cancelled"]
            state = ended_as(self.kind, failed=failed, cancelled=cancelled, cancelling=self.cancelled).value
        return state, self.total, self.ends["succeeded"], self.ends["failed"], self.ends["cancelled"]


@dataclass
class FlowModel(Model):
    compositions: dict[str, Composition] = field(default_factory=dict)
    members: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Jobs that wait or run as part of a composition, by id."""
    inputs: dict[str, bytes | None] = field(default_factory=dict)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Give all that enters in one call the same place."""
        before = self.entries
        yield
        for job in self.jobs.values():
            if job.entered > before and job.state in {"ready", "delayed"}:
                job.entered = self.entries

    # ------------------------------------------------------------------------------------------------ the composition

    def begin(self, of: str, kind: Kind, nodes: Sequence[Node]) -> None:
        self.compositions[of] = Composition(kind, {node.number: Spot(node, node.needs) for node in nodes})
        with self.together():
            self.tell(of, START, well=True)

    def tell(self, of: str, number: int, *, well: bool, result: bytes | None = None) -> None:
        composition = self.compositions[of]
        spot = composition.spots[number]
        spot.needs -= 1
        spot.well &= well
        if spot.needs or spot.ended:
            return
        if isinstance(spot.node, Gate):
            self.end(of, number, "succeeded" if spot.well else "failed")
            return
        wanted = {When.SUCCESS: spot.well, When.FAILURE: not spot.well, When.ANY: True}[spot.node.when]
        if not wanted or composition.called_off(spot):
            self.end(of, number, "cancelled")
            return
        self.release(of, spot.node, result)

    def release(self, of: str, node: JobNode, result: bytes | None) -> None:
        name = job_id(of, node.number)
        assert self.push([node.push]) == ["stored"]
        self.members[name] = of, node.number
        self.inputs[name] = result if node.takes else None

    def end(self, of: str, number: int, ended: Ended, result: bytes | None = None) -> None:
        composition = self.compositions[of]
        spot = composition.spots[number]
        assert not spot.ended, "a node ended twice"
        spot.ended = True
        if spot.counted:
            composition.ends[ended] += 1
        told = spot.node.next if isinstance(spot.node, Gate) else (() if spot.node.next is None else (spot.node.next,))
        for one in told:
            self.tell(of, one, well=ended == "succeeded", result=result)

    def cancel_composition(self, of: str) -> bool:
        composition = self.compositions.get(of)
        if composition is None or not composition.pending:
            return False
        composition.cancelled = True
        with self.together():
            for name, (owner, number) in list(self.members.items()):
                spot = composition.spots[number] if owner == of else None
                if spot is not None and composition.called_off(spot):
                    job = self.jobs[name]
                    if not spot.counted:
                        # Nobody removes it: it is leased to be ended.
                        job.cancel_asked |= job.state != "leased"
                    else:
                        self.cancel([name])
            for number, spot in composition.spots.items():
                if spot.counted and not spot.ended and job_id(of, number) not in self.members:
                    self.end(of, number, "cancelled")
        return True

    def grow(self, lease: Lease, nodes: Sequence[JobNode]) -> bool:
        owner = self.members.get(lease.id)
        if self.holder(lease) is None or owner is None:
            return False
        of, number = owner
        composition = self.compositions[of]
        spot = composition.spots[number]
        assert isinstance(spot.node, JobNode)
        gate = None if spot.node.next is None else composition.spots[spot.node.next]
        if composition.cancelled or not spot.counted or gate is None or isinstance(gate.node, JobNode):
            return False
        gate.needs += len(nodes)
        with self.together():
            for place, node in enumerate(nodes, composition.total):
                name = job_id(of, place)
                added = JobNode(
                    number=place,
                    push=Push(queue=node.push.queue, id=name, envelope=node.push.envelope),
                    next=gate.node.number,
                )
                composition.spots[place] = Spot(added, 1)
                self.tell(of, place, well=True)
        return True

    def prune_compositions(self) -> int:
        over = [of for of, composition in self.compositions.items() if composition.over]
        for of in over:
            del self.compositions[of]
        return len(over)

    # ------------------------------------------------------------------------------------------------------ its queue

    def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        with self.together():
            return super().settle(settlements)

    def settle_one(self, settlement: Settlement) -> Settled:
        settled = super().settle_one(settlement)
        given_back = isinstance(settlement, Release) and settled is Settled.DONE
        if settled is not Settled.STALE and not given_back:
            gives = isinstance(settlement, Ack) and settlement.lease.gives
            self.leave(settlement.lease.id, settlement, settlement.result if gives else None)  # type: ignore[union-attr]
        if given_back and settlement.lease.id in self.members:
            of, number = self.members[settlement.lease.id]
            job = self.jobs[settlement.lease.id]
            job.cancel_asked = self.compositions[of].called_off(self.compositions[of].spots[number])
        return settled

    def leave(self, name: str, settlement: Settlement | None = None, result: bytes | None = None) -> None:
        owner = self.members.pop(name, None)
        if owner is None:
            return
        ended = "failed"
        if isinstance(settlement, Ack):
            ended = "succeeded"
        elif settlement is None or type(settlement).__name__ in {"Drop", "Release"}:
            ended = "cancelled"
        self.end(*owner, ended, result)

    def cancel(self, ids: Sequence[str]) -> list[Cancelled]:
        answers = []
        for name in ids:
            (answer,) = super().cancel([name])
            answers.append(answer)
            if answer is Cancelled.REMOVED:
                self.leave(name)
        return answers

    def retry(self, records: Sequence[FailedRecord]) -> list[bool]:
        with self.together():
            return super().retry(records)

    def lease(self, lease: Lease, length: float) -> None:
        super().lease(lease, length)
        of, number = self.members.get(lease.id, ("", 0))
        assert lease.composition == of
        assert lease.input == self.inputs.get(lease.id)
        node = self.compositions[of].spots[number].node if of else None
        assert lease.gives is (isinstance(node, JobNode) and node.gives)
