"""A child's side of the questions: a thread that tells how the worker fares, whatever its event loop does."""

import contextlib
import logging
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final

from tenure.worker.supervisor.asking import Told, frame

logger: logging.Logger = logging.getLogger("tenure.worker")

SECONDS: Final = 2
"""How long the supervisor may take to take in an answer."""


class Telling:
    """Answers while it is entered, and once more, unasked, when it is left: what the worker came to."""

    def __init__(self, end: socket.socket, fares: Callable[[], Told]) -> None:
        self._end = end
        self._fares = fares
        self._one = threading.Lock()
        """Held while an answer is sent: two must not mix."""
        # For sending alone: a question may take as long as it likes.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SECONDS, 0))

    def __enter__(self) -> "Telling":
        threading.Thread(target=self._serve, name="tenure-telling", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The thread goes on until the supervisor or this process ends: it can be asked again, and tells the same.
        self._tell()

    def _serve(self) -> None:
        while self._asked():
            self._tell()

    def _asked(self) -> bool:
        try:
            return bool(self._end.recv(1))
        except OSError:
            return False

    def _tell(self) -> None:
        try:
            told = frame(self._fares())
        except Exception as error:  # noqa: BLE001 - a defect here must not look like one of the worker
            logger.warning("the supervisor asked how this worker fares, and was not told: %s", type(error).__name__)
            return
        try:
            with self._one:
                self._end.sendall(told)
        except OSError:
            # The supervisor is dead or does not listen. Half an answer may be under way, so this was the last one.
            with contextlib.suppress(OSError):
                self._end.shutdown(socket.SHUT_RDWR)
