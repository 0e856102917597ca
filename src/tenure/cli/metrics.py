"""``tenure metrics``."""

from typing import TYPE_CHECKING, Any

import click

from tenure.cli import output
from tenure.cli.opened import with_app
from tenure.cli.options import json_option, queues, store_options
from tenure.cli.output import say
from tenure.cli.store import Where

if TYPE_CHECKING:
    from tenure.ext.prometheus import StoreMetrics


@click.command()
@queues("-q", "--queue", "names", help="Only these queues.  [default: all, at most 1000]")
@json_option
@store_options
def metrics(names: tuple[str, ...] | None, *, as_json: bool, **where: Any) -> None:
    """Print the store's view of its queues for Prometheus.

    How many jobs are ready, delayed, leased, lapsed, failed and unreadable in each queue, how old the oldest is, and
    whether it is paused. The cost does not grow with the number of jobs. A worker's own metrics are those of --http.
    """
    from tenure.ext.prometheus import StoreMetrics  # noqa: PLC0415 - an extra

    place = Where(**where)
    found = with_app(place, lambda app: StoreMetrics.of(app, queues=names, connection=place.connection))
    say(output.as_json({"metrics": _samples(found)}) if as_json else found.text().decode().rstrip("\n"))


def _samples(found: "StoreMetrics") -> list[dict[str, object]]:
    return [
        {"name": sample.name, "labels": sample.labels, "value": sample.value}
        for metric in found.collect()
        for sample in metric.samples
    ]
