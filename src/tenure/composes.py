"""What an application offers of chains, batches and workflows."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Unpack

from tenure.composing import Composer
from tenure.config import DEFAULT
from tenure.flow import Batch, Chain, CompositionHandle, Workflow
from tenure.flow.values import CompositionOptions, Given, Single
from tenure.portal import blocking


class Composes:
    """The part of an application that makes compositions, and finds them again."""

    composer: Composer
    """What stores them."""

    def chain(self, *calls: Given, **options: Unpack[CompositionOptions]) -> Chain:
        """Return a chain: each call begins when the one before it has succeeded; push it to store it.

        Calls, instances of class jobs and other compositions can be its steps. A call has all its arguments: to pass
        a result on, use ``first.bind(…).then(second)``, which can be a step too. Raises ``Refused``.
        """
        return Chain(self.composer, calls, options)

    def batch(
        self,
        calls: Iterable[Given],
        /,
        *,
        on_success: Single | None = None,
        on_failure: Single | None = None,
        on_finish: Single | None = None,
        result_ttl: float | timedelta | None = None,
        **options: Unpack[CompositionOptions],
    ) -> Batch:
        """Return a batch: calls side by side, and what is to follow; push it to store it.

        ``calls`` is any iterable of what a chain takes, read when the batch is pushed, and never held in memory. One
        that fails stops no other. ``on_success`` runs when all have succeeded, ``on_failure`` when one has not,
        ``on_finish`` in any case, also when the batch was cancelled; all three after the last member. ``result_ttl``
        is that of members which have none of their own. Raises ``Refused``.
        """
        return Batch(
            self.composer,
            calls,
            options,
            on_success=on_success,
            on_failure=on_failure,
            on_finish=on_finish,
            result_ttl=result_ttl,
        )

    def workflow(self, **options: Unpack[CompositionOptions]) -> Workflow:
        """Return an empty workflow: ``add`` calls to it that name those that they come after, and push it."""
        return Workflow(self.composer, options)

    async def composition(
        self, composition_id: str, *, connection: str = DEFAULT, queue: str | None = None
    ) -> CompositionHandle | None:
        """Return the handle of a composition, or None for one that is unknown, has not begun or was forgotten.

        It is kept with the queue of its first job; without ``queue``, all queues are looked through.
        """
        return await self.composer.find(composition_id, connection=connection, queue=queue)

    def composition_sync(
        self, composition_id: str, *, connection: str = DEFAULT, queue: str | None = None
    ) -> CompositionHandle | None:
        """Do what ``composition`` does, blocking."""
        return blocking("composition", lambda: self.composition(composition_id, connection=connection, queue=queue))

    async def prune_compositions(self, *, hours: float, connection: str = DEFAULT) -> int:
        """Forget compositions that were over so many hours ago, in all queues, and return their exact number."""
        return await self.composer.prune(hours=hours, connection=connection)

    def prune_compositions_sync(self, *, hours: float, connection: str = DEFAULT) -> int:
        """Do what ``prune_compositions`` does, blocking."""
        return blocking("prune_compositions", lambda: self.prune_compositions(hours=hours, connection=connection))
