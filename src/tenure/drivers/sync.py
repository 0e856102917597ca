"""The sync driver: a pushed job runs at once, in the caller, and nothing is stored.

For tests and for programs without a worker. It implements push only; everything else is ``NotSupported``:

- ``push_sync`` runs a plain function in the calling thread, ``push`` awaits a coroutine function where it was awaited.
- One attempt is made. What the handler raises reaches the caller of the push, as in Laravel's sync driver, so a test
  fails where the job fails. A bulk push stops at the first that raises.
- ``delay``, ``priority``, ``expires_in`` and ``timeout`` have no meaning where nothing waits, and are passed over. An
  id that was pushed before runs again: nothing is remembered.
"""

from collections.abc import Sequence
from typing import Any, Final, NoReturn, Protocol

from tenure.errors import NotSupported
from tenure.queue import (
    DEFAULT_CRASH_LIMIT,
    Cancelled,
    Capabilities,
    Claimed,
    Counts,
    Keeper,
    Lease,
    Push,
    Pushed,
    Pusher,
    Renewal,
    Settled,
    Settlement,
)

CAPABILITIES: Final = Capabilities(
    driver="sync", shared=False, cancel_running=False, results=True, compositions=True, spanning=True
)
"""Results: the handle that a push returns has it, whatever ``result_ttl`` says. Compositions: the application runs
their jobs one after the other, and the handle knows what they came to."""


class Runner(Protocol):
    """What runs a job: the application's part, since a driver knows no jobs."""

    async def run(self, push: Push) -> Any:
        """Run the job once and return what it returns; whatever it raises is raised."""
        ...

    def run_sync(self, push: Push) -> Any:
        """Run the job once, blocking; a plain function in the calling thread."""
        ...


class Ran(Pushed, frozen=True, gc=False):
    """A job that was pushed, and has run."""

    value: Any = None
    """What the handler returned."""


class SyncQueue:
    """Runs what is pushed."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def capabilities(self) -> Capabilities:
        """What this driver can do: push."""
        return CAPABILITIES

    async def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Run each job, in order; raises what the first failing one raises, and the later ones do not run."""
        return [Ran(job.id, "stored", value=await self._runner.run(job)) for job in jobs]

    def pusher(self) -> Pusher:
        """Return what runs jobs in the calling thread."""
        return SyncPusher(self._runner)

    async def claim(
        self,
        queues: Sequence[str],  # noqa: ARG002 - the contract's
        *,
        limit: int,  # noqa: ARG002
        lease: float,  # noqa: ARG002
        wait: float,  # noqa: ARG002
        crash_limit: int = DEFAULT_CRASH_LIMIT,  # noqa: ARG002
        suspects: bool = True,  # noqa: ARG002
        holder: str | None = None,  # noqa: ARG002
    ) -> Claimed:
        """Raise ``NotSupported``: nothing waits for a worker."""
        _refuse("claiming")

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:  # noqa: ARG002
        """Raise ``NotSupported``: there are no leases."""
        _refuse("renewing")

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:  # noqa: ARG002
        """Raise ``NotSupported``: there are no leases."""
        _refuse("settling")

    async def cancel(self, queue: str, ids: Sequence[str]) -> Sequence[Cancelled]:  # noqa: ARG002
        """Raise ``NotSupported``: a job that was pushed has run."""
        _refuse("cancelling")

    async def clear(self, queue: str) -> int:  # noqa: ARG002
        """Raise ``NotSupported``: nothing waits."""
        _refuse("clearing")

    async def counts(self, queue: str) -> Counts:  # noqa: ARG002
        """Raise ``NotSupported``: nothing is stored."""
        _refuse("counting")

    def keeper(self) -> Keeper:
        """Raise ``NotSupported``: there are no leases."""
        _refuse("renewing")

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


class SyncPusher:
    """Runs what is pushed, in the calling thread."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Run each job: see ``SyncQueue.push``."""
        return [Ran(job.id, "stored", value=self._runner.run_sync(job)) for job in jobs]

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _refuse(feature: str) -> NoReturn:
    raise NotSupported("sync", feature, "a pushed job runs at once, and nothing is stored")
