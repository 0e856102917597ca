"""Exchanges without an event loop, from threads: each call on a connection that it has for itself."""

import os
import time

from tenure.drivers.redis.connection import BlockingLink, Reply
from tenure.drivers.redis.endpoint import Endpoint
from tenure.drivers.redis.server import Server
from tenure.drivers.redis.session import Call
from tenure.drivers.redis.topology import ANSWER, Inquiry, Way
from tenure.drivers.redis.trouble import Rejected, Trouble, Unsent
from tenure.errors import ConnectionFailed


class BlockingLinks:
    """Connections for threads, one for each call under way.

    Taking and giving back are single operations of a list, so there is no lock, which a fork might copy while it is
    held. A child of ``fork`` makes connections of its own and leaves its parent's alone.
    """

    def __init__(self, endpoint: Endpoint, timeout: float, moves: float) -> None:
        """``timeout``: seconds for an answer; ``moves``: for a queue that nobody takes calls for at the moment."""
        self._topology = endpoint.topology
        self._timeout = timeout
        self._moves = moves
        self._version = self._topology.version
        self._idle: dict[tuple[int, Server, float], list[BlockingLink]] = {}
        self._closed = False

    def perform(self, call: Call) -> Reply:
        """Carry out a call, and return its reply or raise its error."""
        way: Way | None = None
        while True:
            if self._closed:
                raise ConnectionFailed("it is closed; nothing was sent")
            pause: float | None = 0.0
            server: Server | None = None
            link: BlockingLink | None = None
            try:
                server = self._server(call.key, way)
                link = self._take(server, self._timeout)
                answered, reply = _sent(call, link, asking=way is not None and way.asking)
                if answered:
                    return reply
            except Trouble as trouble:
                way = way or Way(self._topology, self._moves)
                pause = None if call.tied else way.onward(server, trouble)
                if pause is None:
                    pause = call.troubled(trouble)
            finally:
                if link is not None and server is not None:
                    self._give(server, self._timeout, link)
            if pause:
                time.sleep(pause)

    def _server(self, key: bytes, way: Way | None) -> Server:
        topology = self._topology
        if topology.due:
            self._carry_out(topology.look())
        if topology.version != self._version:
            self._version = topology.version
            self._close(gone_only=True)
        server = (way.server if way is not None else None) or topology.server_of(key)
        if server is None:
            raise Unsent("nobody serves that part of the cluster; nothing was sent")
        return server

    def _take(self, server: Server, timeout: float) -> BlockingLink:
        try:
            return self._idle.setdefault((os.getpid(), server, timeout), []).pop()
        except IndexError:
            return server.blocking_link(timeout)

    def _give(self, server: Server, timeout: float, link: BlockingLink) -> None:
        if self._topology.keeps(server):
            self._idle.setdefault((os.getpid(), server, timeout), []).append(link)
        else:
            link.close()
        if self._closed:
            self.close()

    def _carry_out(self, inquiry: Inquiry) -> None:
        try:
            question = next(inquiry)
            while True:
                answer = self._answer(*question)
                question = inquiry.throw(answer) if isinstance(answer, Trouble) else inquiry.send(answer)
        except StopIteration:
            return

    def _answer(self, server: Server, command: bytes) -> Reply:
        link = self._take(server, ANSWER)
        try:
            return link.exchange(command)
        except Trouble as trouble:
            return trouble
        finally:
            self._give(server, ANSWER, link)

    def close(self) -> None:
        """Close what is idle now, and the others when their calls end; idempotent."""
        self._closed = True
        self._close(gone_only=False)

    def _close(self, *, gone_only: bool) -> None:
        for (pid, server, _), idle in list(self._idle.items()):
            # A parent's connections are left alone.
            if pid != os.getpid() or (gone_only and self._topology.keeps(server)):
                continue
            while idle:
                try:
                    link = idle.pop()
                except IndexError:
                    break  # another thread was quicker
                link.close()


def _sent(call: Call, link: BlockingLink, *, asking: bool) -> tuple[bool, Reply]:
    """Send what the call has to send over one link, and tell whether it has its outcome."""
    send = link.ask if asking else link.exchange
    try:
        while True:
            reply = send(call.command())
            if call.answered(reply):
                return True, reply
            if not call.tied:
                return False, reply
            send = link.go_on
    except Rejected as refusal:
        if refusal.code == "READONLY":
            link.close()  # it is no primary any more: the next one is made where that is
        raise
