"""What reaches a held lease from outside: it was lost, lapsed or cancelled, or the worker gives it back."""

from tenure.queue import Release
from tenure.worker.attempt import Attempts
from tenure.worker.held import Held, HeldLeases, Stage, Stop
from tenure.worker.line import Line
from tenure.worker.settler import Settler


class Orders:
    """Passes orders on to where the lease is: in the line, or in a running attempt."""

    def __init__(self, leases: HeldLeases, line: Line, attempts: Attempts, settler: Settler) -> None:
        self._leases = leases
        self._line = line
        self._attempts = attempts
        self._settler = settler

    def told(self, held: Held, why: Stop) -> None:
        """Stop a lease's job for this reason. A lease that is being settled, or is not held any more, goes its way."""
        if held.stage is Stage.RUNNING:
            self._attempts.stop(held, why)
        elif held.stage is Stage.AHEAD and self._line.take_out(held):
            if why is Stop.LOST:
                held.stage = Stage.ENDED
                self._leases.remove(held)
            else:
                self._give_back(held, free=why is not Stop.CANCELLED)

    def give_back(self, held: Held) -> None:
        """Give a lease back that has not run, free of charge."""
        self._give_back(held, free=True)

    def give_back_waiting(self) -> None:
        """Give everything back that waits for a slot."""
        for held in self._line.give_up():
            self.give_back(held)

    def stop_running(self, grace: float) -> None:
        """Stop everything that runs, because the worker ends."""
        for held in self._leases.snapshot():
            if held.stage is Stage.RUNNING:
                self._attempts.stop(held, Stop.SHUTDOWN, grace)

    def _give_back(self, held: Held, *, free: bool) -> None:
        self._settler.put(held, Release(held.lease, free=free), None, held.since)
