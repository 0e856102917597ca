"""The metrics of a supervisor and its children: one text for all of them.

Each child counts for itself, and is asked for it. What it says carries its seat as the label ``worker``, so there are
as many values as there are seats, however often a child is replaced. What counts only up goes on from what those before
it in the seat have told last; gauges are of those alone that answer now.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from tenure.ext.prometheus.families import Family, Labels, decoded
from tenure.worker.supervisor import Child, Crew, Tally, answers

SEAT: Final = "worker"
GAUGE: Final = "gauge"
AGES: Final = "_seconds"
"""How gauges end that are ages or times: of two children in one seat, the higher one counts; all others are added."""

_Key = tuple[str, tuple[tuple[str, str], ...]]


class CrewMetrics:
    """Tells what the children of one crew count, and what has happened to them."""

    def __init__(self, crew: Crew) -> None:
        """Note from now on what each child came to."""
        self._crew = crew
        self._gone = Sums()
        crew.departed = self._depart

    async def text(self) -> bytes:
        """Ask all children, and return all of it in Prometheus' text form; in the crew's event loop."""
        answered = await answers(self._crew.children)
        children = self._crew.children
        self._crew.tally.silent += sum(told is None for told in answered.values())
        registry = CollectorRegistry()
        registry.register(TallyCollector(self._crew.tally, len(children)))
        sums = self._gone.copy()
        for child in children:
            sums.add(_counted_by(child), {SEAT: str(child.seat)}, gauges=answered.get(child) is not None)
        registry.register(sums)
        return generate_latest(registry)

    def _depart(self, child: Child) -> None:
        self._gone.add(_counted_by(child), {SEAT: str(child.seat)}, gauges=False)


class Sums(Collector):
    """Metrics of several processes, added up where their labels are the same."""

    def __init__(self) -> None:
        self._about: dict[str, tuple[str, str]] = {}
        self._values: dict[str, dict[_Key, float]] = {}

    def copy(self) -> "Sums":
        """Return these sums, to go on from."""
        copy = Sums()
        copy._about = dict(self._about)
        copy._values = {name: dict(values) for name, values in self._values.items()}
        return copy

    def add(self, families: Iterable[Family], labels: Labels, *, gauges: bool) -> None:
        """Add what a process told, with these labels besides; its gauges too, or what counts only up alone."""
        for family in families:
            if family.kind == GAUGE and not gauges:
                continue
            self._about[family.name] = (family.documentation, family.kind)
            values = self._values.setdefault(family.name, {})
            highest = family.kind == GAUGE and family.name.endswith(AGES)
            for sample, own, value in family.samples:
                key = (sample, (*own.items(), *labels.items()))
                before = values.get(key, 0.0)
                values[key] = max(before, value) if highest else before + value

    def collect(self) -> Iterator[Metric]:
        """Yield the sums."""
        for name, values in self._values.items():
            metric = Metric(name, *self._about[name])
            for (sample, labels), value in values.items():
                metric.add_sample(sample, dict(labels), value)
            yield metric


class TallyCollector(Collector):
    """Collects what a supervisor itself knows."""

    def __init__(self, tally: Tally, alive: int) -> None:
        self._tally = tally
        self._alive = alive

    def collect(self) -> Iterator[Metric]:
        """Yield what it is now."""
        tally = self._tally
        yield GaugeMetricFamily("tenure_worker_processes", "Worker processes that live.", value=self._alive)
        started = CounterMetricFamily(
            "tenure_worker_processes_started",
            "Worker processes that were started; each but the first of a seat has replaced another.",
            labels=[SEAT],
        )
        for seat, count in sorted(tally.started.items()):
            started.add_metric([str(seat)], count)
        ended = CounterMetricFamily(
            "tenure_worker_processes_ended",
            "Worker processes that ended, by the reason that they gave, or the signal or exit code they died with.",
            labels=["how"],
        )
        for how, count in sorted(tally.ended.items()):
            ended.add_metric([how], count)
        yield from (started, ended)
        yield CounterMetricFamily(
            "tenure_worker_processes_silent", "How often one did not tell in time what it counts.", value=tally.silent
        )
        yield CounterMetricFamily(
            "tenure_leases_given_back", "Leases of ended worker processes that were given back.", value=tally.given_back
        )


def _counted_by(child: Child) -> Sequence[Family]:
    return decoded(child.asking.last.metrics) if child.asking.last is not None else ()
