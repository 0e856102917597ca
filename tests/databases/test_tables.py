"""Tables where they are wanted, and clear words where they are not; names byte by byte, payloads whole."""

import asyncio
import inspect
import re
import time
from collections.abc import Callable
from types import ModuleType

import pytest
import sqlalchemy

from tenure.drivers.sql.server import compositions, questions, statements, uniqueness
from tenure.drivers.sql.server.names import Names
from tenure.drivers.sql.server.tables import create_tables, drop_tables, missing_tables
from tenure.drivers.sql.server.texts import Differ, Each, Insert, Texts
from tenure.errors import ConnectionFailed, NotSupported, StoreRefused
from tenure.queue import Ack, Queue
from tenure.testing.contract.steps import Q, claim_one, done, ids, job, push, pushed_and_claimed, where
from tests.databases.support import Place, ask, driver
from tests.support.processes import eventually

Keep = Callable[[Queue], Queue]


async def test_missing_tables_are_told_with_what_makes_them(place: Place, opened: Keep) -> None:
    queue = opened(place.queue(names=Names("nowhere_")))
    for call in (lambda: queue.push([job("x")]), lambda: queue.counts(Q)):
        with pytest.raises(StoreRefused, match=r"NOTABLES.*`tenure migrate`"):
            await call()


async def test_tables_stand_under_another_prefix_and_in_a_schema(place: Place, opened: Keep) -> None:
    engine = place.database.engine()
    names = Names("my_", "elsewhere") if place.postgres else Names("my_")
    if place.postgres:
        ask(engine, "CREATE SCHEMA elsewhere")
    assert len(missing_tables(engine, names)) >= 8
    create_tables(engine, names)
    try:
        assert missing_tables(engine, names) == []
        parameters = "table_prefix=my_" + ("&schema=elsewhere" if place.postgres else "")
        url = f"{place.database.url}{'&' if '?' in place.database.url else '?'}{parameters}"
        mine, theirs = opened(driver(url, place.namespace)), opened(place.queue())
        lease = await pushed_and_claimed(mine, job("x"))
        assert await where(theirs) == {}
        await done(mine, Ack(lease))
        await mine.aclose()
    finally:
        drop_tables(engine, names)


async def test_ids_and_names_differ_by_case_and_are_compared_byte_by_byte(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    await push(queue, *(job(name) for name in ("a", "A", "a.", "b", "B")))
    await push(queue, job("a", queue="Q"))
    assert await where(queue) == {"ready": 5}
    got = [await claim_one(queue) for _ in range(5)]
    assert ids(got) == ["a", "A", "a.", "b", "B"]


async def test_every_byte_of_an_envelope_comes_back(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    record = bytes(range(256)) * 1000 + b"%s %(x)s {jobs} ' \\ \0"
    await push(queue, job("x", envelope=record))
    assert (await claim_one(queue)).envelope == record


async def test_a_class_that_the_server_cannot_keep_is_refused(place: Place, opened: Keep) -> None:
    # The servers of these tests write to no disk in time.
    queue = opened(place.queue())
    with pytest.raises(NotSupported, match="durability 2"):
        await queue.push([job("x", durability=2)])
    assert await where(queue) == {}


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://u:s3cret@127.0.0.1:1/db", "nothing listens"),
        ("mysql://u:s3cret@127.0.0.1:1/db", "nothing listens"),
        ("mysql://u:s3cret@/db?unix_socket=/nowhere/s", "nothing listens"),
    ],
)
async def test_a_server_that_is_not_there_is_told_without_secrets(url: str, why: str, opened: Keep) -> None:
    queue = opened(driver(url, "n"))
    with pytest.raises(ConnectionFailed, match=why) as told:
        await asyncio.wait_for(queue.push([job("x")]), 10)
    assert "s3cret" not in str(told.value)
    assert "127.0.0.1" not in str(told.value)


async def test_a_user_that_is_refused_is_told_so(place: Place, opened: Keep) -> None:
    if place.postgres:
        url = re.sub("tenure@", "nobody:s3cret@", place.database.url)
    else:
        url = place.database.url.replace("root@", "nobody:s3cret@")
    with pytest.raises(ConnectionFailed, match="the user or the password was refused") as told:
        await opened(driver(url, "n")).counts(Q)
    assert "s3cret" not in str(told.value)


async def test_the_clock_moves_while_a_transaction_lasts(place: Place) -> None:
    text = Texts("postgresql" if place.postgres else "mysql", Names()).of(statements.CLOCK)
    with place.database.engine().connect() as connection, connection.begin():
        before = connection.execute(sqlalchemy.text(text)).scalar_one()
        begun = time.monotonic()
        eventually(lambda: time.monotonic() - begun > 0.1)
        assert connection.execute(sqlalchemy.text(text)).scalar_one() - before >= 100_000


async def test_leases_that_a_clock_left_far_ahead_are_pulled_back(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    lease = await pushed_and_claimed(queue, lease=0.3)
    # As if the clock had gone back by a day since.
    move = "UPDATE tenure_jobs SET place = place + 86400000000 WHERE incarnation = :number"
    place.ask(move, number=lease.incarnation)
    await queue.claim([Q], limit=1, lease=60, wait=0)
    again = await claim_one(queue, wait=10)
    assert (again.id, again.deliveries) == (lease.id, 2)
    assert again.fence > lease.fence


@pytest.mark.parametrize(("module", "least"), [(statements, 35), (questions, 8), (uniqueness, 2), (compositions, 12)])
def test_every_statement_says_what_it_is_for(module: ModuleType, least: int) -> None:
    source = inspect.getsource(module)
    kinds = (str, Each, Insert, Differ)
    names = [
        name for name, value in vars(module).items() if name.isupper() and name[0] != "_" and isinstance(value, kinds)
    ]
    assert len(names) > least
    for name in names:
        assert re.search(rf'^{name}: Final = .*?^"""[A-Z]', source, re.DOTALL | re.MULTILINE), name
