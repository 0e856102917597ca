"""Through PgBouncer in transaction mode nothing is kept on a server from one transaction to another."""

from typing import Any

import sqlalchemy
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import AsyncSession

from tests.support.databases import Database
from tests.transactions.support import Base, Business, make_app, pushed, pushing


async def test_pushes_through_a_pooler_go_with_the_transaction(pgbouncer: Database, namespace: str) -> None:
    app = make_app(pgbouncer.url, namespace)
    business = Business(pgbouncer.library_url, pgbouncer.url, app, namespace)
    options: dict[str, Any] = {"poolclass": NullPool, "connect_args": {"prepare_threshold": None}}
    async with business.async_engine(**options) as engine:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        for number in range(20):
            async with AsyncSession(engine) as session:
                session.add(business.order(number))
                for option in ("transaction", "after_commit"):
                    await app.push(pushing(app, number, **{option: session}))
                if number % 4:
                    await session.commit()
        async with engine.connect() as asking:
            kept = list(await asking.scalars(business.orders))
            idle = await asking.scalar(sqlalchemy.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"))
    assert kept == [number for number in range(20) if number % 4]
    assert await pushed(app) == sorted(kept * 2)
    assert idle == 0
    await app.aclose()
