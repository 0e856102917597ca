"""Compositions on the sync driver: their jobs run at once, here, one after the other."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from tenure.compositions import NewComposition, Node
from tenure.envelope import decode
from tenure.errors import Undecodable
from tenure.flow.handle import CompositionHandle
from tenure.flow.inline import Came, Ran, Turn, Walk
from tenure.growing import Grows
from tenure.inline import Batches, InlineRunner, lease_of
from tenure.outcomes import Discard
from tenure.queue import JobState, Lease
from tenure.registry import Registry
from tenure.returned import Unkeepable

CONNECTION: Final = "sync"

Grown = Callable[[Grows], Batches]
"""Returns what adds to the batches of a composition that is kept by this."""


class Walked:
    """A composition that has run."""

    def __init__(self, walk: Walk, new: NewComposition) -> None:
        self._walk = walk
        self.handle: CompositionHandle = CompositionHandle(Ran(walk), new.id, home=new.home, connection=CONNECTION)

    def value(self, number: int) -> Any:
        """Return what a job returned; raises what the first that failed has raised."""
        for came in self._walk.ends.values():
            if came.error is not None:
                raise came.error
        return self._walk.ends[number].value


class Walking:
    """Runs compositions of one application where they are pushed.

    A job that fails raises nothing here: what it came to is in the status, and what follows it does as the rules say.
    """

    def __init__(self, registry: Registry, runner: InlineRunner) -> None:
        self._registry = registry
        self._runner = runner

    async def walk(self, new: NewComposition, nodes: Sequence[Node], limit: int, grown: Grown) -> Walked:
        """Run all of it; results that are passed on are at most ``limit`` bytes."""
        walk = Walk(new, nodes)
        batches = grown(walk)
        steps = self._steps(new, walk, limit)
        value: Any = None
        error: Exception | None = None
        while (lease := _next(steps, value, error)) is not None:
            value, error = None, None
            try:
                value = await self._runner.attempt(lease, batches)
            except Exception as raised:  # noqa: BLE001 - the handler's, which the rules judge
                error = raised
        return Walked(walk, new)

    def walk_sync(self, new: NewComposition, nodes: Sequence[Node], limit: int, grown: Grown) -> Walked:
        """Run all of it, blocking: plain functions in this thread."""
        walk = Walk(new, nodes)
        batches = grown(walk)
        steps = self._steps(new, walk, limit)
        value: Any = None
        error: Exception | None = None
        while (lease := _next(steps, value, error)) is not None:
            value, error = None, None
            try:
                value = self._runner.attempt_sync(lease, batches)
            except Exception as raised:  # noqa: BLE001 - as above
                error = raised
        return Walked(walk, new)

    def _steps(self, new: NewComposition, walk: Walk, limit: int) -> Generator[Lease, Any, None]:
        """Yield each job that is to run, as a lease; is sent what it returned, or raised into."""
        jobs = walk.jobs()
        turn = next(jobs, None)
        while turn is not None:
            push = turn.node.push
            lease = lease_of(push, composition=new.id, given=turn.given, gives=turn.node.gives)
            try:
                came = self._came(turn, (yield lease), limit)
            except Discard:
                came = Came(JobState.CANCELLED)
            except Undecodable as error:
                came = Came(JobState.FAILED, reason="arguments", error=error)
            except Exception as error:  # noqa: BLE001 - whatever a handler raises
                came = Came(JobState.FAILED, reason="exception", error=error)
            try:
                turn = jobs.send(came)
            except StopIteration:
                turn = None

    def _came(self, turn: Turn, value: Any, limit: int) -> Came:
        if not turn.node.gives:
            return Came(JobState.SUCCEEDED, value)
        definition = self._registry.get(decode(turn.node.push.envelope).name)
        assert definition is not None, "it has run"
        try:
            return Came(JobState.SUCCEEDED, value, definition.encode_result(value, max_bytes=limit))
        except Unkeepable as problem:
            error = ValueError(f"what it returned cannot be passed on to the next job: {problem}")
            return Came(JobState.FAILED, reason="result", error=error)


def _next(steps: Generator[Lease, Any, None], value: Any, error: Exception | None) -> Lease | None:
    try:
        return steps.send(value) if error is None else steps.throw(error)
    except StopIteration:
        return None
