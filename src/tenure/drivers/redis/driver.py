"""The Redis driver: the queue as the contract has it, made of its parts."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenure.compositions import CompositionPage, CompositionStatus, NewComposition, Node
from tenure.drivers.redis import record
from tenure.drivers.redis.claiming import Terms
from tenure.drivers.redis.cluster import Cluster
from tenure.drivers.redis.doctor import diagnose
from tenure.drivers.redis.durability import Assurance
from tenure.drivers.redis.endpoint import Endpoint
from tenure.drivers.redis.keeper import RedisKeeper
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.lanes import Patience
from tenure.drivers.redis.layout import LISTS, Layout
from tenure.drivers.redis.parts import Parts
from tenure.drivers.redis.pusher import RedisPusher
from tenure.drivers.redis.renewing import Renewals
from tenure.drivers.redis.scripts import Scripts
from tenure.drivers.redis.session import Session, Sessions
from tenure.errors import InvalidOption, StoreError
from tenure.naming import check_holder
from tenure.operating import Finding, HeldPage, JobPage, UnreadableRecord
from tenure.queue import (
    DEFAULT_CRASH_LIMIT,
    Cancelled,
    Capabilities,
    Claimed,
    Counts,
    FailedRecord,
    JobState,
    Keeper,
    Lease,
    Push,
    Pushed,
    Pusher,
    Renewal,
    Settled,
    Settlement,
)
from tenure.results import Ending, Progress, ProgressReport
from tenure.schedules import Fired, ScheduleBook

if TYPE_CHECKING:
    import redis.asyncio


class RedisQueue:
    """Implements all protocols of ``tenure.queue`` and ``tenure.operating`` on Redis 6.2 or newer, or Valkey.

    Built around a client, it takes the place and the credentials of the client, opens connections of its own, and
    closes nothing of the caller's. ``layout`` makes it the driver ``redis`` or ``redis-streams``. ``patience`` tells
    how long to wait for answers, ``assurance`` what pushes of a higher durability wait for. ``scripts``, of the
    layout's line, is for tests that change a copy of one.
    """

    def __init__(
        self,
        client: "redis.asyncio.Redis | Endpoint",
        *,
        namespace: str,
        prefix: str = "",
        layout: Layout = LISTS,
        patience: Patience | None = None,
        assurance: Assurance | None = None,
        scripts: Scripts | None = None,
    ) -> None:
        self._endpoint = client if isinstance(client, Endpoint) else Endpoint.of(client)
        self._keyspace = Keyspace(namespace, prefix)
        self._layout = layout
        self._patience = patience or Patience()
        self._assurance = assurance or Assurance()
        self._scripts = scripts
        self._sessions: Sessions[Parts] = Sessions(self._make)

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        namespace: str,
        prefix: str = "",
        layout: Layout = LISTS,
        patience: Patience | None = None,
        assurance: Assurance | None = None,
        scripts: Scripts | None = None,
    ) -> "RedisQueue":
        """Make a queue on the server of a ``redis://``, ``rediss://`` or ``unix://`` URL."""
        return cls(
            Endpoint.from_url(url),
            namespace=namespace,
            prefix=prefix,
            layout=layout,
            patience=patience,
            assurance=assurance,
            scripts=scripts,
        )

    def _make(self) -> Parts:
        session = Session(
            self._endpoint,
            self._keyspace,
            self._loaded(),
            self._patience,
            self._assurance,
            driver=self._layout.capabilities.driver,
        )
        return Parts(session, self._layout)

    def _loaded(self) -> Scripts:
        if self._scripts is None:
            self._scripts = Scripts(line=self._layout.line)
        return self._scripts

    @property
    def _here(self) -> Parts:
        return self._sessions.current()

    @property
    def capabilities(self) -> Capabilities:
        """What this driver can do."""
        return self._layout.capabilities

    async def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store each job once (P1), and answer for each in order."""
        return await self._here.pushes.push(jobs)

    async def push_numbered(self, client: str, number: int, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store jobs of one queue by a call that the caller numbers: see ``tenure.relaying.Relays``."""
        here = self._here
        return await here.session.through(here.pushes.push_numbered(client, number, jobs))

    async def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease: float,
        wait: float,
        crash_limit: int = DEFAULT_CRASH_LIMIT,
        suspects: bool = True,
        holder: str | None = None,
    ) -> Claimed:
        """Lease up to ``limit`` jobs for ``lease`` seconds, from the first queue first."""
        if math.isnan(wait):
            raise InvalidOption("wait must be a number of seconds; nothing was sent")
        if crash_limit < 1:
            raise InvalidOption("crash_limit must be 1 or more; nothing was sent")
        if holder is not None:
            check_holder(holder)
        if limit < 1 or not queues:
            return Claimed()
        terms = Terms(record.lease_milliseconds(lease), crash_limit, suspects, holder)
        return await self._here.claims.claim(queues, limit, terms, wait)

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order."""
        renewals = Renewals(leases)
        session = self._here.session
        for queue, places, members in renewals.parts:
            try:
                renewals.answered(places, await session.run(queue, "renew", members))
            except StoreError as error:
                renewals.failed(error)
        return renewals.result()

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        """End each lease, and answer for each in order."""
        here = self._here
        return await here.session.through(here.settlements.settle(settlements))

    async def cancel(self, queue: str, ids: Sequence[str]) -> Sequence[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order."""
        here = self._here
        return await here.session.through(here.desk.cancel(queue, ids))

    async def clear(self, queue: str) -> int:
        """Remove all ready and delayed jobs, and return their exact number."""
        here = self._here
        return await here.session.through(here.desk.clear(queue))

    async def counts(self, queue: str) -> Counts:
        """Count the queue's jobs by state."""
        return await self._here.desk.counts(queue)

    async def queues(self) -> Sequence[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        return await self._here.desk.queues()

    async def states(self, queue: str, ids: Sequence[str]) -> Sequence[JobState]:
        """Tell where each job is, in order."""
        return await self._here.desk.states(queue, ids)

    async def endings(self, queue: str, ids: Sequence[str]) -> Sequence[Ending | None]:
        """Return the kept end of each job, in order: see ``tenure.results.Results``."""
        return await self._here.keeping.endings(queue, ids)

    async def progress(self, queue: str, ids: Sequence[str]) -> Sequence[Progress | None]:
        """Return the last progress of each job's current attempt, in order."""
        return await self._here.keeping.progress(queue, ids)

    async def report(self, reports: Sequence[ProgressReport]) -> Sequence[bool]:
        """Replace the progress of each job whose lease is current, and answer for each in order."""
        return await self._here.keeping.report(reports)

    async def failed(self, queue: str, *, limit: int = 100, offset: int = 0) -> Sequence[FailedRecord]:
        """Return failed jobs of the queue, oldest first."""
        return await self._here.failed.listed(queue, limit, offset)

    async def failed_record(self, queue: str, job_id: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        return await self._here.failed.one(queue, job_id)

    async def retry(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Make each a new ready job and remove it from the failed store, in one step each."""
        here = self._here
        return await here.session.through(here.failed.change("retry", records))

    async def forget(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Remove each from the failed store; False for one that is no longer there."""
        here = self._here
        return await here.session.through(here.failed.change("forget", records))

    async def prune(self, queue: str, *, older_than: float) -> int:
        """Remove failed jobs that failed at least so many seconds ago, a hundred a step; return their exact number."""
        return await self._here.failed.prune(queue, older_than)

    async def jobs(self, queue: str, state: JobState, *, limit: int = 100, cursor: str | None = None) -> JobPage:
        """Return jobs of one state, those first that are first in line; a thousand at most."""
        return await self._here.listing.page(queue, state, limit, cursor)

    async def held_by(self, queue: str, holder: str, *, limit: int = 500, cursor: str | None = None) -> HeldPage:
        """Return leases that were claimed with this ``holder``; a thousand on a page at most."""
        return await self._here.listing.held(queue, holder, limit, cursor)

    async def unreadable(self, queue: str, *, limit: int = 100, after: str = "") -> Sequence[UnreadableRecord]:
        """Return records that were set aside, oldest first, those behind the key ``after``; without their bytes."""
        return await self._here.unreadable.listed(queue, limit, after)

    async def unreadable_bytes(self, queue: str, key: str) -> bytes | None:
        """Return one record byte for byte, or None."""
        return await self._here.unreadable.content(queue, key)

    async def drop_unreadable(self, queue: str, keys: Sequence[str]) -> Sequence[bool]:
        """Remove records for good; False for one that is not there."""
        here = self._here
        return await here.session.through(here.unreadable.drop(queue, keys))

    async def pause(self, queue: str) -> bool:
        """Stop handing out the queue's jobs; all else goes on. False when it was paused already."""
        here = self._here
        return await here.session.through(here.controls.switch(queue, "pause"))

    async def resume(self, queue: str) -> bool:
        """Hand out the queue's jobs again, and wake who waits. False when it was not paused."""
        here = self._here
        return await here.session.through(here.controls.switch(queue, "resume"))

    async def paused(self, queues: Sequence[str]) -> Sequence[bool]:
        """Tell which queues are paused, in order."""
        return await self._here.controls.paused(queues)

    async def prepare(self, composition: NewComposition) -> bool:
        """Begin to store a composition; False, and nothing changes, when there is one with this id in this home."""
        here = self._here
        return await here.session.through(here.composer.prepare(composition))

    async def add(self, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        """Store nodes of a composition that has not started: see ``tenure.compositions.Compositions``."""
        here = self._here
        await here.session.through(here.composer.add(home, composition_id, nodes))

    async def start(self, home: str, composition_id: str) -> None:
        """Let it begin."""
        here = self._here
        await here.session.through(here.composer.start(home, composition_id))

    async def grow(self, lease: Lease, nodes: Sequence[Node]) -> bool:
        """Add counted jobs to a batch from inside one of its members, whose lease must be current."""
        here = self._here
        return await here.session.through(here.composer.grow(lease, nodes))

    async def composition(self, home: str, composition_id: str) -> CompositionStatus | None:
        """Return how far it has come; None for one that is unknown here, has not started or is forgotten."""
        return await self._here.composer.status(home, composition_id)

    async def compositions(self, home: str, *, limit: int = 100, cursor: str | None = None) -> CompositionPage:
        """Return those whose home this is, a page at a time."""
        return await self._here.composer.page(home, limit, cursor)

    async def cancel_composition(self, home: str, composition_id: str) -> bool:
        """Cancel what has not ended, in steps; False for one that is unknown or over."""
        return await self._here.composer.cancel(home, composition_id)

    async def prune_compositions(self, home: str, *, older_than: float) -> int:
        """Forget compositions that were over at least so many seconds ago, in steps; return their exact number."""
        return await self._here.composer.prune(home, older_than)

    async def schedules(self, queue: str) -> ScheduleBook:
        """Return the queue's schedules, sorted by name."""
        return await self._here.timers.book(queue)

    async def put_schedule(self, queue: str, name: str, definition: bytes) -> bool:
        """Store a schedule, or give one another definition: see ``tenure.schedules.Schedules``."""
        here = self._here
        return await here.session.through(here.timers.put(queue, name, definition))

    async def fire(
        self, queue: str, name: str, *, seen: float, slot: float, jobs: Sequence[Push], overlap: bool
    ) -> Fired:
        """Move the cursor and push the jobs, all in one step: see ``tenure.schedules.Schedules``."""
        here = self._here
        return await here.session.through(
            here.timers.fire(queue, name, seen=seen, slot=slot, jobs=jobs, overlap=overlap)
        )

    async def pause_schedule(self, queue: str, name: str, *, paused: bool) -> bool:
        """Let nothing fire, or let it fire again from now on; False when it is unknown, or so already."""
        here = self._here
        return await here.session.through(here.timers.switch(queue, name, paused=paused))

    async def remove_schedule(self, queue: str, name: str) -> bool:
        """Forget a schedule; its jobs stay. False when it is unknown."""
        here = self._here
        return await here.session.through(here.timers.remove(queue, name))

    async def request_restart(self) -> str:
        """Write a new opaque marker, and return it: workers that see it change finish and exit."""
        return await self._here.controls.request_restart()

    async def restart_marker(self) -> str | None:
        """Return the marker, or None when there was never one."""
        return await self._here.controls.restart_marker()

    async def diagnose(self, *, durability: int = 1) -> Sequence[Finding]:
        """Look at the server for what would break a promise; changes nothing."""
        return await diagnose(
            self._here.session.command,
            self._keyspace,
            self._layout,
            self._loaded(),
            durability=durability,
            replicas_wanted=self._assurance.replicas,
            clustered=isinstance(self._endpoint.topology, Cluster),
        )

    def keeper(self) -> Keeper:
        """Return a new keeper."""
        return RedisKeeper(self._endpoint, self._keyspace, self._loaded(), self._patience)

    def pusher(self) -> Pusher:
        """Return a new blocking pusher."""
        return RedisPusher(
            self._endpoint,
            self._keyspace,
            self._layout.capabilities,
            self._loaded(),
            self._patience,
            self._assurance,
        )

    async def aclose(self) -> None:
        """Close the driver's connections; idempotent, and safe before first use."""
        await self._sessions.close()

    def __repr__(self) -> str:
        return f"RedisQueue({self._endpoint}, namespace={self._keyspace.namespace!r})"
