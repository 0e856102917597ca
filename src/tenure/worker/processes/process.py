"""One child process, as its worker sees it. All of it runs in the worker's loop."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Final

from tenure.queue import Lease
from tenure.results import Progress, checked
from tenure.worker.judgement import ProcessDied, ProcessNotStarted
from tenure.worker.platform import exit_text, watch_exit
from tenure.worker.processes.talk import (
    LONGEST,
    Answer,
    Began,
    Cancel,
    End,
    Frames,
    Load,
    Order,
    Raised,
    Ready,
    Returned,
    Run,
    Told,
    Word,
    framed,
)

START_SECONDS: Final = 60.0
"""How long a process may take until it is ready: it imports the application, and lives its lifespan's beginning."""
END_SECONDS: Final = 2.0
"""How long it may take to end in order: to leave the lifespan, and to close what it has opened."""
HANG_UP_SECONDS: Final = 0.2
"""How long it may live on after it has closed its end of the talk."""
_COMMAND: Final = (
    "import sys; sys.path[:] = sys.argv[3:]; from tenure.worker.processes.child import main; main(*sys.argv[1:3])"
)
_UNREAD: Final = 8
"""Messages that may wait to be looked at: a process that talks on sends them for nobody."""


class Process:
    """A child process, from its start to its end. It runs one job at a time."""

    def __init__(self, on_end: "Callable[[Process], None]") -> None:
        """Start it; ``on_end`` is called when it has ended, whatever ended it. Raises ``OSError``."""
        self._link, theirs = socket.socketpair()
        try:
            # A group of its own: signals of a terminal are for the worker, and what a handler started goes with it.
            self._popen = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, str(theirs.fileno()), str(os.getpid()), *sys.path],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        except OSError:
            self._link.close()
            raise
        finally:
            theirs.close()
        self._link.settimeout(0)
        self._loop = asyncio.get_running_loop()
        self._frames: Frames[Word] = Frames(Word, LONGEST)
        self._said: asyncio.Queue[Word | None] = asyncio.Queue()
        self._number = 0
        self._told: Callable[[Progress], None] | None = None
        self._busy = True
        self._how = ""
        self._ended = asyncio.Event()
        self._on_end = on_end
        self._loop.add_reader(self._link.fileno(), self._read)
        watch_exit(self._popen, self._exited)

    async def ready(self, load: Load) -> None:
        """Return when it is ready for jobs; raises ``ProcessNotStarted``, and has it killed then."""
        problem = ""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._send(load)
                word = await self._next()
            problem = word.problem if isinstance(word, Ready) else "it said something else than ready"
        except TimeoutError:
            problem = f"it was not ready after {START_SECONDS:g} s"
        except ProcessDied as died:
            problem = f"it {died.how} before it was ready"
        except asyncio.CancelledError:
            self.kill()
            raise
        if problem:
            await self.killed()
            raise ProcessNotStarted(f"a process could not be started: {problem}")
        self._busy = False

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it was not seen to end."""
        return not self._how

    async def begin(
        self, lease: Lease, name: str, max_attempts: int, *, trace: Mapping[str, str], told: Callable[[Progress], None]
    ) -> None:
        """Give it a job; returns when it has taken it. Raises ``ProcessDied`` when it ended before.

        ``trace`` is the context that its handler goes on from; ``told`` is called with what that tells of its progress.
        """
        self._told = told
        self._busy = True
        self._number += 1
        await self._send(Run(self._number, lease, name, max_attempts, trace))
        word = await self._next()
        if not isinstance(word, Began) or word.number != self._number:
            raise await self._broken()

    async def answer(self) -> Answer:
        """Return what its job came to; raises ``ProcessDied`` when it ended before."""
        word = await self._next()
        if not isinstance(word, Returned | Raised) or word.number != self._number:
            raise await self._broken()
        self._busy = False
        return word

    async def stopped(self, notice: float) -> Answer | None:
        """Tell its handler to stop, and return what it came to; None when it did not within so many seconds."""
        try:
            async with asyncio.timeout(notice):
                await self._send(Cancel(self._number))
                return await self.answer()
        except (TimeoutError, ProcessDied):
            return None
        except asyncio.CancelledError:
            self.kill()
            raise

    async def killed(self) -> None:
        """Kill it, and return when it is gone."""
        self.kill()
        await self._ended.wait()

    def kill(self) -> None:
        """Kill it, and what it started."""
        if self._popen.returncode is not None:
            return
        # It may have left its group, or have none to be killed any more.
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        """End it in order; killed if that takes too long."""
        self._busy = True
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._send(End())
                await self._ended.wait()
        except TimeoutError:
            await self.killed()
        except asyncio.CancelledError:
            self.kill()
            raise

    # ---------------------------------------------------------------------------------------------------------- talk

    async def _send(self, order: Order) -> None:
        # Not taken any more: then its end is under way, and tells.
        with contextlib.suppress(OSError):
            await self._loop.sock_sendall(self._link, framed(order))

    async def _next(self) -> Word:
        word = await self._said.get()
        if word is None:
            self._said.put_nowait(None)  # for whoever asks again
            raise ProcessDied(self._how)
        return word

    async def _broken(self) -> ProcessDied:
        self._give_up("sent its worker what is no answer")
        await self.killed()
        return ProcessDied(self._how)

    def _read(self) -> bool:
        """Take in what it said; False when nothing more is there."""
        try:
            data = self._link.recv(1 << 16)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._link.fileno())
            # Most likely it is ending, and in a moment its end tells how. If not, it can answer no more.
            self._loop.call_later(HANG_UP_SECONDS, self._give_up, "hung up on its worker")
            return False
        try:
            for word in self._frames.feed(data):
                if isinstance(word, Told):
                    self._take(word)
                else:
                    self._said.put_nowait(word)
        except ValueError:
            self._loop.remove_reader(self._link.fileno())
            self._give_up("sent its worker what is no message")
            return False
        if not self._busy or self._said.qsize() > _UNREAD:
            self._give_up("talked to its worker out of turn")
        return True

    def _take(self, word: Told) -> None:
        if word.number == self._number and self._told is not None:
            self._told(checked(word.fraction, word.note))

    def _give_up(self, how: str) -> None:
        self._how = self._how or how
        self.kill()

    def _exited(self) -> None:
        while self._link.fileno() >= 0 and self._read():
            pass
        self.kill()  # what it started, and has left behind
        code = self._popen.wait()
        self._loop.remove_reader(self._link.fileno())
        self._link.close()
        self._how = self._how or f"ended with {exit_text(code)}"
        self._ended.set()
        self._said.put_nowait(None)
        self._on_end(self)
