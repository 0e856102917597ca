"""A worker as a process: an event loop of its own, signals, and an end that nothing can hold up."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tenure.app import Tenure
from tenure.worker.beside import Beside
from tenure.worker.loops import loop_factory, run_through
from tenure.worker.options import Ended, ExitReason, WorkerOptions
from tenure.worker.signals import SignalActions, handled
from tenure.worker.vitals import Vitals
from tenure.worker.worker import Worker

logger: logging.Logger = logging.getLogger("tenure.worker")

Around = Callable[[Vitals], contextlib.AbstractContextManager[object]]

LAST_SECONDS = 2.0
"""Seconds that tasks which were left behind have to end in."""


def run_worker(
    app: Tenure, options: WorkerOptions | None = None, *, around: Around | None = None, beside: Sequence[Beside] = ()
) -> Ended:
    """Run one worker in a new event loop until it ends, and return how. Blocking; closes the application.

    ``around`` is entered with the worker's vitals before it starts, and left after its end: for what looks at it from
    a thread of its own. ``beside`` are loops that run beside its own. uvloop is used where it is installed. In the
    main thread signals are handled, and restored afterwards.
    """
    return run_attended(app, Worker(app, options, beside=beside), around=around)


def run_attended(
    app: Tenure,
    worker: Worker,
    *,
    attend: Callable[[], Coroutine[Any, Any, None]] | None = None,
    around: Around | None = None,
) -> Ended:
    """Do what ``run_worker`` does with a worker of this application, and run ``attend`` beside it until it ends."""
    loop = loop_factory()()
    try:
        asyncio.set_event_loop(loop)
        with contextlib.ExitStack() as stack:
            if around is not None:
                stack.enter_context(around(worker.vitals))
            if threading.current_thread() is threading.main_thread():
                actions = SignalActions(stop=worker.stop, quiet=worker.quiet, dump=worker.dump)
                stack.enter_context(handled(loop, actions))
            return Ended(run_through(loop, loop.create_task(_closing(app, worker, attend))), worker.forced)
    finally:
        try:
            loop.run_until_complete(_leave_nothing_behind())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


async def _closing(app: Tenure, worker: Worker, attend: Callable[[], Coroutine[Any, Any, None]] | None) -> ExitReason:
    attending = None if attend is None else asyncio.get_running_loop().create_task(attend())
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
