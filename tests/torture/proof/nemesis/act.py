"""What a fault is."""

from collections.abc import Callable
from typing import NamedTuple

from tests.torture.proof.stage import Proof, Stage


class Act(NamedTuple):
    """One fault: done, shown and healed when it returns."""

    name: str
    where: str
    """What it befalls: ``server network process worker clock database operator``."""
    inflict: Callable[[Stage, Proof], None]
    long: bool = False
    """Too long for a run of a few seconds."""
    needs: str = ""
    """A program without which it can not be done."""
