"""Another library as a contender: its script, in its environment, called for each verb."""

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.contender import ROOT, Job
from benchmarks.stores import available

HOMES: Final = ROOT / ".venv-bench"
"""Where ``make bench-peers`` puts each library."""
PATIENCE: Final = 300.0
AWAITED: Final = frozenset({"push awaited", "push at once"})
BLOCKING: Final = frozenset({"push_sync"})
BULK: Final = frozenset({"push_many"})
WORKED: Final = frozenset({"drain", "drain, 2 workers", "latency", "idle", "crash"})
CRASHED: Final = frozenset({"crash"})


class PeerFailed(RuntimeError):
    """A verb of another library's script that did not end well; the text is the end of what it said."""


class PeerOn:
    """A library of ``benchmarks/peers``; ``variant`` is one of the ways that its script describes."""

    def __init__(
        self,
        peer: str,
        store: str = "redis",
        *,
        offers: frozenset[str],
        variant: str = "",
        label: str = "",
        most: int = 1000,
        fill: int = 4_000,
        patience: float = 60.0,
    ) -> None:
        self.name = label or f"{peer} {variant}".strip()
        self.store = store
        self.offers = offers
        self.rival = f"tenure {store}"
        self.most = most
        self.fill = fill
        self.patience = patience
        self._peer = peer
        self._variant = variant
        self._home = HOMES / peer
        self._timed: subprocess.Popen[str] | None = None

    def available(self) -> bool:
        node = self._script.suffix != ".mjs" or shutil.which("node") is not None
        return node and (self._home / ".made").exists() and available(self.store)

    def environment(self, url: str) -> Mapping[str, str]:
        return {
            "PEER_URL": url,
            "PEER_QUEUE": f"bench-{secrets.token_hex(6)}",
            "PEER_VARIANT": self._variant,
            "PEER_HOME": str(self._home),
            # Its commands, by which some start processes of their own.
            "PATH": f"{self._home / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }

    def prepare(self) -> None:
        self._done("prepare")

    def worker(self, concurrency: int) -> Sequence[str]:
        return self._command("worker", concurrency)

    def push_many(self, jobs: int, job: Job = "noop") -> float:
        if job != "noop":
            raise NotImplementedError(job)
        return self._seconds("push_many", jobs)

    def push_awaited(self, jobs: int) -> float:
        return self._seconds("push_awaited", jobs)

    def push_gathered(self, jobs: int) -> float:
        return self._seconds("push_gathered", jobs)

    def push_blocking(self, jobs: int) -> float:
        return self._seconds("push_blocking", jobs)

    def push_slow(self, jobs: int) -> float:
        return self._seconds("push_slow", jobs)

    def push_paced(self, jobs: int, rate: float) -> float:
        raise NotImplementedError

    def push_timed(self) -> None:
        if self._timed is None:
            self._timed = subprocess.Popen(
                self._command("push_timed", 0), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        if self._timed.stdin is None or self._timed.stdout is None:
            raise PeerFailed(f"{self.name} cannot be asked to push")
        self._timed.stdin.write("\n")
        self._timed.stdin.flush()
        if not self._timed.stdout.readline():
            raise PeerFailed(f"{self.name} ended while it pushed")

    def close(self) -> None:
        if self._timed is not None and self._timed.stdin is not None:
            self._timed.stdin.close()
            self._timed.wait(30)

    @property
    def _script(self) -> Path:
        found = ROOT / "benchmarks" / "peers" / f"{self._peer}.py"
        return found if found.exists() else found.with_suffix(".mjs")

    def _command(self, verb: str, number: int) -> Sequence[str]:
        if self._script.suffix == ".mjs":
            return ["node", str(self._script), verb, str(number)]
        return [str(self._home / "bin" / "python"), "-m", f"benchmarks.peers.{self._peer}", verb, str(number)]

    def _seconds(self, verb: str, jobs: int) -> float:
        seconds: float = json.loads(self._done(verb, jobs).splitlines()[-1])
        return seconds

    def _done(self, verb: str, number: int = 0) -> str:
        done = subprocess.run(
            self._command(verb, number),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        if done.returncode != 0:
            raise PeerFailed(f"{self.name}, {verb}: {done.stderr[-2000:]}")
        return done.stdout
