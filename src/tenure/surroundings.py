"""What an application puts around its jobs: middleware around every attempt, a lifespan around a worker's life."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from inspect import isasyncgenfunction
from typing import Any, TypeVar, overload

from tenure.context import Current
from tenure.errors import InvalidOption

CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[Current, CallNext], Awaitable[Any]]
M = TypeVar("M", bound=Middleware)
Life = Callable[[], AbstractAsyncContextManager[Any]]
L = TypeVar("L", bound=Callable[[], AbstractAsyncContextManager[Any] | AsyncIterator[Any]])


class Middlewares:
    """Coroutine functions around every attempt, the first added outermost.

    Each is called with the attempt and with what goes on with it, and returns what that returns::

        @app.middleware
        async def timed(current, call_next):
            started = time.monotonic()
            try:
                return await call_next()
            finally:
                logger.info("%s took %.3f s", current.name, time.monotonic() - started)
    """

    def __init__(self) -> None:
        self._layers: list[Middleware] = []

    def __call__(self, layer: M) -> M:
        """Add one, inside those that are there."""
        self._layers.append(layer)
        return layer

    def __iter__(self) -> Iterator[Middleware]:
        return iter(tuple(self._layers))

    def __len__(self) -> int:
        return len(self._layers)


class Lifespan:
    """What is opened before a worker takes its first job, and closed after its last.

    ::

        @app.lifespan
        @asynccontextmanager
        async def life():
            async with Database(...) as database:
                app.services.register_value(Database, database)
                yield  # the worker works
    """

    def __init__(self) -> None:
        self._life: Life | None = None

    @overload
    def __call__(self, life: None = None, /) -> AbstractAsyncContextManager[Any]: ...
    @overload
    def __call__(self, life: L, /) -> L: ...
    def __call__(self, life: Any = None, /) -> Any:
        """Set the lifespan; without an argument: return a context manager that lives it, or one that does nothing."""
        if life is None:
            return nullcontext() if self._life is None else self._life()
        if self._life is not None:
            raise InvalidOption("the application has a lifespan already: let it enter the other one")
        self._life = asynccontextmanager(life) if isasyncgenfunction(life) else life
        return life
