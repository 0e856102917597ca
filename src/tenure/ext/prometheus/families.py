"""Metrics of one process as data, so that another can add them to its own."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from prometheus_client import Metric

Labels = Mapping[str, str]


class Family(msgspec.Struct, frozen=True, array_like=True):
    """One metric: its name, what it says, its type, and its samples by name and labels."""

    name: str
    documentation: str
    kind: str
    samples: Sequence[tuple[str, Labels, float]]


def encoded(metrics: Iterable[Metric]) -> bytes:
    """Return what these metrics are now. When each began to count is left out: it is its own process's matter."""
    return msgspec.msgpack.encode(
        [
            Family(
                metric.name,
                metric.documentation,
                metric.type,
                [
                    (sample.name, sample.labels, sample.value)
                    for sample in metric.samples
                    if not sample.name.endswith("_created")
                ],
            )
            for metric in metrics
        ]
    )


def decoded(metrics: bytes) -> Sequence[Family]:
    """Return them again; none for no bytes."""
    return msgspec.msgpack.decode(metrics, type=list[Family]) if metrics else []
