"""The child process: loads the application, lives its lifespan, and runs the jobs that it is given, one at a time.

The main thread runs the jobs. A second one listens, so that a cancel reaches a running handler, and so that the end of
the worker ends this process whatever it does. What a handler does to file descriptors, or to copies of this process
that it forks, must not reach the worker as an answer.
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final

from tenure.app import Tenure
from tenure.context import StopFlag
from tenure.errors import ConfigurationError
from tenure.worker.loops import loop_factory, run_through
from tenure.worker.platform import end_with_parent
from tenure.worker.processes import loading
from tenure.worker.processes.loading import NotLoaded
from tenure.worker.processes.running import Runner
from tenure.worker.processes.talk import Began, Cancel, Frames, Load, Order, Ready, Run, Word, framed
from tenure.worker.processes.telling import Teller

LOST_LINK: Final = 70
"""The exit code of a process that cannot answer its worker."""


def main(descriptor: str, parent: str) -> None:
    """Work for the process that holds the other end of this descriptor, until it says or dies."""
    end_with_parent(int(parent))
    link = Link(int(descriptor))
    del sys.argv[1:]
    _heed_no_signals()
    faulthandler.enable()
    loop = loop_factory()()
    try:
        Child(link, loop).serve()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class Link:
    """This process's end of the talk."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._identity = os.fstat(descriptor).st_ino
        self._process = os.getpid()
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - positional only

    def read(self) -> bytes:
        """Return some bytes, once there are any; none at the end of the worker."""
        return os.read(self._descriptor, 1 << 16)

    def send(self, word: Word) -> None:
        """Say something. A copy of this process that a handler forked ends here, and so does one without a link."""
        if os.getpid() != self._process:
            os._exit(0)
        try:
            if os.fstat(self._descriptor).st_ino != self._identity:  # closed by a handler, and something else by now
                os._exit(LOST_LINK)
            data = memoryview(framed(word))
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            os._exit(LOST_LINK)


class Child:
    """Serves one worker."""

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self._link = link
        self._loop = loop
        self._frames: Frames[Order] = Frames(Order)
        self._orders: asyncio.Queue[tuple[Order, StopFlag]] = asyncio.Queue()
        self._running = (0, StopFlag())
        """The last job's number, and its flag; the listening thread's own."""

    def serve(self) -> None:
        """Do as ordered until the order to end."""
        threading.Thread(target=self._listen, name="tenure-link", daemon=True).start()
        order, _ = self._next()
        if not isinstance(order, Load):
            raise TypeError("the first order must be to load")
        try:
            app = loading.load(order)
        except BaseException as error:  # noqa: BLE001 - the user's code may raise anything while it is imported
            self._cannot(error)
            return
        left = asyncio.Event()
        entered: asyncio.Future[None] = self._loop.create_future()
        life = self._loop.create_task(self._live(app, order, entered, left))
        run_through(self._loop, self._loop.create_task(_first(entered, life)))
        if not entered.done():
            self._cannot(life.exception())
            return
        self._work(Runner(app, self._loop, Teller(self._link.send), order.connection))
        left.set()
        run_through(self._loop, life)

    async def _live(self, app: Tenure, order: Load, entered: "asyncio.Future[None]", left: asyncio.Event) -> None:
        """Live the application's lifespan, in a task of its own from its beginning to its end."""
        async with app.lifespan():
            loading.check(app, order)
            entered.set_result(None)
            await left.wait()
        await app.aclose()

    def _work(self, runner: Runner) -> None:
        self._link.send(Ready())
        while True:
            order, flag = self._next()
            if not isinstance(order, Run):
                return
            self._link.send(Began(order.number))
            self._link.send(runner.run(order, flag))

    def _next(self) -> tuple[Order, StopFlag]:
        """Return the next order; until it comes, what the application left on the loop runs."""
        return run_through(self._loop, self._loop.create_task(self._orders.get()))

    def _cannot(self, error: BaseException | None) -> None:
        if isinstance(error, NotLoaded | ConfigurationError):
            problem = str(error)
        else:
            if error is not None:
                traceback.print_exception(error)
            problem = f"{type(error).__name__} while it loaded the application; the traceback is on standard error"
        self._link.send(Ready(problem))

    # --------------------------------------------------------------------------------------------- the listening thread

    def _listen(self) -> None:
        try:
            while data := self._link.read():
                for order in self._frames.feed(data):
                    self._take(order)
        finally:
            # The worker is gone, or cannot be heard: nobody wants what runs here, nor what it has started.
            os.killpg(0, signal.SIGKILL)

    def _take(self, order: Order) -> None:
        if isinstance(order, Cancel):
            number, flag = self._running
            if number == order.number:
                flag.set()
            return
        flag = StopFlag()
        if isinstance(order, Run):
            self._running = (order.number, flag)
        self._loop.call_soon_threadsafe(self._orders.put_nowait, (order, flag))


async def _first(entered: "asyncio.Future[None]", life: "asyncio.Task[None]") -> None:
    await asyncio.wait((entered, life), return_when=asyncio.FIRST_COMPLETED)


def _heed_no_signals() -> None:
    """Leave an orderly end to the worker, also where a service manager signals every process.

    Handlers, and not SIG_IGN, which programs that a job starts would inherit. Copies that a job forks, such as those of
    ``multiprocessing``, heed them as ever, and from their first moment: whoever made them may want to end them.
    """
    _set(_ignored)
    os.register_at_fork(
        before=lambda: _set(signal.SIG_DFL),
        after_in_parent=lambda: _set(_ignored),
        after_in_child=lambda: _set(signal.SIG_DFL),
    )


def _set(handler: Callable[..., None] | signal.Handlers) -> None:
    with contextlib.suppress(ValueError):  # not in the main thread, which alone may
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handler)


def _ignored(*_: object) -> None:
    """Do nothing."""
