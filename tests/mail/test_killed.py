"""Workers that are killed while they send: no mail is lost, and a repeat has the Message-ID of what it repeats."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from aiosmtpd.smtp import SMTP

from tenure import Tenure
from tests.mail.conftest import mail
from tests.support.mail import Fault, Post, drops, says
from tests.support.processes import Child, eventually_async, python
from tests.support.servers import Server
from tests.worker.conftest import forget

LEASE = "1.5"


@dataclass(frozen=True)
class Office:
    """A store, a mail server, and the workers between them."""

    app: Tenure
    post: Post
    environ: dict[str, str]

    def worker(self, hold: Path | None = None) -> AbstractContextManager[Child]:
        more = {} if hold is None else {"TENURE_TEST_HOLD": str(hold)}
        words = ("-m", "tenure", "worker", "tests.mail.shop:app", "--lease", LEASE, "--sleep", "0.2", "--tries", "1000")
        return python(*words, env={**self.environ, **more})

    async def left(self) -> int:
        counts = await self.app.counts("default")
        return counts.ready + counts.delayed + counts.leased

    async def finish(self) -> None:
        """Let a worker do all that is left."""
        with self.worker():
            await eventually_async(self._idle, 30, what="nothing is left")
        counts = await self.app.counts("default")
        assert (counts.failed, counts.unreadable) == (0, 0)

    async def _idle(self) -> bool:
        return await self.left() == 0


@pytest.fixture(params=["sqlite", "valkey"])
async def office(request: pytest.FixtureRequest, post: Post, namespace: str, tmp_path: Path) -> AsyncIterator[Office]:
    server: Server | None = request.getfixturevalue("valkey") if request.param == "valkey" else None
    url = f"sqlite:///{tmp_path / 'jobs.db'}" if server is None else server.url
    environ = {
        "TENURE_URL": url,
        "QUEUE_NAMESPACE": namespace,
        "TENURE_MAIL_DEFAULT_URL": post.url(timeout=5, data_timeout=5),
    }
    app = Tenure(url, namespace=namespace)
    yield Office(app, post, environ)
    await app.aclose()
    if server is not None:
        await forget(server, namespace)


def one_message(post: Post) -> bool:
    return len({received.message_id for received in post.received}) == 1


# S19
async def test_a_worker_killed_before_the_server_s_answer_leaves_the_mail_to_another(office: Office) -> None:
    with office.worker() as child:

        async def kill(_: SMTP) -> str:
            child.kill9()
            return "250 into the void"

        office.post.after_data.append(kill)
        await office.app.mail.push(mail())
        await eventually_async(lambda: _is(child.exit_code == -9))
    assert office.post.copies("ana@example.com") == 1
    assert await office.left() == 1
    await office.finish()
    assert office.post.copies("ana@example.com") == 2
    assert one_message(office.post)


async def test_a_worker_killed_between_the_answer_and_its_record_does_too(office: Office, tmp_path: Path) -> None:
    held = tmp_path / "held"
    office.post.at_rcpt["b@example.com"].append(says("450 4.2.1 busy"))
    await office.app.mail.push(mail("a@example.com", "b@example.com"), backoff=0.1)
    with office.worker(held) as child:
        await eventually_async(lambda: _is(held.exists()), 20, what="the mail is sent")
        child.kill9()
    assert office.post.copies("a@example.com") == 1
    await office.finish()
    assert office.post.copies("a@example.com") == 2
    assert office.post.copies("b@example.com") >= 1
    assert one_message(office.post)


@pytest.mark.torture
@pytest.mark.timeout(180)
async def test_no_mail_is_lost_between_faults_and_kills(office: Office, scale: int) -> None:
    chance = random.Random(7)
    faults: list[Fault] = [says("451 4.3.0 later"), says("421 4.3.2 down"), drops]
    post, number = office.post, 20 * scale
    for index in range(number):
        one, other = f"one{index}@example.com", f"other{index}@example.com"
        post.at_rcpt[other].extend(says("450 4.2.1 busy") for _ in range(chance.randrange(2)))
        await office.app.mail.push(mail(one, other), backoff=0.1, max_attempts=1000)
    post.at_data.extend(chance.choice(faults) for _ in range(number // 8))
    post.after_data.extend(chance.choice([says("250 OK"), drops]) for _ in range(number // 4))
    for _ in range(2 * scale):
        with office.worker() as child:
            goal = len(post.received) + chance.randrange(1, 9)
            await eventually_async(partial(_received, office, goal), 30)
            child.kill9()
    await office.finish()
    ids: dict[str, str] = {}
    for index in range(number):
        for address in (f"one{index}@example.com", f"other{index}@example.com"):
            assert post.copies(address) >= 1, address
    for received in post.received:
        for address in received.recipients:
            key = address.partition("@")[0].removeprefix("one").removeprefix("other")
            assert ids.setdefault(key, received.message_id) == received.message_id
    assert len(set(ids.values())) == number


async def _is(fact: bool) -> bool:
    await asyncio.sleep(0)
    return fact


async def _received(office: Office, goal: int) -> bool:
    return len(office.post.received) >= goal or await office.left() == 0
