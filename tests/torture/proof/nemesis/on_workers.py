"""Faults of processes: killed, frozen, drained, poisoned, forked, blocked, with a wrong clock, of an older version."""

import signal
from functools import partial

from tests.support import processes
from tests.support.processes import eventually
from tests.torture.proof.nemesis.act import Act
from tests.torture.proof.recording import POINTS, now
from tests.torture.proof.stage import LEASE, Proof, Stage


def killed(stage: Stage, proof: Proof) -> None:
    """Any worker, at any moment."""
    victim = stage.victim()
    victim.child.kill9()
    proof.shown(f"{victim.process} ended with {victim.child.exit_code}", 1)
    stage.gone(victim)


def killed_at(point: str, stage: Stage, proof: Proof) -> None:
    """A worker that dies when it passes this point for the so-manieth time."""
    victim = stage.ready(stage.worker(crash=f"{point}:{stage.chance.randint(2, 6)}"))
    eventually(lambda: victim.child.exit_code is not None, 30, what=f"it dies {point}")
    proof.shown(f"{victim.process} ended with {victim.child.exit_code} {point}", 1)
    assert victim.child.exit_code == -signal.SIGKILL, victim.child.output[-2000:]
    victim.until = now()
    stage.past.append(victim)


def pusher_killed(stage: Stage, proof: Proof) -> None:
    victim = stage.pushers.pop(0)
    victim.child.kill9()
    proof.shown(f"{victim.process} ended with {victim.child.exit_code}", 1)
    stage.pusher(stage.rate)


def frozen(stage: Stage, proof: Proof) -> None:
    """Past its lease, while others take its jobs; then it goes on."""
    victim = stage.victim()
    victim.child.pause()
    proof.shown(f"{victim.process} was in state {processes.state(victim.child.pid)}")
    stage.last(LEASE + 0.6)
    victim.child.cont()


def pusher_frozen(stage: Stage, proof: Proof) -> None:
    victim = stage.pushers[0]
    victim.child.pause()
    proof.shown(f"{victim.process} was in state {processes.state(victim.child.pid)}")
    stage.last()
    victim.child.cont()


def terminated(stage: Stage, proof: Proof) -> None:
    """SIGTERM: it ends in order, what it holds is given back or done."""
    victim = stage.victim()
    victim.child.signal(signal.SIGTERM)
    code = victim.child.wait(30)
    proof.shown(f"{victim.process} ended with {code}", 1)
    assert code == 0, victim.child.output[-2000:]
    stage.gone(victim)


def wrong_clock(ahead: float, stage: Stage, proof: Proof) -> None:
    """The host's clock is off by an hour; the store's is right."""
    odd = stage.ready(stage.worker(ahead=ahead))
    proof.shown("a worker told its own clock" if "the clock is off" in odd.child.output else "")
    eventually(lambda: stage.settled().get(odd.process, 0) > odd.since, 20, what="it works")
    stage.retire(odd)


def older(stage: Stage, proof: Proof) -> None:
    """Half of the workers do not know a job; they hand it back."""
    old = [stage.ready(stage.worker(unknown=["fresh"])) for _ in range(2)]
    for victim in stage.workers[: len(stage.workers) - 2]:
        victim.child.pause()
    ids = stage.once(*[["fresh", []]] * 10)
    eventually(lambda: stage.given_back(ids), 20, what="an old worker gives one back")
    proof.shown("an old worker gave back what it does not know", len(ids))
    for victim in stage.workers[: len(stage.workers) - 2]:
        victim.child.cont()
    for one in old:
        stage.retire(one)
    stage.ended(ids, 40)


def poison(stage: Stage, proof: Proof) -> None:
    """A job that ends whoever runs it, until it was twice too often."""
    stage.once(["poison", []])
    for _ in range(2):
        eventually(lambda: any(one.child.exit_code is not None for one in stage.workers), 30, what="it kills")
        for victim in [one for one in stage.workers if one.child.exit_code is not None]:
            stage.gone(victim)
    proof.shown("two workers were ended by it", 2)
    stage.last(0.2)


def blocked(stage: Stage, proof: Proof) -> None:
    """A handler keeps the event loop for longer than a lease; its renewals come from a thread."""
    ids = stage.once(["blocks", [LEASE + 0.5]])
    stage.ended(ids, 30)
    proof.shown(f"a handler blocked its loop for {LEASE + 0.5} s")


def forked(stage: Stage, proof: Proof) -> None:
    ids = stage.once(*[["forks", []]] * 3)
    stage.ended(ids, 30)
    proof.shown("three handlers forked", 3)


def side(role: str, stage: Stage, proof: Proof) -> None:
    """A process of its own does something beside the load, and tells how often it did."""
    beside = stage.spawn(role)
    assert beside.child.wait(60) == 0, beside.child.output[-2000:]
    done = beside.child.output.rpartition("done: ")[2].split()[0]
    proof.shown(f"{role}: {done} times" if int(done) else "", int(done))


ACTS = [
    Act("worker killed", "worker", killed),
    *(Act(f"killed {point.replace('-', ' ')}", "worker", partial(killed_at, point)) for point in POINTS),
    Act("pusher killed", "network", pusher_killed),
    Act("worker frozen past its lease", "worker", frozen),
    Act("pusher frozen", "network", pusher_frozen),
    Act("worker terminated", "worker", terminated),
    Act("callers cancelled", "process", partial(side, "cancel")),
    Act("a crowd of callers", "network", partial(side, "crowd")),
    Act("operators at work", "operator", partial(side, "operate")),
    Act("handlers that fork", "process", forked),
    Act("blocked loop", "process", blocked),
    Act("poison", "worker", poison, long=True),
    Act("older version", "worker", older, long=True),
]

WITH_A_NETWORK = [
    Act("worker an hour ahead", "clock", partial(wrong_clock, 3600.0)),
    Act("worker an hour behind", "clock", partial(wrong_clock, -3600.0)),
]
"""Where the clock of the store is not the workers'."""
