"""A supervisor as a process: its signals, how long it waits for its children, and how it ends."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Final

from tenure.app import Tenure
from tenure.errors import InvalidOption, NotSupported
from tenure.registry import DEFAULT_QUEUE
from tenure.worker import platform
from tenure.worker.ending import LAST_CLAIM, LAST_SETTLE
from tenure.worker.options import DRAIN_GRACE, Ended, ExitReason, WorkerOptions
from tenure.worker.run import LAST_SECONDS
from tenure.worker.signals import SignalActions, handled
from tenure.worker.supervisor.child import Launch
from tenure.worker.supervisor.crew import Crew
from tenure.worker.supervisor.releasing import Releases
from tenure.worker.supervisor.reports import SupervisorReports

Around = Callable[[Crew], contextlib.AbstractContextManager[object]]

MARGIN: Final = DRAIN_GRACE + 1.0 + LAST_CLAIM + LAST_SETTLE + 2 * LAST_SECONDS
"""Seconds that a worker may take to end, beside its drain time."""


class Supervisor:
    """Keeps ``size`` worker processes at work; never runs a job itself."""

    def __init__(self, app: Tenure, launch: Launch, options: WorkerOptions, size: int) -> None:
        """``options`` are those of the children.

        Raises ``NotSupported`` where processes cannot be supervised, and ``InvalidOption`` for a store that they cannot
        share.
        """
        if not platform.SUPERVISES:
            raise NotSupported("worker", "supervising processes", "this system has no sessions and inherits no sockets")
        queue = app.queue(options.connection)
        if not queue.capabilities.shared:
            raise InvalidOption(
                f"several processes cannot share the store {queue.capabilities.driver!r}: each would see its own jobs "
                "alone; choose another store, or run one worker"
            )
        settings = app.settings.connection(options.connection)
        reports = SupervisorReports()
        self._drain = options.drain_timeout
        self._releases = Releases(
            queue,
            options.queues or tuple(sorted({*app.registry.queues(), DEFAULT_QUEUE})),
            options.lease or float(settings.visibility_timeout),
            reports,
        )
        self.crew: Crew = Crew(launch, size, self._releases, reports)
        self._told = False
        """To claim no more, in whatever way."""
        self._stopped = False
        self._forced = False
        self._deadline: asyncio.TimerHandle | None = None

    async def run(self) -> Ended:
        """Return when all children have ended, and how: told to stop, with nothing left to do, or unable to start."""
        try:
            await self.crew.run()
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
        if self.crew.failed:
            return Ended(ExitReason.ERROR)
        return Ended(ExitReason.SHUTDOWN if self._told else ExitReason.EMPTY, self._forced)

    def stop(self) -> None:
        """Stop all children in order, and kill those that take longer than they may; called again: at once."""
        self._forced = self._stopped
        self._told = self._stopped = True
        self.crew.close()
        self._releases.hurry()
        self.crew.signal(signal.SIGTERM)
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = MARGIN + (0.0 if self._forced else self._drain)
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._kill)

    def _kill(self) -> None:
        self._forced = self.crew.kill() or self._forced

    def quiet(self) -> None:
        """Let the children claim no more, and go on with what runs; one that dies is not replaced."""
        self._told = True
        self.crew.quiet()

    def dump(self) -> None:
        """Let each child write the stacks of all running jobs to the log."""
        if platform.DUMP is not None:
            self.crew.signal(platform.DUMP)


def run_supervisor(
    app: Tenure, launch: Launch, options: WorkerOptions, size: int, *, around: Around | None = None
) -> Ended:
    """Supervise so many workers in a new event loop until they end, and return how. Blocking, in the main thread.

    ``around`` is entered in that loop with the crew before the first of them is started, and left after the last has
    ended: for what answers for them. Closes the application. Raises as ``Supervisor`` does.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()

        async def supervise() -> Ended:
            try:
                supervisor = Supervisor(app, launch, options, size)

                def dump() -> None:
                    loop.call_soon_threadsafe(supervisor.dump)

                with contextlib.ExitStack() as stack:
                    if around is not None:
                        stack.enter_context(around(supervisor.crew))
                    actions = SignalActions(stop=supervisor.stop, quiet=supervisor.quiet, dump=dump)
                    stack.enter_context(handled(loop, actions))
                    return await supervisor.run()
            finally:
                await app.aclose()

        return runner.run(supervise())
