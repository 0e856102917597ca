"""What a supervisor tells of its children: one line in the log for each thing that happened to them, and its count."""

import logging
from collections.abc import Sequence
from typing import Final

from tenure.errors import StoreError
from tenure.queue import Lease
from tenure.summaries import job_name
from tenure.worker.reports import safe_name
from tenure.worker.supervisor.child import Child
from tenure.worker.supervisor.tally import Tally

logger: logging.Logger = logging.getLogger("tenure.supervisor")

NAMED: Final = 10
"""How many jobs a line names."""


class SupervisorReports:
    """The log lines and the counts of one supervisor."""

    def __init__(self) -> None:
        self.tally: Tally = Tally()
        """The counts."""

    def started(self, child: Child) -> None:
        """A child process was started."""
        self.tally.started[child.seat] += 1
        logger.info("worker process %d started", child.pid)

    def cannot_start(self, error: OSError) -> None:
        """The system starts no process."""
        logger.error("a worker process cannot be started, and is tried again: %s", error.strerror)

    def ended(self, child: Child) -> None:
        """A child ended in order."""
        if child.ending is not None:
            self.tally.ended[child.ending.reason.value] += 1
            logger.info("worker process %d ended: %s, %d jobs", child.pid, child.ending.reason.value, child.ending.jobs)

    def left(self, child: Child) -> None:
        """A child that had not begun yet was stopped with the others."""
        self.tally.ended[child.how] += 1
        logger.info("worker process %d ended before it claimed: %s", child.pid, child.how)

    def died(self, child: Child) -> None:
        """A child ended in any other way."""
        self.tally.ended[child.how] += 1
        logger.error("worker process %d died after %.1f s: %s", child.pid, child.age, child.how)

    def replacing(self, child: Child, delay: float) -> None:
        """A child's place is filled again, after a while."""
        logger.warning(
            "worker process %d is replaced in %.1f s: one after another has not lived long", child.pid, delay
        )

    def given_back(self, child: Child, leases: Sequence[Lease]) -> None:
        """Its leases went back."""
        self.tally.given_back += len(leases)
        named = ", ".join(f"{lease.id} ({safe_name(job_name(lease.envelope))})" for lease in leases[:NAMED])
        logger.warning(
            "gave back %d jobs that worker process %d held: %s%s",
            len(leases), child.pid, named, " and others" if len(leases) > NAMED else "",
        )  # fmt: skip

    def not_given_back(self, child: Child, error: StoreError | None) -> None:
        """Its leases could not be given back in time."""
        logger.error(
            "what worker process %d held could not be given back (%s): it runs again when its leases lapse",
            child.pid, "the store does not answer" if error is None else type(error).__name__,
        )  # fmt: skip

    def cannot_give_back(self, driver: str) -> None:
        """The driver does not tell who holds what."""
        logger.warning(
            "the driver %s cannot tell what a dead process held: it runs again when its leases lapse", driver
        )

    def killed(self, child: Child) -> None:
        """A child did not end in time."""
        logger.error("worker process %d did not end in time and is killed", child.pid)

    def never_started(self, child: Child) -> None:
        """A child ended before any has ever claimed."""
        logger.critical("worker process %d ended before it claimed (%s): no other is started", child.pid, child.how)
