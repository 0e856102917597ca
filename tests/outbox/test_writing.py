"""Jobs get into the outbox by every client library, and through a pooler, and share the transaction's fate."""

import asyncio
from dataclasses import replace

import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession

from tenure import NotSupported, Tenure
from tests.outbox.conftest import Open
from tests.outbox.support import Scene
from tests.support.databases import Database
from tests.support.servers import Server
from tests.transactions.support import note, pushing


@pytest.fixture(params=["aiosqlite", "psycopg", "asyncpg", "asyncmy"])
def scene(request: pytest.FixtureRequest, open_scene: Open) -> Scene:
    library = str(request.param)
    blocking_one = {"aiosqlite": "sqlite", "asyncpg": "psycopg", "asyncmy": "pymysql"}.get(library, library)
    open_scene(blocking_one, "valkey")  # makes the business's table
    return open_scene(library, "valkey")


async def test_asynchronous_sessions(scene: Scene) -> None:
    async with scene.async_engine() as engine:
        async with AsyncSession(engine) as session, session.begin():
            session.add(scene.order(1))
            await scene.app.push_many([pushing(scene.app, number) for number in range(3)], transaction=session)
            nested = await session.begin_nested()
            await scene.app.push(pushing(scene.app, 8, transaction=session))
            await nested.rollback()
        async with AsyncSession(engine) as session:
            session.add(scene.order(2))
            await scene.app.push(pushing(scene.app, 9, transaction=session))
    assert await asyncio.to_thread(scene.relay) == 3
    assert await asyncio.to_thread(scene.moved) == [0, 1, 2]


def test_a_relay_behind_a_pooler_shares_the_work_with_one_that_is_not(open_scene: Open, pgbouncer: Database) -> None:
    scene = open_scene("psycopg", "valkey")
    pooled = Tenure(scene.app.settings.url, namespace=scene.namespace, outbox=pgbouncer.url)
    pooled.job(note)
    behind = replace(scene, app=pooled)
    for number in range(4):
        with scene.engine() as engine, engine.begin() as connection:
            connection.execute(scene.insert(number))
            (behind if number % 2 else scene).push(number, transaction=connection)
        assert (scene if number % 2 else behind).relay() == 1
    assert scene.moved() == [0, 1, 2, 3]
    pooled.close_sync()


def test_a_class_of_durability_travels_and_is_waited_for(open_scene: Open, redis62: Server, valkey: Server) -> None:
    for server, reached in ((valkey, True), (redis62, False)):
        scene = open_scene("psycopg", "redis62" if server is redis62 else "valkey")
        with scene.engine() as engine, engine.begin() as connection:
            connection.execute(scene.insert(int(reached)))
            scene.push(1, transaction=connection, durability=2)
            scene.push(2, transaction=connection)
        if reached:
            assert scene.relay() == 2
            assert scene.moved() == [1, 2]
        else:  # its append-only file is written once a second, and it cannot be asked
            with pytest.raises(NotSupported, match="durability 2 on this server"):
                scene.relay()
            assert scene.lag() == {("default", "default"): 2}, "nothing is dropped, and nothing overtakes"
            forget_rows(scene)


def forget_rows(scene: Scene) -> None:
    """An operator's way out: the row that cannot be moved is removed, and the recorded call is made without it."""
    with scene.engine() as engine, engine.begin() as connection:
        connection.execute(
            sqlalchemy.text("DELETE FROM tenure_outbox WHERE namespace = :n AND durability = 2"), {"n": scene.namespace}
        )
    assert scene.relay() == 1
    assert scene.moved() == [2]
