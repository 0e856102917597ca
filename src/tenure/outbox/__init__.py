"""The relay: moves jobs from an application's outbox to the stores that they are for, in order per queue, each once.

``relay`` finds what waits, ``mover`` carries the jobs of one connection; ``tenure.drivers.sql.outbox`` is the outbox.
"""

from tenure.outbox.relay import Relay

__all__ = ["Relay"]
