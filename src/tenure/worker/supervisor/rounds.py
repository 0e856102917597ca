"""Asks all children of a crew at the same time, and waits for none of them for long."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from tenure.worker.supervisor.asking import Told
from tenure.worker.supervisor.child import Child

PATIENCE: Final = 1.0
"""Seconds within which a child tells how it fares, or counts as silent."""


async def answers(children: Sequence[Child]) -> Mapping[Child, Told]:
    """Return what each of them told; silent ones are left out."""
    told = await asyncio.gather(*(child.asking.ask(PATIENCE) for child in children))
    return {child: answer for child, answer in zip(children, told, strict=True) if answer is not None}


async def any_ready(children: Sequence[Child]) -> bool:
    """Tell whether one of them is ready, as soon as one says so."""
    questions = [asyncio.ensure_future(child.asking.ask(PATIENCE)) for child in children]
    try:
        for question in asyncio.as_completed(questions):
            told = await question
            if told is not None and told.ready:
                return True
        return False
    finally:
        for question in questions:
            question.cancel()
