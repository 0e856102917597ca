"""Asks all children of a crew at the same time, and waits for none of them for long."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from tenure.worker.supervisor.asking import Told
from tenure.worker.supervisor.child import Child

PATIENCE: Final = 1.0
"""Seconds within which a child tells how it fares, or counts as silent."""


async def answers(children: Sequence[Child]) -> Mapping[Child, Told | None]:
    """Return what each of them told, and None of those that were silent; who has not begun is not asked."""
    begun = _begun(children)
    told = await asyncio.gather(*(child.asking.ask(PATIENCE) for child in begun))
    return dict(zip(begun, told, strict=True))


async def any_ready(children: Sequence[Child]) -> bool:
    """Tell whether one of them is ready, as soon as one says so."""
    questions = [asyncio.ensure_future(child.asking.ask(PATIENCE)) for child in _begun(children)]
    try:
        for question in asyncio.as_completed(questions):
            told = await question
            if told is not None and told.ready:
                return True
        return False
    finally:
        for question in questions:
            question.cancel()


def _begun(children: Sequence[Child]) -> Sequence[Child]:
    return [child for child in children if child.started.is_set()]
