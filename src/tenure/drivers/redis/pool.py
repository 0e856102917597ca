"""The links of one event loop: one for each call that is under way, kept for the next."""

import asyncio

from tenure.drivers.redis.connection import Link, Reply
from tenure.drivers.redis.server import Server
from tenure.drivers.redis.topology import ANSWER, Inquiry, Topology, Way
from tenure.drivers.redis.trouble import Rejected, Trouble, Unsent

MOST_IDLE = 16
"""How many links to one server an event loop keeps open while nobody uses them."""


class LinkPool:
    """The links of one event loop to the servers of one store."""

    def __init__(self, topology: Topology) -> None:
        self.topology: Topology = topology
        self._version = topology.version
        self._idle: dict[Server, list[Link]] = {}
        self._busy: dict[Link, Server] = {}
        self._looking: asyncio.Task[None] | None = None

    def take_known(self, key: bytes) -> Link | None:
        """Return a link that nobody uses, to the server that has a key; None when that must be looked up first."""
        topology = self.topology
        if topology.due or topology.version != self._version:
            return None
        server = topology.server_of(key)
        return None if server is None else self._take(server)

    async def take(self, key: bytes, way: Way | None = None) -> Link:
        """Return a link that nobody uses, to the server that has a key or that is next on the way."""
        topology = self.topology
        if topology.due:
            await self._look()
        if topology.version != self._version:
            await self._close_gone()
        server = (way.server if way is not None else None) or topology.server_of(key)
        if server is None:
            raise Unsent("nobody serves that part of the cluster; nothing was sent")
        return self._take(server)

    def _take(self, server: Server) -> Link:
        idle = self._idle.get(server)
        link = idle.pop() if idle else server.link()
        self._busy[link] = server
        return link

    async def give(self, link: Link) -> None:
        """Take a link back. One that had trouble comes back closed, and is opened again by its next exchange."""
        server = self._busy.pop(link)
        idle = self._idle.setdefault(server, [])
        if len(idle) < MOST_IDLE and self.topology.keeps(server):
            idle.append(link)
        else:
            await link.close()

    def server(self, link: Link | None) -> Server | None:
        """Return the server of a link that is in use."""
        return None if link is None else self._busy[link]

    async def distrust(self, link: Link, trouble: Trouble) -> None:
        """Take a trouble that a call had on a link: a server that is no primary any more is left on all of them."""
        if isinstance(trouble, Rejected) and trouble.code == "READONLY":
            await link.close()
            for idle in self._idle.pop(self._busy[link], ()):
                await idle.close()

    async def _look(self) -> None:
        # Whoever comes meanwhile waits for the same answer, and a caller that is cancelled takes it from nobody.
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._carry_out(self.topology.look()))
            self._looking.add_done_callback(self._looked)
        await asyncio.shield(self._looking)

    def _looked(self, task: "asyncio.Task[None]") -> None:
        self._looking = None
        if not task.cancelled():
            # Whoever waits for it gets the error; there may be nobody left.
            task.exception()

    async def _carry_out(self, inquiry: Inquiry) -> None:
        try:
            question = next(inquiry)
            while True:
                answer = await self._answer(*question)
                question = inquiry.throw(answer) if isinstance(answer, Trouble) else inquiry.send(answer)
        except StopIteration:
            return

    async def _answer(self, server: Server, command: bytes) -> Reply:
        link = self._take(server)
        try:
            async with asyncio.timeout(ANSWER):
                return await link.exchange(command, ANSWER)
        except TimeoutError:
            return Unsent(f"no connection to {server} within {ANSWER:g} s; nothing was sent")
        except Trouble as trouble:
            return trouble
        finally:
            await self.give(link)

    async def _close_gone(self) -> None:
        self._version = self.topology.version
        for server in [server for server in self._idle if not self.topology.keeps(server)]:
            for link in self._idle.pop(server):
                await link.close()
        # Calls that are under way there lose their answers, which are of no use, and are sent to another server.
        for link, server in list(self._busy.items()):
            if not self.topology.keeps(server):
                await link.close()

    @property
    def size(self) -> int:
        """How many links there are."""
        return sum(map(len, self._idle.values())) + len(self._busy)

    async def close(self) -> None:
        """Close all links; a call that is under way on one loses its answer."""
        if self._looking is not None:
            self._looking.cancel()
        links = [*(link for idle in self._idle.values() for link in idle), *self._busy]
        self._idle.clear()
        await asyncio.gather(*(link.close(wait=True) for link in links))
