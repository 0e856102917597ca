"""One notification through Apprise.

Apprise tells what went wrong by its log alone, and so do the libraries below it: at the level DEBUG with whole URLs,
whose paths are what most services take for a password. What is logged in the course of a delivery is therefore kept
back, here and nowhere else in the process, and only the number of an HTTP status is taken from it.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from apprise import Apprise, AppriseAsset, NotifyType
from apprise.common import PersistentStoreMode

from tenure.errors import ConfigurationError
from tenure.ext.notify.channels import key_of
from tenure.ext.notify.errors import NotificationFailed

_LOGGERS: Final = ("apprise", "urllib3.connectionpool", "urllib3.util.retry", "requests_oauthlib.oauth2_session")
_STATUS: Final = re.compile(r"error[=: ]+(\d{3})\b", re.IGNORECASE)

_delivery: ContextVar[list[int] | None] = ContextVar("tenure.notify.delivery", default=None)


class _Discretion(logging.Filter):
    """Keeps back what is logged within a delivery."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record may pass."""
        statuses = _delivery.get()
        if statuses is None:
            return True
        if record.levelno >= logging.WARNING and (found := _STATUS.search(record.getMessage())):
            statuses.append(int(found[1]))
        return False


_discretion: Final = _Discretion()


def send(channel: str, url: str, *, title: str, body: str, kind: str) -> None:
    """Send it, blocking; raises ``NotificationFailed``, or ``ConfigurationError`` for a URL that is none of Apprise."""
    with _discreetly() as statuses:
        asset = AppriseAsset(
            async_mode=False,
            plugin_paths=[],
            storage_mode=PersistentStoreMode.MEMORY,
            app_id="tenure",
            app_desc="tenure",
        )
        service = Apprise.instantiate(url, asset=asset)
        if service is None:
            raise ConfigurationError(key_of(channel), "is not a URL that Apprise understands")
        taken = bool(Apprise([service], asset=asset).notify(body=body, title=title, notify_type=NotifyType(kind)))
    if not taken:
        status = f" (HTTP status {statuses[-1]})" if statuses else ""
        raise NotificationFailed(f"channel {channel!r} ({key_of(channel)}) has not taken the notification{status}")


@contextmanager
def _discreetly() -> Iterator[list[int]]:
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_discretion)  # adding it twice changes nothing
    statuses: list[int] = []
    token = _delivery.set(statuses)
    try:
        yield statuses
    finally:
        _delivery.reset(token)
