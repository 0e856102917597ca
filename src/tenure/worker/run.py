"""A worker as a process: an event loop of its own, signals, and an end that nothing can hold up."""

import asyncio
import contextlib
import logging
import threading
<<<<<<< HEAD
from collections.abc import Callable, Coroutine
from typing import Any
=======
>>>>>>> 9a8f79c (Run jobs in processes of their own, where they can be killed)

from tenure.app import Tenure
from tenure.worker.loops import loop_factory, run_through
from tenure.worker.options import Ended, ExitReason, WorkerOptions
from tenure.worker.signals import SignalActions, handled
from tenure.worker.vitals import Vitals
from tenure.worker.worker import Worker

logger: logging.Logger = logging.getLogger("tenure.worker")

Around = Callable[[Vitals], contextlib.AbstractContextManager[object]]

LAST_SECONDS = 2.0
"""Seconds that tasks which were left behind have to end in."""


def run_worker(app: Tenure, options: WorkerOptions | None = None, *, around: Around | None = None) -> Ended:
    """Run one worker in a new event loop until it ends, and return how. Blocking; closes the application.

    ``around`` is entered with the worker's vitals before it starts, and left after its end: for what looks at it from
    a thread of its own. uvloop is used where it is installed. In the main thread signals are handled, and restored
    afterwards.
    """
<<<<<<< HEAD
    return run_attended(app, Worker(app, options), around=around)


def run_attended(
    app: Tenure,
    worker: Worker,
    *,
    attend: Callable[[], Coroutine[Any, Any, None]] | None = None,
    around: Around | None = None,
) -> Ended:
    """Do what ``run_worker`` does with a worker of this application, and run ``attend`` beside it until it ends."""
    loop = _loop_factory()()
=======
    worker = Worker(app, options)
    loop = loop_factory()()
>>>>>>> 9a8f79c (Run jobs in processes of their own, where they can be killed)
    try:
        asyncio.set_event_loop(loop)
        with contextlib.ExitStack() as stack:
            if around is not None:
                stack.enter_context(around(worker.vitals))
            if threading.current_thread() is threading.main_thread():
                actions = SignalActions(stop=worker.stop, quiet=worker.quiet, dump=worker.dump)
                stack.enter_context(handled(loop, actions))
<<<<<<< HEAD
            return Ended(_run_through(loop, loop.create_task(_closing(app, worker, attend))), worker.forced)
=======
            return Ended(run_through(loop, loop.create_task(_closing(app, worker))), worker.forced)
>>>>>>> 9a8f79c (Run jobs in processes of their own, where they can be killed)
    finally:
        try:
            loop.run_until_complete(_leave_nothing_behind())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


<<<<<<< HEAD
def _run_through(loop: asyncio.AbstractEventLoop, main: asyncio.Task[ExitReason]) -> ExitReason:
    """Run the worker to its end.

    ``SystemExit`` in an attempt is its failure. In a task or callback that a handler left behind, asyncio lets it out
    of the loop, and one job would end all others with it.
    """
    while True:
        try:
            return loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as error:
            if main.done():
                raise
            logger.warning("%s was raised outside of any attempt, by what a handler left behind", type(error).__name__)


async def _closing(app: Tenure, worker: Worker, attend: Callable[[], Coroutine[Any, Any, None]] | None) -> ExitReason:
    attending = None if attend is None else asyncio.get_running_loop().create_task(attend())
=======
async def _closing(app: Tenure, worker: Worker) -> ExitReason:
>>>>>>> 9a8f79c (Run jobs in processes of their own, where they can be killed)
    try:
        return await worker.run()
    finally:
        if attending is not None:
            attending.cancel()
        await app.aclose()


async def _leave_nothing_behind() -> None:
    """Cancel what is left, abandoned handlers, and do not wait for those that ignore it.

    ``asyncio.run`` would wait for ever.
    """
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, still = await asyncio.wait(left, timeout=LAST_SECONDS)
        if still:
            logger.warning("%d abandoned handlers still run; the process ends without them", len(still))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LAST_SECONDS):
            await asyncio.get_running_loop().shutdown_asyncgens()
