"""Notifications as jobs, through Apprise: ``await app.notify(title=…, body=…, channels=["ops"])`` (``tenure[notify]``).

``channels`` reads in the worker where a channel leads, ``sending`` speaks to Apprise, and ``notifications`` has the job
and the front that applications see.
"""

import importlib.util
from typing import TYPE_CHECKING

from tenure.errors import MissingExtra
from tenure.ext.notify.errors import NotificationFailed
from tenure.ext.notify.notifications import Notifications

if TYPE_CHECKING:
    from tenure.app import Tenure

__all__ = ["NotificationFailed", "Notifications", "extend"]


def extend(app: "Tenure") -> Notifications:
    """Return the application's notifications, their job registered; raises ``MissingExtra``.

    Apprise itself is imported where the first one is sent: a program that only pushes never loads it.
    """
    if importlib.util.find_spec("apprise") is None:
        raise MissingExtra("notify", "app.notify")
    return Notifications(app)
