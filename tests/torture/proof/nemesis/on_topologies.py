"""Faults of several servers together: failovers, slots that move."""

from collections.abc import Callable
from functools import partial

from tests.support.cluster import Cluster, StopHere
from tests.support.processes import eventually
from tests.support.sentinel import Sentinels
from tests.support.servers import Server
from tests.torture.proof.nemesis.act import Act
from tests.torture.proof.program import QUEUES
from tests.torture.proof.stage import Proof, Stage


def group(stage: Stage) -> Sentinels:
    assert stage.place.group is not None
    return stage.place.group


def cluster(stage: Stage) -> Cluster:
    assert stage.place.cluster is not None
    return stage.place.cluster


def failed_over(begin: Callable[[Sentinels], Server], stage: Stage, proof: Proof) -> None:
    """Replication is asynchronous, and a primary that comes back takes writes until it is told: some are forgotten."""
    proof.forgets = True
    old = begin(group(stage))
    new = group(stage).wait_failover(30)
    proof.shown(f"port {new.port} took over from {old.port}" if new is not old else "")
    if old.running:
        old.cont()
    old.start()
    group(stage).wait_following(old)
    for sentinel in group(stage).sentinels:
        eventually(sentinel.sees_all, 30, what="the sentinels see all")


def slot_of(stage: Stage) -> int:
    return cluster(stage).slot_of(f"{{{stage.namespace}:{stage.chance.choice(QUEUES)}}}:jobs")


def moved(stage: Stage, proof: Proof) -> None:
    """A queue moves to another master, key by key."""
    slot = slot_of(stage)
    source = cluster(stage).owner(slot)
    number = cluster(stage).migrate_slot(slot, cluster(stage).another_than(source), timeout=30)
    proof.shown(f"{number} keys of slot {slot} moved" if number else "")


def half_way(stage: Stage, proof: Proof) -> None:
    """The same, and it stays for a while where some keys are here and some are there."""
    slot = slot_of(stage)
    source = cluster(stage).owner(slot)
    target = cluster(stage).another_than(source)

    def after_three(number: int) -> None:
        if number == 3:
            raise StopHere

    cluster(stage).migrate_slot(slot, target, after_three)
    stage.last()
    number = cluster(stage).migrate_slot(slot, target, timeout=30)
    proof.shown(f"slot {slot} was torn after 3 keys, then {number} more moved")


def master_frozen(stage: Stage, proof: Proof) -> None:
    master = cluster(stage).owner(slot_of(stage))
    master.pause()
    proof.shown(f"the master at port {master.port} was in state T")
    stage.last(0.6)
    master.cont()
    cluster(stage).wait_ok(30)


def master_killed(stage: Stage, proof: Proof) -> None:
    master = cluster(stage).owner(slot_of(stage))
    cluster(stage).kill9(master)
    stage.last()
    master.start()
    cluster(stage).wait_ok(30)
    proof.shown(f"the master at port {master.port} was killed")


SENTINEL = [
    Act("primary frozen, failed over", "server", partial(failed_over, Sentinels.pause_primary), long=True),
    Act("primary killed, failed over", "server", partial(failed_over, Sentinels.kill9_primary), long=True),
    Act("failover as planned", "operator", partial(failed_over, Sentinels.failover), long=True),
]

CLUSTER = [
    Act("slot moved", "operator", moved, long=True),
    Act("slot torn", "operator", half_way, long=True),
    Act("master frozen", "server", master_frozen, long=True),
    Act("master killed", "server", master_killed, long=True),
]
