"""What the demo shows while it runs: a live bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tenure.cli.output import inert, say

Advance = Callable[[int], None]


class Screen(Protocol):
    """Where the demo speaks."""

    def line(self, text: str) -> None:
        """Show a line of text, above the bar if there is one."""
        ...

    def bar(self, label: str, total: int) -> Any:
        """Return a context manager of a bar; it gives a function that takes how many of the total are done."""
        ...


class Plain:
    """Lines only, a few for each bar."""

    STEPS = 5

    def line(self, text: str) -> None:
        """Print the line."""
        say(inert(text))

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Advance]:
        """Print a line for each fifth."""
        shown = 0

        def advance(done: int) -> None:
            nonlocal shown
            step = done * self.STEPS // max(total, 1)
            if step > shown:
                shown = step
                self.line(f"{label}: {done:,} of {total:,}")

        yield advance


class Live:
    """A bar that moves, drawn by rich."""

    def __init__(self) -> None:
        # Imported here: it is needed on terminals only, and takes longer to import than the rest of the command.
        from rich.console import Console  # noqa: PLC0415

        self._console = Console(markup=False, highlight=False, emoji=False)

    def line(self, text: str) -> None:
        """Print the line above the bar."""
        self._console.print(inert(text), soft_wrap=True)

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Advance]:
        """Show the bar for the length of the block."""
        from rich import progress  # noqa: PLC0415

        columns = (
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
        )
        with progress.Progress(*columns, console=self._console) as bars:
            task = bars.add_task(label, total=total)
            yield lambda done: bars.update(task, completed=done)


def screen() -> Screen:
    """Return the screen that fits standard output."""
    return Live() if sys.stdout.isatty() else Plain()
