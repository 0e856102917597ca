"""A composition in memory, as data: how far it has come, and its nodes."""

from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto

from tenure.compositions import CompositionState, CompositionStatus, Gate, JobNode, NewComposition, Node, When, ended_as
from tenure.queue import Ack, Drop, Release, Settlement


class End(IntEnum):
    """How a node has ended, as what it tells is concerned."""

    SUCCEEDED = 0
    FAILED = 1
    CANCELLED = 2


class Stage(Enum):
    """Where a node is."""

    WAITS = auto()
    RELEASED = auto()
    """It is a job of its queue."""
    ENDED = auto()


@dataclass(slots=True, eq=False)
class Graph:
    """A composition and all of its nodes, by number."""

    made: NewComposition
    serial: int
    """Rises from one composition of the store to the next."""
    created_at: float
    created: float
    """The clock's monotonic time, as all others here that are not told to anybody."""
    members: "dict[int, Member]" = field(default_factory=dict, repr=False)
    started: bool = False
    cancelled: bool = False
    """Somebody asked for it to be cancelled while it was active."""
    total: int = 0
    pending: int = 0
    """Counted jobs that have not ended."""
    ends: list[int] = field(default_factory=lambda: [0] * len(End))
    left: int = 0
    """Nodes that have not ended, callbacks and gates too."""
    finished_at: float | None = None
    over: float | None = None
    """When the last node of all ended."""

    @property
    def state(self) -> CompositionState:
        """Where the composition is."""
        if self.finished_at is None:
            return CompositionState.CANCELLING if self.cancelled else CompositionState.ACTIVE
        failed, cancelled = self.ends[End.FAILED], self.ends[End.CANCELLED]
        return ended_as(self.made.kind, failed=failed, cancelled=cancelled, cancelling=self.cancelled)

    def status(self) -> CompositionStatus:
        """Return what can be read of it."""
        return CompositionStatus(
            id=self.made.id,
            home=self.made.home,
            kind=self.made.kind,
            name=self.made.name,
            state=self.state,
            total=self.total,
            succeeded=self.ends[End.SUCCEEDED],
            failed=self.ends[End.FAILED],
            cancelled=self.ends[End.CANCELLED],
            created_at=self.created_at,
            finished_at=self.finished_at,
        )


@dataclass(slots=True, eq=False)
class Member:
    """A node of a composition."""

    graph: Graph = field(repr=False)
    node: Node
    needs: int
    """Endings that it is still to be told of."""
    well: bool = True
    """All that it was told of succeeded."""
    input: bytes | None = field(default=None, repr=False)
    """What the node that told it returned, if it takes it."""
    stage: Stage = Stage.WAITS

    @property
    def job(self) -> JobNode | None:
        """The node, if it is a job."""
        return None if isinstance(self.node, Gate) else self.node

    @property
    def next(self) -> tuple[int, ...]:
        """The numbers of the nodes that it tells."""
        if isinstance(self.node, Gate):
            return self.node.next
        return () if self.node.next is None else (self.node.next,)

    @property
    def counted(self) -> bool:
        """Whether it is one of those that the composition was made for."""
        return self.node.number >= 0

    @property
    def gives(self) -> bool:
        """Whether what it returns is wanted by the next."""
        return self.job is not None and self.job.gives

    @property
    def called_off(self) -> bool:
        """Whether it must not run any more, since the composition was cancelled."""
        if not self.graph.cancelled:
            return False
        return self.counted or self.job is None or self.job.when is not When.ANY

    @property
    def may_run(self) -> bool:
        """Whether a job that was told of all that it needs runs."""
        if self.job is None or self.called_off:
            return False
        return {When.SUCCESS: self.well, When.FAILURE: not self.well, When.ANY: True}[self.job.when]


def end_of(settlement: Settlement) -> End:
    """Return how a settlement that removes a job from where it waits or runs ends it."""
    if isinstance(settlement, Ack):
        return End.SUCCEEDED
    return End.CANCELLED if isinstance(settlement, Drop | Release) else End.FAILED
