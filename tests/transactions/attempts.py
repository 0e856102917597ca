"""A job whose handler writes an order in ``current().transaction()``, through any client library."""

from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from tenure import Injected, JobHandle, current, portal
from tenure.events import Event
from tenure.queue import Lease, Release
from tests.transactions.support import Business

Step = Callable[[Any], Awaitable[None]]
"""Something that happens in the middle of an attempt; it is given the session."""


async def nothing(_: Any) -> None:
    """Let the attempt go its way."""


class Attempts:
    """What became of the attempts of one job, and what happens in the middle of each."""

    def __init__(
        self,
        business: Business,
        engine: Engine | AsyncEngine,
        *,
        before: Step = nothing,
        inside: Step = nothing,
        after: Step = nothing,
    ) -> None:
        self.business = business
        self.engine = engine
        self.errors: list[BaseException | None] = []
        """What each attempt raised."""
        self.events: list[str] = []
        self.before, self.inside, self.after = before, inside, after
        business.app.events.on(Event, lambda told: self.events.append(type(told).__name__))
        business.app.services.register_value(Attempts, self)
        business.app.job(name="order")(order if isinstance(engine, AsyncEngine) else order_in_a_thread)

    async def push(self, **options: Any) -> JobHandle[Any]:
        return await self.business.app.push(self.business.app.call("order", [1]).options(**options))

    def told(self, name: str) -> int:
        return self.events.count(name)

    async def rows(self) -> list[int]:
        if isinstance(self.engine, AsyncEngine):
            async with self.engine.connect() as asking:
                return list(await asking.scalars(self.business.orders))
        with self.engine.connect() as blocked:
            return list(blocked.scalars(self.business.orders))

    def blocking(self, number: int) -> str:
        assert isinstance(self.engine, Engine)
        self.errors.append(None)
        try:
            with Session(self.engine) as session:
                portal.blocking("before", lambda: self._step(self.before, session))
                with current().transaction(session) as given:
                    given.add(self.business.order(number))
                    portal.blocking("inside", lambda: self._step(self.inside, session))
                portal.blocking("after", lambda: self._step(self.after, session))
        except BaseException as error:
            self.errors[-1] = error
            raise
        return "written"

    async def asynchronous(self, number: int) -> str:
        assert isinstance(self.engine, AsyncEngine)
        self.errors.append(None)
        try:
            async with AsyncSession(self.engine) as session:
                await self.before(session)
                async with current().transaction(session) as given:
                    given.add(self.business.order(number))
                    await self.inside(session)
                await self.after(session)
        except BaseException as error:
            self.errors[-1] = error
            raise
        return "written"

    async def _step(self, step: Step, session: Session) -> None:
        await step(session)


def order_in_a_thread(number: int, *, attempts: Attempts = Injected) -> str:
    return attempts.blocking(number)


async def order(number: int, *, attempts: Attempts = Injected) -> str:
    return await attempts.asynchronous(number)


def taken_away(business: Business) -> Step:
    """Return what lets the lease of the running attempt end, as if it had lapsed and another worker had come."""

    async def taken(_: Any) -> None:
        lease: Lease = current().lease
        await business.app.queue().settle([Release(lease, delay=3600)])

    return taken


def raised_once(error: Exception) -> Step:
    """Return what raises at the first attempt."""

    async def raised(_: Any) -> None:
        if current().attempt == 1:
            raise error

    return raised


def at(name: str, happens: Callable[[], None]) -> Step:
    """Return what makes something happen around the session's COMMIT of the first attempt."""

    async def set_up(session: Any) -> None:
        if current().attempt == 1:
            event.listen(getattr(session, "sync_session", session), name, lambda _: happens())

    return set_up
