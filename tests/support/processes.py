"""Real child processes, stopped by process id, and waiting for facts about them."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import anyio

T = TypeVar("T")
Arg = str | os.PathLike[str]


def dies_with_parent() -> list[str]:
    """Return the prefix of a command whose process must not outlive a killed test run.

    Linux ties the child to the thread that started it: spawn from a thread that lives as long as the child should.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def state(pid: int) -> str | None:
    """Return the state letter of a process (R, S, D, T, Z), or None when there is no such process."""
    stat = pathlib.Path(f"/proc/{pid}/stat")
    if pathlib.Path("/proc/self/stat").exists():
        try:
            # The second field is the program's name in brackets, and may itself hold spaces and brackets.
            return stat.read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return None
    shown = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1] or None


def alive(pid: int) -> bool:
    """Tell whether a process runs or is stopped; one that waits to be reaped is dead."""
    return state(pid) not in {None, "Z", "X"}


def eventually(probe: Callable[[], T], timeout: float = 10, *, what: str = "", every: float = 0.01) -> T:
    """Return the probe's first true answer; fail when there is none in time."""
    deadline = time.monotonic() + timeout
    while not (answer := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not in {timeout} s: {what or probe}; the last answer was {answer!r}")
        time.sleep(every)
    return answer


async def eventually_async(
    probe: Callable[[], Awaitable[T]], timeout: float = 10, *, what: str = "", every: float = 0.01
) -> T:
    """Return the first true answer of an asynchronous probe; fail when there is none in time."""
    deadline = time.monotonic() + timeout
    while not (answer := await probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not in {timeout} s: {what or probe}; the last answer was {answer!r}")
        await anyio.sleep(every)
    return answer


def send(pid: int, number: signal.Signals, becomes: Callable[[str | None], bool], timeout: float = 5) -> None:
    """Send a signal and return only when the process has visibly obeyed: a signal takes a moment to arrive."""
    os.kill(pid, number)
    eventually(lambda: becomes(state(pid)), timeout, what=f"process {pid} obeys {number.name}")


def pause(pid: int) -> None:
    """SIGSTOP: the process stands still, its sockets stay open."""
    send(pid, signal.SIGSTOP, lambda now: now == "T")


def cont(pid: int) -> None:
    """SIGCONT: the process goes on."""
    send(pid, signal.SIGCONT, lambda now: now != "T")


def kill9(pid: int) -> None:
    """SIGKILL: the process is dead when this returns, though its parent has yet to reap it."""
    send(pid, signal.SIGKILL, lambda now: now in {None, "Z", "X"})


class Child:
    """A running child process whose output goes to a file, so that it never blocks on a full pipe."""

    def __init__(self, popen: subprocess.Popen[bytes], log: pathlib.Path) -> None:
        self.popen = popen
        self.log = log

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def output(self) -> str:
        """What it has written so far, standard output and error together."""
        return self.log.read_text(errors="replace")

    @property
    def exit_code(self) -> int | None:
        return self.popen.poll()

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def pause(self) -> None:
        pause(self.pid)

    def cont(self) -> None:
        cont(self.pid)

    def kill9(self) -> None:
        """Kill it at once; the exit code afterwards is -9."""
        self.popen.kill()
        self.popen.wait(5)

    def wait(self, timeout: float = 10) -> int:
        """Return its exit code; fail with its output when it does not end in time."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"still running after {timeout} s; its output:\n{self.output[-4000:]}") from error

    def wait_for_output(self, text: str, timeout: float = 10) -> None:
        """Return when it has written the text; fail when it ends or the time is over before."""

        def written() -> bool:
            ended = self.exit_code is not None  # asked first: what it wrote last must still count
            if text in self.output:
                return True
            if ended:
                raise AssertionError(f"ended with {self.exit_code} before writing {text!r}:\n{self.output[-4000:]}")
            return False

        eventually(written, timeout, what=f"{text!r} in:\n{self.output[-4000:]}")

    def stop(self, timeout: float = 10) -> int:
        """End it in whatever state it is: SIGTERM, after a while SIGKILL."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.terminate()
            try:
                self.popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        return self.popen.wait()


@contextmanager
def spawn(command: Sequence[Arg], *, env: Mapping[str, str] | None = None, cwd: Arg | None = None) -> Iterator[Child]:
    """Run a command beside the test and stop it at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="t-") as name:
        log = pathlib.Path(name, "output")
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [*dies_with_parent(), *(os.fspath(word) for word in command)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=None if env is None else {**os.environ, **env},
            )
        child = Child(popen, log)
        try:
            yield child
        finally:
            child.stop()


@contextmanager
def python(*arguments: Arg, env: Mapping[str, str] | None = None, cwd: Arg | None = None) -> Iterator[Child]:
    """Run this interpreter with the given arguments, unbuffered, e.g. `python("-m", "tenure", "worker")`."""
    with spawn([sys.executable, "-u", *arguments], env=env, cwd=cwd) as child:
        yield child
