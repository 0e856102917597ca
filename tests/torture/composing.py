"""Workers for compositions: `python -m tests.torture.composing URL NAMESPACE [options as JSON]`.

Their jobs write down when they start and end, and the worker which settlements the store took, as `steady` does.
"""

import asyncio
import json
import logging
import sys

from tenure import Tenure, current
from tests.torture import steady

QUEUE = "flows"
LONG_EVERY, LONG = 5, 0.2


async def link(number: int) -> int:
    return await _done(number) + 1


async def member(number: int) -> None:
    await _done(number)


async def callback(kind: str) -> None:
    steady.journal().write(what="callback", id=current().id, of=current().composition, kind=kind)


def build(url: str, namespace: str) -> Tenure:
    """Return an application whose jobs are links of chains, members of batches, and callbacks."""
    app = Tenure(url, namespace=namespace)
    for name, function in (("link", link), ("member", member), ("callback", callback)):
        app.job(name=name, queue=QUEUE)(function)
    return app


async def _done(number: int) -> int:
    attempt = current()
    facts = {"id": attempt.id, "of": attempt.composition, "number": number, "fence": attempt.fence}
    steady.journal().write(what="start", attempt=attempt.attempt, **facts)
    await asyncio.sleep(LONG if number % LONG_EVERY == 1 else 0.001)  # handler
    steady.journal().write(what="end", **facts)
    return number


def main() -> None:
    url, namespace, *rest = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    steady.work(build(url, namespace), {"queues": [QUEUE], **(json.loads(rest[0]) if rest else {})})


if __name__ == "__main__":
    main()
