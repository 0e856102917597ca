"""What an application puts around a worker's life."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure import InvalidOption, Tenure


@pytest.fixture
def app() -> Tenure:
    return Tenure("memory://", namespace="tests")


async def test_without_a_lifespan_nothing_is_opened(app: Tenure) -> None:
    async with app.lifespan() as nothing:
        assert nothing is None


async def test_a_lifespan_is_lived_around_the_work(app: Tenure) -> None:
    order: list[str] = []

    @app.lifespan
    @asynccontextmanager
    async def life() -> AsyncIterator[str]:
        order.append("opened")
        yield "value"
        order.append("closed")

    async with app.lifespan() as value:
        order.append(value)
    assert order == ["opened", "value", "closed"]


async def test_a_generator_is_a_lifespan_too(app: Tenure) -> None:
    order: list[str] = []

    @app.lifespan
    async def life() -> AsyncIterator[None]:
        order.append("opened")
        yield
        order.append("closed")

    async with app.lifespan():
        assert order == ["opened"]
    assert order == ["opened", "closed"]


def test_a_second_lifespan_is_refused(app: Tenure) -> None:
    app.lifespan(asynccontextmanager(nothing))
    with pytest.raises(InvalidOption, match="has a lifespan already"):
        app.lifespan(asynccontextmanager(nothing))


async def nothing() -> AsyncIterator[None]:
    yield
