"""The compositions of a process by their homes: found, listed, and forgotten when their time is over."""

import heapq
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field

from tenure.clock import Clock
from tenure.compositions import ABANDONED, CompositionPage, NewComposition
from tenure.drivers.memory.members import Graph
from tenure.errors import InvalidOption
from tenure.naming import shown
from tenure.summaries import LONGEST_PAGE, check_limit, record_number

STEP = 100
"""How many compositions one step forgets at most (P6)."""


@dataclass(slots=True)
class Home:
    """Those of one queue."""

    graphs: dict[str, Graph] = field(default_factory=dict)
    serials: list[int] = field(default_factory=list)
    """Of those that have started, rising."""
    by_serial: dict[int, Graph] = field(default_factory=dict)
    over: "OrderedDict[int, Graph]" = field(default_factory=OrderedDict)
    """Those of which all has ended, in that order."""


class Homes:
    """Compositions by home and id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._homes: dict[str, Home] = {}
        self._serial = 0
        self._ends: list[tuple[float, int, Graph]] = []
        self._prepared: OrderedDict[int, Graph] = OrderedDict()

    def add(self, made: NewComposition) -> Graph | None:
        """Take a new composition in; None when there is one with this id that is not forgotten."""
        old = self._homes.get(made.home, Home()).graphs.get(made.id)
        if old is not None:
            if not self._expired(old):
                return None
            self._forget(old)
        home = self._homes.setdefault(made.home, Home())
        self._serial += 1
        graph = Graph(made, self._serial, self._clock.time(), self._clock.monotonic())
        home.graphs[made.id] = self._prepared[graph.serial] = graph
        return graph

    def started(self, graph: Graph) -> None:
        """List a composition from now on."""
        del self._prepared[graph.serial]
        home = self._homes[graph.made.home]
        home.serials.insert(bisect_left(home.serials, graph.serial), graph.serial)
        home.by_serial[graph.serial] = graph

    def over(self, graph: Graph) -> None:
        """Keep a composition, of which all has ended, for its time."""
        graph.over = self._clock.monotonic()
        self._homes[graph.made.home].over[graph.serial] = graph
        heapq.heappush(self._ends, (graph.over + graph.made.retention, graph.serial, graph))

    def graph(self, home: str, composition_id: str) -> Graph | None:
        """Return a composition, started or not."""
        graph = self._homes.get(home, Home()).graphs.get(composition_id)
        return None if graph is None or self._expired(graph) else graph

    def readable(self, home: str, composition_id: str) -> Graph | None:
        """Return a composition that has started."""
        graph = self.graph(home, composition_id)
        return graph if graph is not None and graph.started else None

    def _expired(self, graph: Graph) -> bool:
        now = self._clock.monotonic()
        if graph.started:
            return graph.over is not None and graph.over + graph.made.retention <= now
        return graph.created + ABANDONED <= now

    def sweep(self) -> None:
        """Forget those whose time is over, and those that were never started, at most ``STEP`` of either."""
        for _ in range(STEP):
            if not self._ends or not self._expired(self._ends[0][2]):
                break
            self._forget(heapq.heappop(self._ends)[2])
        for _ in range(STEP):
            first = next(iter(self._prepared.values()), None)
            if first is None or not self._expired(first):
                break
            self._forget(first)

    def prune(self, home: str, until: float) -> int:
        """Forget those that were over by then, at most ``STEP``."""
        over = self._homes.get(home, Home()).over
        removed = 0
        while over and removed < STEP:
            graph = next(iter(over.values()))
            if graph.over is None or graph.over > until:
                break
            # One that could not be read any more was forgotten before.
            removed += not self._expired(graph)
            self._forget(graph)
        return removed

    def _forget(self, graph: Graph) -> None:
        home = self._homes.get(graph.made.home)
        if home is None or home.graphs.get(graph.made.id) is not graph:
            return  # it was pruned before its time was over
        graph.members.clear()
        del home.graphs[graph.made.id]
        self._prepared.pop(graph.serial, None)
        home.over.pop(graph.serial, None)
        if home.by_serial.pop(graph.serial, None) is not None:
            del home.serials[bisect_left(home.serials, graph.serial)]
        if not home.graphs:
            del self._homes[graph.made.home]

    def page(self, home: str, limit: int, cursor: str | None) -> CompositionPage:
        """Return those of a home behind the cursor, by their serial numbers."""
        check_limit(limit)
        last = 0 if cursor is None else record_number(cursor)
        if last is None:
            raise InvalidOption(f"{shown(str(cursor))} is no cursor of this listing; begin without one")
        there = self._homes.get(home, Home())
        first = bisect_right(there.serials, last)
        serials = there.serials[first : first + min(limit, LONGEST_PAGE)]
        more = first + len(serials) < len(there.serials)
        graphs = [there.by_serial[serial] for serial in serials]
        return CompositionPage(
            compositions=[graph.status() for graph in graphs if not self._expired(graph)],
            cursor=str(serials[-1]) if more else None,
        )
