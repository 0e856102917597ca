"""Exchanges without an event loop, from threads: each call on a connection that it has for itself."""

import os
import time

from tenure.drivers.redis.connection import BlockingLink, Endpoint, Reply
from tenure.drivers.redis.session import Call
from tenure.drivers.redis.trouble import Trouble
from tenure.errors import ConnectionFailed


class BlockingLinks:
    """Connections for threads, one for each call under way.

    Taking and giving back are single operations of a list, so there is no lock, which a fork might copy while it is
    held. A child of ``fork`` makes connections of its own and leaves its parent's alone.
    """

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._idle: dict[int, list[BlockingLink]] = {}
        self._closed = False

    def perform(self, call: Call) -> Reply:
        """Carry out a call, and return its reply or raise its error."""
        idle = self._idle.setdefault(os.getpid(), [])
        while True:
            if self._closed:
                raise ConnectionFailed("it is closed; nothing was sent")
            try:
                link = idle.pop()
            except IndexError:
                link = self._endpoint.blocking_link(self._timeout)
            pause = 0.0
            send = link.exchange
            try:
                while True:
                    reply = send(call.command())
                    if call.answered(reply):
                        return reply
                    if not call.tied:
                        break
                    send = link.go_on
            except Trouble as trouble:
                pause = call.troubled(trouble)
            finally:
                idle.append(link)
                if self._closed:
                    self.close()
            if pause:
                time.sleep(pause)

    def close(self) -> None:
        """Close what is idle now, and the others when their calls end; idempotent."""
        self._closed = True
        idle = self._idle.setdefault(os.getpid(), [])
        while idle:
            idle.pop().close()
