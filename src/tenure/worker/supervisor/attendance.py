"""A child's side of the line: it tells its supervisor how far it is, and ends when told to, or when that has died."""

import asyncio
import logging
import socket

from tenure.app import Tenure
from tenure.events import WorkerStarted
from tenure.worker.options import Ended
from tenure.worker.supervisor.recycling import Recycling
from tenure.worker.supervisor.talk import Ending, Relief, Retire, Started, Talk, line_of
from tenure.worker.worker import Worker

logger: logging.Logger = logging.getLogger("tenure.worker")


class Attendance:
    """Connects a worker with its supervisor for as long as it works."""

    def __init__(self, app: Tenure, worker: Worker, recycling: Recycling, end: socket.socket) -> None:
        self._worker = worker
        self._recycling = recycling
        self._end = end
        self._queues: tuple[str, ...] = ()
        self._started = asyncio.Event()
        app.events.on(WorkerStarted, self._note)

    def _note(self, event: WorkerStarted) -> None:
        self._queues = event.queues
        self._started.set()

    async def run(self) -> None:
        """Talk with the supervisor until cancelled; when it has died, let the worker end in order."""
        talk = await Talk.over(self._end.dup())
        telling = asyncio.get_running_loop().create_task(self._tell(talk))
        try:
            async for message in talk.heard():
                if isinstance(message, Retire):
                    self._worker.retire(message.reason)
            logger.warning("the supervisor has died: this worker finishes what runs, and ends")
            self._worker.stop()
        finally:
            telling.cancel()
            talk.close()

    async def _tell(self, talk: Talk) -> None:
        await self._started.wait()
        talk.say(Started(queues=self._queues))
        talk.say(Relief(reason=await self._recycling.reached()))

    def end(self, ended: Ended) -> None:
        """Say that the worker ended in order, and how; blocking, when its event loop is gone."""
        ending = Ending(
            reason=ended.reason, forced=ended.forced, jobs=self._worker.vitals.finished, held=self._worker.vitals.held
        )
        try:
            self._end.sendall(line_of(ending))
        except OSError:
            logger.warning("the supervisor has died")
