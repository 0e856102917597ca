"""Faults of a Redis server, and of the way to it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial

from tenure.drivers.redis.scripts import Line
from tests.support import faults
from tests.support.proxy import Proxy
from tests.support.servers import Server
from tests.support.topologies import client, raw
from tests.torture.proof import redis_audit
from tests.torture.proof.nemesis.act import Act
from tests.torture.proof.stage import LEASE, Proof, Stage

CUTS = 4


def server(stage: Stage) -> Server:
    assert stage.place.server is not None
    return stage.place.server


def proxy(stage: Stage) -> Proxy:
    assert stage.place.proxy is not None
    return stage.place.proxy


def lasting(inflict: Callable[[Server], AbstractContextManager[object]], stage: Stage, proof: Proof) -> None:
    """A state that a block of ``tests.support.faults`` brings about, and shows by a probe of its own."""
    with inflict(server(stage)):
        proof.shown("a probe felt it")
        stage.last()


def killed(stage: Stage, proof: Proof) -> None:
    """SIGKILL, then it starts again on what it had written."""
    with faults.killed(server(stage)):
        proof.shown("it did not answer, and has another run id now")
        stage.last()


def frozen(seconds: float, stage: Stage, proof: Proof) -> None:
    server(stage).pause()
    proof.shown("the server was in state T")
    stage.last(seconds)
    server(stage).cont()


def hung_up_on(stage: Stage, proof: Proof) -> None:
    with faults.killed_connections(server(stage)) as repeated:
        stage.last()
    proof.shown(f"{repeated.effects} connections were ended" if repeated.effects else "")


def paused(what: str, stage: Stage, proof: Proof) -> None:
    """CLIENT PAUSE: writes, or everything, wait."""
    with closing(client(server(stage))) as control:
        raw(control, "CLIENT", "PAUSE", int(stage.hold * 1000), what)
        proof.shown("the server took CLIENT PAUSE")
    stage.last()


def flushed(stage: Stage, proof: Proof) -> None:
    with faults.forgotten_scripts(server(stage), every=0.05) as repeated:
        stage.last()
    proof.shown(f"the scripts were forgotten {repeated.rounds} times" if repeated.rounds else "")


def no_room(stage: Stage, proof: Proof) -> None:
    """No new connection is taken, and those that were open are ended."""
    with closing(client(server(stage))) as control:
        mine = str(control.client_id())
        theirs = [entry["id"] for entry in control.client_list(_type="normal") if entry["id"] != mine]
        with faults.no_more_clients(server(stage)):
            ended = sum(control.client_kill_filter(_id=number) for number in theirs)
            proof.shown(f"{ended} connections were ended, and none taken" if ended else "")
            stage.last()


def cut(script: str, where: str, stage: Stage, proof: Proof) -> None:
    """The server runs the script, and its reply is cut; or the request is, and it does not."""
    line: Line = "stream" if stage.place.driver == "redis-streams" else "list"
    digest = redis_audit.instrumented(line)[script].digest
    arm = proxy(stage).cut_next_reply if where == "reply" else proxy(stage).cut_next_request
    for _ in range(CUTS):
        arm(digest).wait(15)
    proof.shown(f"{CUTS} were cut", CUTS)


def torn(stage: Stage, proof: Proof) -> None:
    """Some bytes of the reply arrive."""
    for _ in range(CUTS):
        proxy(stage).cut_next_reply(b"EVALSHA", keep=stage.chance.randint(1, 9)).wait(15)
    proof.shown(f"{CUTS} were torn", CUTS)


def slow(stage: Stage, proof: Proof) -> None:
    proxy(stage).delay(0.1)
    stage.last()
    proxy(stage).heal()
    proof.shown("replies were held back for 0.1 s each")


@contextmanager
def swallowed(stage: Stage, *, requests: bool) -> Iterator[int]:
    before = proxy(stage).connections
    proxy(stage).blackhole(requests=requests)
    try:
        yield before
    finally:
        proxy(stage).heal()


def black_hole(requests: bool, seconds: float, stage: Stage, proof: Proof) -> None:
    """Connections stay open, and no reply comes, or nothing arrives either."""
    with swallowed(stage, requests=requests) as connections:
        stage.last(seconds)
    proof.shown(f"{connections} connections were mute" if connections else "", connections)


def severed(stage: Stage, proof: Proof) -> None:
    proxy(stage).refuse()
    ended = proxy(stage).kill_connections()
    proof.shown(f"{ended} connections were cut, and none taken" if ended else "", ended)
    stage.last()
    proxy(stage).heal()


def alone(stage: Stage, proof: Proof) -> None:
    """One worker alone is cut off for longer than its lease."""
    with Proxy(server(stage).socket) as own:
        url = stage.place.direct.replace(server(stage).socket, own.socket)
        lonely = stage.ready(stage.worker(url=url))
        stage.come_back(lonely.since)
        own.blackhole(requests=True)
        proof.shown(f"{own.connections} connections of one worker were mute", own.connections)
        stage.last(LEASE + 0.6)
        own.heal()
        stage.retire(lonely)


ACTS = [
    Act("server killed", "server", killed),
    Act("server frozen", "server", partial(frozen, 0.8)),
    Act("server frozen past leases", "server", partial(frozen, LEASE + 1)),
    Act("loading", "server", partial(lasting, partial(faults.loading, hold=4))),
    Act("scripts forgotten", "server", flushed),
    Act("busy", "server", partial(lasting, faults.busy)),
    Act("saves failing", "server", partial(lasting, faults.failing_saves)),
    Act("read only", "server", partial(lasting, faults.read_only)),
    Act("memory full", "server", partial(lasting, faults.out_of_memory)),
    Act("connections ended", "network", hung_up_on),
    Act("no room", "network", no_room),
    Act("severed", "network", severed),
    Act("writes paused", "server", partial(paused, "WRITE")),
    Act("all paused", "server", partial(paused, "ALL")),
    Act("rights taken", "operator", partial(lasting, lambda target: faults.forbidden(target, "evalsha", "eval"))),
    *(
        Act(f"{script} {what} cut", "network", partial(cut, script, what))
        for script in ("push", "claim", "settle")
        for what in ("reply", "request")
    ),
    Act("replies torn", "network", torn),
    Act("replies slow", "network", slow),
    Act("replies swallowed", "network", partial(black_hole, False, 1.0), long=True),
    Act("half open", "network", partial(black_hole, True, 1.0), long=True),
    Act("worker cut off alone", "network", alone, long=True),
]
