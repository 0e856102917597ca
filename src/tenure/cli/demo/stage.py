"""The demo's stage: a store, an application on it, and two worker processes, all of the demo's own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from tenure.cli.demo.children import Children

Connection = Literal["sqlite", "redis"]

LEASE: Final = 5
"""Seconds after which the work of a dead worker goes to another."""
THREADS: Final = 4
_CONFIGURATION: Final = ("TENURE_", "QUEUE_", "REDIS_", "DATABASE_URL")


class Stage:
    """What the demo runs on."""

    def __init__(self, children: Children, url: str) -> None:
        self.url = url
        self.namespace = "demo"
        self.journal: Path = children.directory / "journal"
        self.journal.touch()
        self.log: Path = children.directory / "workers.log"
        self._children = children

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start one more worker process."""
        # -W ignore: parsing old code warns of its odd escapes.
        command = [sys.executable, "-W", "ignore", "-m", "tenure", "worker", "tenure.cli.demo.jobs:app"]
        command += ["--queues", "demo", "--lease", str(LEASE), "--concurrency", str(THREADS), "--log-level", "warning"]
        return self._children.start(command, log=self.log, env=self._environment())

    def last_words(self) -> str:
        """Return the end of the workers' log."""
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""

    def _environment(self) -> Mapping[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(_CONFIGURATION)}
        return {**kept, "TENURE_URL": self.url, "QUEUE_NAMESPACE": self.namespace}


@contextmanager
def built(connection: Connection) -> Iterator[Stage]:
    """Build a stage for the length of the block; nothing of it is left afterwards, whatever ends the demo."""
    with Children() as children:
        if connection == "sqlite":
            yield Stage(children, f"sqlite:///{_quoted(children.directory / 'demo.db')}")
            return
        # Imported here: the SQLite demo runs where neither a server program nor file locks of its kind exist.
        from tenure.drivers.redis.embedded import EmbeddedServer  # noqa: PLC0415

        with EmbeddedServer(children.directory / "valkey", process_group=children.group) as server:
            try:
                yield Stage(children, server.url)
            finally:
                children.end()  # before their store goes


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3F").replace("#", "%23")
