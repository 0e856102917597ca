"""How an attempt to notify can fail."""

from tenure.errors import TenureError


class NotificationFailed(TenureError):
    """A channel's service has not taken a notification. It names the channel and its key, nothing of its URL."""
