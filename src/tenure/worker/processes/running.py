"""One attempt in a child process: the handler with its services, and what it came to as data."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context
from typing import Any, TypeVar

from tenure import envelope as envelopes
from tenure.app import Tenure
from tenure.context import Adds, Current, StopFlag
from tenure.definition import JobDefinition, LoadedCall
from tenure.effects import EffectsBlock
from tenure.errors import WrongContext
from tenure.returned import Unkeepable
from tenure.tracing import resumed
from tenure.worker import decide, failures
from tenure.worker.executors import called
from tenure.worker.judgement import Judgement
from tenure.worker.loops import run_through
from tenure.worker.processes.talk import RESULT_LIMIT, Answer, Raised, Returned, Run
from tenure.worker.processes.telling import Teller
from tenure.worker.scope import Scopes

G = TypeVar("G")


class CurrentApart(Current):
    """The attempt, in a process that its lease is not kept in."""

    __slots__ = ()

    def transaction(self, given: G) -> EffectsBlock[G]:
        """Raise ``WrongContext``: the worker would not know in time why its lease is gone."""
        raise WrongContext(
            "current().transaction() is for handlers in the worker's own process: register the job with "
            f"executor='thread'; nothing was sent to the {type(given).__name__}"
        )

    @property
    def batch(self) -> Adds:
        """Raise ``WrongContext``: the store is open in the worker's own process."""
        raise WrongContext(
            "current().batch is for handlers in the worker's own process: register the job with executor='thread'"
        )


class Runner:
    """Runs jobs of one application, one after the other, in the thread and on the loop that it was made with."""

    def __init__(self, app: Tenure, loop: asyncio.AbstractEventLoop, teller: Teller, connection: str) -> None:
        self._app = app
        self._scopes = Scopes(app.services)
        self._loop = loop
        self._teller = teller
        self._connection = connection

    def run(self, order: Run, flag: StopFlag) -> Answer:
        """Run the job, and return what it came to. Raises nothing that a handler raises."""
        definition = self._app.registry.get(order.name)
        assert definition is not None, "the names were compared when this process was loaded"
        try:
            envelope = envelopes.decode(order.lease.envelope)
            call = definition.load(envelope, order.lease.input)
        except Exception as error:  # noqa: BLE001 - arguments are built by the user's own types
            return Raised(order.number, flag.seen, Judgement("give-up", failures.describe(error, "arguments")))
        current = CurrentApart(
            order.lease,
            name=order.name,
            max_attempts=order.max_attempts,
            meta=envelope.meta,
            stop=flag,
            report=self._teller.begin(order.number),
            connection=self._connection,
        )
        inside = self._inside(current, order.trace)
        try:
            if definition.asynchronous:
                value = self._on_the_loop(definition, call, inside)
            else:
                value = Context().run(self._here, definition, call, inside)
        except BaseException as error:  # noqa: BLE001 - SystemExit included: it is the handler's
            return Raised(order.number, flag.seen, decide.judge(error, definition.policies))
        finally:
            self._teller.end()
            # What it has printed belongs before whatever the worker says of it.
            for stream in (sys.__stdout__, sys.__stderr__):
                with contextlib.suppress(OSError, ValueError):  # it was closed
                    if stream is not None:
                        stream.flush()
        try:
            result = definition.encode_result(value, max_bytes=RESULT_LIMIT)
        except Unkeepable as error:
            return Returned(order.number, flag.seen, problem=str(error))
        return Returned(order.number, flag.seen, result)

    @contextmanager
    def _inside(self, current: Current, trace: Mapping[str, str]) -> Iterator[None]:
        with current.enter(), resumed(self._app.tracing, trace):
            yield

    def _here(self, definition: JobDefinition, call: LoadedCall, inside: AbstractContextManager[None]) -> Any:
        # Outside of the loop: a plain function may run one of its own.
        with inside, self._scopes.in_a_thread(definition.injected) as services:
            return called(lambda: call.function(*call.args, **call.kwargs, **services))

    def _on_the_loop(self, definition: JobDefinition, call: LoadedCall, inside: AbstractContextManager[None]) -> Any:
        outcome: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()

        async def attempt() -> None:
            # By a future of its own: SystemExit would leave the task for the loop, and end that.
            try:
                with inside:
                    async with self._scopes.on_the_loop(definition.injected) as services:
                        value = await call.function(*call.args, **call.kwargs, **services)
                outcome.set_result((value, None))
            except BaseException as error:  # noqa: BLE001 - it is raised where it is judged
                outcome.set_result((None, error))

        task = self._loop.create_task(attempt(), context=Context())
        value, error = run_through(self._loop, outcome)
        del task  # the loop holds its tasks only weakly
        if error is not None:
            raise error
        return value
