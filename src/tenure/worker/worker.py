"""The worker: puts its parts together, runs them, and ends them in order.

::

    claims ──leases──▶ line ──a slot──▶ attempts ──outcomes──▶ settler ──▶ the store
       ▲                 │                  ▲
       └──room───────────┘     keeper, watch┴─lost, lapsed, cancelled

Each part is a file. All of them but the keeper's thread and the handlers' threads run in one event loop.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

from tenure.app import Tenure
from tenure.errors import WrongContext
from tenure.naming import new_holder
from tenure.outage import LONGEST_DELAY
from tenure.queue import DEFAULT_CRASH_LIMIT, Queue, feature
from tenure.registry import DEFAULT_QUEUE
from tenure.results import Results
from tenure.retry import Backoff, fixed
from tenure.tracing import carried
from tenure.worker import memory
from tenure.worker.attempt import Attempts, Surroundings
from tenure.worker.beside import Beside
from tenure.worker.claims import Claims, ClaimTerms
from tenure.worker.ending import LAST_SETTLE, Ending
from tenure.worker.executors import Threads
from tenure.worker.held import HeldLeases
from tenure.worker.keeper import LONGEST_INTERVAL, KeeperThread
from tenure.worker.limits import Limits
from tenure.worker.line import Line
from tenure.worker.marker import RestartMarker, control
from tenure.worker.opening import Opening
from tenure.worker.options import ExitReason, WorkerOptions
from tenure.worker.orders import Orders
from tenure.worker.processes.loading import has_process_jobs, load_of
from tenure.worker.processes.pool import Processes
from tenure.worker.progress import ProgressBoard
from tenure.worker.reports import Reports
from tenure.worker.scope import Scopes
from tenure.worker.settler import Settler
from tenure.worker.stall import Judged
from tenure.worker.vitals import Parts, Vitals
from tenure.worker.watch import Heartbeat, Watch, dump_stacks, interval

T = TypeVar("T")
DEFAULT_SLEEP: Final = 1.0

logger: logging.Logger = logging.getLogger("tenure.worker")


class Worker:
    """One worker: claims jobs of an application's queues, runs them and settles them, until it is stopped."""

    def __init__(self, app: Tenure, options: WorkerOptions | None = None, *, beside: Sequence[Beside] = ()) -> None:
        """``beside``: loops that run from its start until it claims no more, for whatever reason."""
        self._app = app
        self._beside = beside
        self._options = options or WorkerOptions()
        self._leases = HeldLeases()
        self._reports = Reports(app.events)
        self._reason: ExitReason | None = None
        self._over = asyncio.Event()
        """There is nothing more to claim, for whatever reason."""
        self._stopping = asyncio.Event()
        """And what runs has the drain time only."""
        self._at_once = asyncio.Event()
        """And not even that."""
        self._forced = False
        self._started = False
        self._claims: Claims | None = None
        self.vitals: Vitals = Vitals(self._options.concurrency)
        """How it fares, for whoever asks from another thread."""

    async def run(self) -> ExitReason:
        """Work until a limit is reached, a restart is asked for or ``stop`` is called, and return why. Once per worker.

        Raises what the application's lifespan raises when it begins, and ``ConfigurationError`` for services that jobs
        ask for and nobody registered. A store that cannot be reached is waited for.
        """
        if self._started:
            raise WrongContext("a worker runs once: make another one")
        self._started = True
        self._app.extensions.make_all()
        async with self._app.lifespan():
            return await self._live()

    def stop(self, reason: ExitReason = ExitReason.SHUTDOWN) -> None:
        """Claim no more, finish what runs within the drain time, give back the rest; called again: at once."""
        if self._stopping.is_set():
            self._forced = True
            self._at_once.set()
        self._reason = self._reason or reason
        self._stopping.set()
        self._over.set()
        if self._claims is not None:
            self._claims.stop()

    def retire(self, reason: ExitReason | None) -> None:
        """Claim no more, let what runs end in its own time, and end for this reason, unless there was one before."""
        self._reason = self._reason or reason
        self._over.set()

    def quiet(self) -> None:
        """Claim no more, and go on with what runs."""
        logger.info("quiet: no more jobs are claimed")
        if self._claims is not None:
            self._claims.quiet()

    def dump(self) -> None:
        """Write the stacks of all running jobs to the log. Safe from any thread."""
        dump_stacks(self._leases)

    @property
    def forced(self) -> bool:
        """Whether it was told to stop a second time, so that what still ran was given back at once."""
        return self._forced

    @property
    def ready(self) -> bool:
        """Whether the last claim that was due succeeded."""
        return self._claims is not None and self._claims.ready

    # ----------------------------------------------------------------------------------------------------- its parts

    async def _live(self) -> ExitReason:
        processes = Processes(
            lambda: load_of(self._app, self._options.prepare, self._options.connection),
            lambda: carried(self._app.tracing),
        )
        try:
            if has_process_jobs(self._app):
                await processes.check()
            return await self._work(processes)
        finally:
            await processes.close()

    async def _work(self, processes: Processes) -> ExitReason:
        app, options, leases, reports = self._app, self._options, self._leases, self._reports
        queue = app.queue(options.connection)
        if app.tracing is not None:
            queue = app.tracing.around(queue)
        settings = app.settings.connection(options.connection)
        lease = options.lease or float(settings.visibility_timeout)
        scopes = Scopes(app.services)
        scopes.check(app.registry)
        threads = Threads(options.concurrency)
        heartbeat = Heartbeat(leases, interval(lease))
        line = Line(options.concurrency, leases)
        settler = Settler(queue, leases, reports, line.settled)
        board = ProgressBoard(_results(queue))
        attempts = Attempts(
            Surroundings(
                opening=self._opening(settings.retry_base_delay),
                scopes=scopes,
                threads=threads,
                processes=processes,
                middleware=tuple(app.middleware),
                leases=leases,
                reports=reports,
                settle=settler.put,
                freed=line.freed,
                broke=self._broke,
                grace=options.cancel_grace,
                progress=board.tell,
                max_result_bytes=settings.max_payload_bytes,
                queue=app.queue(options.connection),
                connection=options.connection,
                batches=app.composer.batches(options.connection),
            )
        )
        line.feeds(attempts.start)
        orders = Orders(leases, line, attempts, settler)
        keeper = KeeperThread(
            queue.keeper,
            leases,
            lease,
            told=orders.told,
            failed=reports.renewal_failed,
            broke=self._broke,
            tick=heartbeat.look,
        )
        wait = options.sleep or settings.poll_timeout or DEFAULT_SLEEP
        crash_limit = options.tries or DEFAULT_CRASH_LIMIT
        holder = options.holder or new_holder()
        queues = options.queues or tuple(sorted({*app.registry.queues(), DEFAULT_QUEUE}))
        claims = Claims(
            queue,
            ClaimTerms(
                queues=queues,
                lease=lease,
                wait=wait,
                crash_limit=crash_limit,
                holder=holder,
                weights=options.weights,
            ),
            line=line,
            leases=leases,
            limits=Limits(options),
            marker=RestartMarker(control(queue) if options.restarts else None),
            give_back=orders.give_back,
            batch=attempts.look_for_observers,
            unreadable=reports.unreadable,
        )
        loops = self._judged(claims, settler, keeper, wait)
        watch = Watch(leases, line, loops, heartbeat, lease=lease, told=orders.told, give_back=orders.give_back)
        ending = Ending(
            line, orders, settler, reports, stopping=self._stopping, at_once=self._at_once, drain=options.drain_timeout
        )
        self.vitals.attach(
            Parts(
                line=line,
                leases=leases,
                claims=claims,
                settler=settler,
                keeper=keeper,
                heartbeat=heartbeat,
                loops=loops,
            )
        )
        reports.worker_started(queues, options.concurrency, lease)
        keeper.start()
        try:
            await self._run_loops(claims, settler, watch, board, ending)
        finally:
            await keeper.stop(LAST_SETTLE)
            threads.close()
        reason = self._reason or ExitReason.SHUTDOWN
        reports.worker_stopped(reason.value, line.finished)
        return reason

    async def _run_loops(
        self, claims: Claims, settler: Settler, watch: Watch, board: ProgressBoard, ending: Ending
    ) -> None:
        self._claims = claims
        if self._stopping.is_set():
            claims.stop()
        timer = None
        if self._options.max_time is not None:
            timer = asyncio.get_running_loop().call_later(self._options.max_time, self.retire, ExitReason.MAX_TIME)
        async with asyncio.TaskGroup() as loops:
            settling = loops.create_task(self._guarded(settler.run()))
            watching = loops.create_task(self._guarded(watch.run()))
            reporting = loops.create_task(self._guarded(board.run()))
            claiming = loops.create_task(self._claiming(claims))
            growing = loops.create_task(self._growing())
            accompanying = [loops.create_task(self._guarded(other.run())) for other in self._beside]
            try:
                await self._over.wait()
            except asyncio.CancelledError:
                self._at_once.set()
                self._stopping.set()
                raise
            finally:
                if timer is not None:
                    timer.cancel()
                claims.stop()
                for other in self._beside:
                    other.stop()
                await ending.run(claiming, settling)
                for task in accompanying:
                    task.cancel()
                watching.cancel()
                growing.cancel()
                reporting.cancel()

    def _judged(self, claims: Claims, settler: Settler, keeper: KeeperThread, wait: float) -> list[Judged]:
        limit = self._options.stall_timeout
        return [
            Judged(
                "no claim was answered",
                steps=lambda: claims.calls,
                rests=lambda: claims.waits_rightly,
                limit=limit + wait,
            ),
            Judged(
                "no settlement was answered",
                steps=lambda: settler.calls,
                rests=lambda: not settler.open,
                limit=limit + LONGEST_DELAY,
            ),
            Judged(
                "no lease was renewed",
                steps=lambda: keeper.rounds,
                rests=lambda: False,
                limit=limit + LONGEST_INTERVAL,
            ),
            *(
                Judged(other.failing, steps=partial(getattr, other, "rounds"), rests=lambda: False, limit=limit)
                for other in self._beside
            ),
        ]

    def _opening(self, base: float | None) -> Opening:
        options = self._options
        if options.backoff is not None:
            backoff = fixed(options.backoff)
        else:
            backoff = Backoff() if base is None else Backoff(base=base)
        return Opening(
            self._app.registry,
            tries=options.tries,
            timeout=options.timeout,
            backoff=backoff,
            unknown_limit=options.unknown_limit,
        )

    # ------------------------------------------------------------------------------------------------------- its end

    async def _claiming(self, claims: Claims) -> None:
        self.retire(await self._guarded(claims.run()))

    async def _growing(self) -> None:
        if self._options.memory is not None:
            await memory.reached(self._options.memory)
            self.retire(ExitReason.MEMORY)

    async def _guarded(self, loop: Coroutine[Any, Any, T]) -> T | None:
        try:
            return await loop
        except Exception as defect:  # noqa: BLE001 - rule 7: a loop that dies ends the process
            self._broke(defect)
            return None

    def _broke(self, defect: BaseException) -> None:
        """End because of a defect: nothing is lost, but nothing can be relied on either."""
        logger.critical("the worker ends because of a defect", exc_info=defect)
        self._reason = ExitReason.ERROR
        self._at_once.set()
        self._stopping.set()
        self._over.set()


def _results(queue: Queue) -> Results | None:
    return cast("Results", queue) if feature(queue, Results) else None
