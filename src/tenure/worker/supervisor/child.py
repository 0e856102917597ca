"""A child process as its supervisor has it: what it was given, what it says, and how it ended."""

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from tenure.naming import new_holder
from tenure.worker import platform
from tenure.worker.options import ExitReason
from tenure.worker.supervisor.asking import Asking
from tenure.worker.supervisor.talk import Ending, Relief, Retire, Started, Talk

LAST_WORDS: Final = 0.5
"""Seconds for what a dead child has said to be read: a process of its own may keep the line open."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How a child is started."""

    command: tuple[str, ...]
    """The numbers of the two inherited sockets are put behind it: that of the questions, that of the talk."""
    assignment: Callable[[str], bytes]
    """What it reads first from the talk, one line, for the holder that it is to claim as."""


class ChildState(StrEnum):
    """How far a child has come."""

    STARTING = "starting"
    WORKING = "working"
    """It claims."""
    RETIRING = "retiring"
    """It was told to end: it claims no more."""
    ENDED = "ended"


class Child:
    """One child process, from its start to its end."""

    def __init__(
        self, process: asyncio.subprocess.Process, talk: Talk, asking: Asking, *, holder: str, seat: int
    ) -> None:
        self._process = process
        self._talk = talk
        self.asking: Asking = asking
        """Asks it how it fares."""
        self.seat: int = seat
        """The number of its place in the crew; while it is replaced, another one has the same."""
        self._since = time.monotonic()
        self._until: float | None = None
        self.holder: str = holder
        """The name that its leases begin with."""
        self.state: ChildState = ChildState.STARTING
        self.queues: tuple[str, ...] = ()
        """What it claims from, once it has started."""
        self.relief: ExitReason | None = None
        """Why it asks to be replaced, if it does."""
        self.ending: Ending | None = None
        """What it said when it ended in order."""
        self.started: asyncio.Event = asyncio.Event()
        self.tired: asyncio.Event = asyncio.Event()
        self.ended: asyncio.Event = asyncio.Event()

    @classmethod
    async def start(cls, launch: Launch, seat: int) -> "Child":
        """Start a child in this process' directory and environment, without its standard input."""
        holder = new_holder()
        (asks, asked), (talks, talked) = socket.socketpair(), socket.socketpair()
        try:
            with asked, talked:
                numbers = asked.fileno(), talked.fileno()
                process = await asyncio.create_subprocess_exec(
                    *launch.command,
                    *map(str, numbers),
                    stdin=asyncio.subprocess.DEVNULL,
                    **platform.child_options(numbers),
                )
            talks.sendall(launch.assignment(holder))
            return cls(process, await Talk.over(talks), await Asking.over(asks), holder=holder, seat=seat)
        except BaseException:
            asks.close()
            talks.close()  # and a child that has started reads the end, and goes
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def how(self) -> str:
        """How it ended: the signal's name, or its exit code."""
        code = self._process.returncode
        return "not yet" if code is None else platform.exit_text(code)

    @property
    def age(self) -> float:
        """Seconds that it has lived."""
        return (time.monotonic() if self._until is None else self._until) - self._since

    async def follow(self) -> None:
        """Take note of what it says, until it has ended."""
        loop = asyncio.get_running_loop()
        listening = {loop.create_task(self._listen()), loop.create_task(self.asking.listen())}
        try:
            await self._process.wait()
            self._until = time.monotonic()
            await asyncio.wait(listening, timeout=LAST_WORDS)
        finally:
            for task in listening:
                task.cancel()
            self._talk.close()
            self.asking.close()
        self.state = ChildState.ENDED
        self.ended.set()

    async def _listen(self) -> None:
        async for message in self._talk.heard():
            match message:
                case Started(queues=queues):
                    self.queues = queues
                    if self.state is ChildState.STARTING:
                        self.state = ChildState.WORKING
                    self.started.set()
                case Relief(reason=reason):
                    self.relief = reason
                    self.tired.set()
                case Ending():
                    self.ending = message
                case Retire():
                    continue

    def retire(self) -> None:
        """Tell it, when it is tired, to claim no more and to end when what runs has ended."""
        if self.relief is not None and self.state is not ChildState.ENDED:
            self.state = ChildState.RETIRING
            self._talk.say(Retire(reason=self.relief))

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if number in platform.STOP and self.state is not ChildState.ENDED:
            self.state = ChildState.RETIRING
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
