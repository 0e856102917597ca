"""Faults of a server's host: its clock is set, and it loses power while its disk is slow."""

import time
from collections.abc import Sequence
from functools import partial

from tests.redis.durable import forcing, slow_disk
from tests.support import clocks
from tests.support.processes import eventually
from tests.support.topologies import tell
from tests.torture.proof.nemesis.act import Act
from tests.torture.proof.nemesis.on_redis import server
from tests.torture.proof.stage import LEASE, Proof, Stage

FORCED = 0.04
"""Seconds of each forcing of data to a slow disk."""


def clock_set(steps: Sequence[float], stage: Stage, proof: Proof) -> None:
    """The clock jumps, by more than a lease is long, and in the end is right again."""
    clock = clocks.Clock(server(stage).directory)
    clocks.restarted(server(stage), clock.environment)
    try:
        far = 0.0
        for seconds in [*steps, 0.0]:
            clock.set(seconds)
            stage.last(0.8)
            far = max(far, abs(float(tell(server(stage), "TIME")[0]) - time.time()))
        proof.shown(f"the server's clock was {far:.0f} s off" if far > LEASE else "")
    finally:
        clocks.restarted(server(stage), {})


def power_cut(stage: Stage, proof: Proof) -> None:
    """Everything that is answered was forced to the disk; in the middle of a forcing the server dies."""
    tell(server(stage), "CONFIG", "SET", "appendfsync", "always")
    stage.last(0.2)
    with slow_disk(server(stage), FORCED):
        stage.last(1.0)
    # What slow_disk leaves is a server that was killed.
    proof.shown(f"each forcing took {FORCED} s, and the server was killed")
    server(stage).start()


def power_cut_in_forcing(stage: Stage, proof: Proof) -> None:
    """By default the disk is forced once a second: what was answered since the last time may be gone."""
    proof.forgets = True
    tell(server(stage), "CONFIG", "SET", "appendfsync", "everysec")
    with slow_disk(server(stage), 0.6):
        eventually(lambda: forcing(server(stage)), 10, what="a forcing is under way")
        proof.shown("the server was killed while it forced its data to the disk")
    server(stage).start()


ACTS = [
    Act("server clock ahead and back", "clock", partial(clock_set, (3.0,)), long=True, needs="gcc"),
    Act("server clock back and on", "clock", partial(clock_set, (-3.0,)), long=True, needs="gcc"),
    Act("power cut, forced each time", "server", power_cut, long=True, needs="strace"),
    Act("power cut, forced by the second", "server", power_cut_in_forcing, long=True, needs="strace"),
]
