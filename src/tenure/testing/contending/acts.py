"""What a contender may be told to do. Each act reports what it did, and judges nothing."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from tenure.operating import FailedJobs
from tenure.queue import Ack, Lease, Push, Queue, Release
from tenure.results import Progress, ProgressReport, Results
from tenure.testing.contending.chaos import chaos
from tenure.testing.contending.talk import Talk

Act = Callable[[Queue, Mapping[str, Any], Talk], Awaitable[None]]
Q = "q"


async def perform(act: str, queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Do the act, once everybody is ready and the order to go has come."""
    await queue.counts(Q)  # opens what must be opened, so that all start on the same line
    talk.tell({"ready": True})
    await talk.hear()
    await ACTS[act](queue, params, talk)


async def work(queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Claim and acknowledge in batches of random size until the queue is empty; report every delivery."""
    dice = random.Random(params["seed"])  # noqa: S311 - a schedule, no secret
    deliveries: list[tuple[str, int, int, str]] = []
    while leases := (await queue.claim([Q], limit=dice.randint(1, 40), lease=60, wait=0.3)).leases:
        answers = await queue.settle([Ack(lease) for lease in leases])
        deliveries += [
            (lease.id, lease.fence, lease.deliveries, answer.value)
            for lease, answer in zip(leases, answers, strict=True)
        ]
    talk.tell({"deliveries": deliveries})


async def hesitate(queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Claim with a short lease and acknowledge at about its end, until the queue is empty; report every answer."""
    dice = random.Random(params["seed"])  # noqa: S311 - a schedule, no secret
    length = params["lease"]
    answers: list[tuple[str, int, str]] = []
    while (counts := await queue.counts(Q)).ready or counts.leased:
        leases = (await queue.claim([Q], limit=8, lease=length, wait=0, crash_limit=10**6)).leases
        if not leases:
            continue
        # Half come before the end, half after it: the interesting ones are those in the same millisecond.
        await asyncio.sleep(max(0.0, leases[0].deadline - time.monotonic() + dice.uniform(-0.5, 0.5) * length))
        settled = await queue.settle([Ack(lease) for lease in leases])
        answers += [(lease.id, lease.deliveries, one.value) for lease, one in zip(leases, settled, strict=True)]
    talk.tell({"answers": answers})


async def hold(queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Claim, report, and do nothing more until an order comes; the leases lapse meanwhile, or not."""
    claimed = await queue.claim([Q], limit=params["limit"], lease=params["lease"], wait=params.get("wait", 0))
    talk.tell({"held": [[lease.id, lease.fence, lease.deliveries] for lease in claimed.leases]})
    while True:
        match (await talk.hear())["do"]:
            case "renew":
                talk.tell({"answers": [one.value for one in await queue.renew(claimed.leases)]})
            case "ack":
                settled = await queue.settle([Ack(lease) for lease in claimed.leases])
                talk.tell({"answers": [one.value for one in settled]})
            case "release":
                settled = await queue.settle([Release(lease) for lease in claimed.leases])
                talk.tell({"answers": [one.value for one in settled]})
            case "progress":
                reports = [ProgressReport(lease, Progress(0.5)) for lease in claimed.leases]
                talk.tell({"answers": list(await cast("Results", queue).report(reports))})
            case "end":
                return


async def repeat(queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Push the same ids as all others, in an order of its own; report what became of each."""
    dice = random.Random(params["seed"])  # noqa: S311 - a schedule, no secret
    names = list(params["ids"])
    dice.shuffle(names)
    outcomes: dict[str, str] = {}
    while names:
        batch = [names.pop() for _ in range(min(len(names), dice.randint(1, 12)))]
        answers = await queue.push([Push(queue=Q, id=one, envelope=str(os.getpid()).encode()) for one in batch])
        outcomes |= {one.id: one.outcome for one in answers}
    talk.tell({"outcomes": outcomes})


async def contend(queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Push a unique job of its own for each text, in an order of its own; report who has each."""
    dice = random.Random(params["seed"])  # noqa: S311 - a schedule, no secret
    texts = list(params["texts"])
    dice.shuffle(texts)
    answers: dict[str, tuple[str, str]] = {}
    while texts:
        batch = [texts.pop() for _ in range(min(len(texts), dice.randint(1, 12)))]
        pushes = [Push(queue=Q, id=f"{params['seed']}-{text}", envelope=b"x", unique=text) for text in batch]
        told = await queue.push(pushes)
        answers |= {text: (one.id, one.outcome) for text, one in zip(batch, told, strict=True)}
    talk.tell({"answers": answers})


async def push(queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Push without end, and report each push when it is answered."""
    number = 0
    while True:
        pushes = [Push(queue=Q, id=f"{params['name']}-{number + n}", envelope=b"x") for n in range(5)]
        number += 5
        talk.tell({"stored": [one.id for one in await queue.push(pushes) if one.outcome == "stored"]})
        await asyncio.sleep(0)


async def retry(queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Retry all failed jobs until there is none; report those that were this one's to retry."""
    reader = cast("FailedJobs", queue)
    won: list[str] = []
    while records := await reader.failed(Q, limit=params["page"]):
        answers = await reader.retry(records)
        won += [record.id for record, answer in zip(records, answers, strict=True) if answer]
    talk.tell({"won": won})


async def wait(queue: Queue, _params: Mapping[str, Any], talk: Talk) -> None:
    """Claim one job at a time, waiting for it; report each with the moment of its arrival."""
    leases: list[Lease] = []
    while True:
        claimed = await queue.claim([Q], limit=1, lease=60, wait=30)
        for lease in claimed.leases:
            talk.tell({"got": lease.id, "at": time.monotonic()})
            await queue.settle([Ack(lease)])
        leases += claimed.leases


async def fork(queue: Queue, _params: Mapping[str, Any], talk: Talk) -> None:
    """Push, fork, push from the child with the same driver, and go on in the parent."""

    async def one(name: str) -> str:
        (answer,) = await queue.push([Push(queue=Q, id=name, envelope=b"x")])
        return answer.outcome

    before = await one("parent-before")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            # The parent's loop does not run here: a child makes one of its own, as a forked server process does.
            code = 0 if asyncio.run(one("child")) == "stored" else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)  # noqa: ASYNC222 - nothing else happens in this process
    after = await one("parent-after")
    talk.tell({"parent": [before, after], "child": os.waitstatus_to_exitcode(status)})


ACTS: Mapping[str, Act] = {
    "chaos": chaos,
    "contend": contend,
    "fork": fork,
    "hesitate": hesitate,
    "hold": hold,
    "push": push,
    "repeat": repeat,
    "retry": retry,
    "wait": wait,
    "work": work,
}
