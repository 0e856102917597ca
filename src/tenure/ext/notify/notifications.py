"""``app.notify``: pushes a notification as one job a channel.

One job each, and not one for all: a retry then repeats the one channel that has not taken it, whatever crashes in
between, since nothing has to be remembered of the others. Their attempts, failures and times are their own, too.
"""

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Unpack

from tenure.call import Call
from tenure.errors import InvalidOption
from tenure.ext.notify.channels import check_channels, url_of
from tenure.handle import JobHandle
from tenure.injection import Injected
from tenure.naming import derived_id
from tenure.options import UNSET, PushOptions
from tenure.portal import refuse_loop, require_loop
from tenure.retry import Backoff
from tenure.sensitive import Sensitive

if TYPE_CHECKING:
    from tenure.app import Tenure

JOB: Final = "tenure.notify"
ATTEMPTS: Final = 8
PATIENCE: Final = Backoff(base=10.0, cap=900.0)
"""A notification is for people who are awake now: it is tried for the better part of an hour."""

Kind = Literal["info", "success", "warning", "failure"]
_KINDS: Final = ("info", "success", "warning", "failure")


class Notifications:
    """Notifications of one application. Made by ``app.notify``."""

    def __init__(self, app: "Tenure") -> None:
        self._app = app
        app.services.register_value(Notifications, self)
        self._job = app.job(name=JOB, max_attempts=ATTEMPTS, backoff=PATIENCE)(deliver)

    def __call__(
        self,
        *,
        title: str = "",
        body: str,
        channels: Sequence[str],
        kind: Kind = "info",
        **options: Unpack[PushOptions],
    ) -> Coroutine[Any, Any, list[JobHandle[None]]]:
        """Store a notification as one job a channel, in one round trip, and return their handles; await it.

        An ``id`` is completed by each channel's name: pushed again with it, only channels that have no such job get
        one. Refuses at once, with ``WrongContext``, where no event loop runs, and with ``InvalidOption`` what cannot
        be a notification. Raises what ``app.push_many`` raises.
        """
        require_loop("notify")
        return self._app.push_many(self.bind(title=title, body=body, channels=channels, kind=kind, **options))

    def sync(
        self,
        *,
        title: str = "",
        body: str,
        channels: Sequence[str],
        kind: Kind = "info",
        **options: Unpack[PushOptions],
    ) -> list[JobHandle[None]]:
        """Do what calling it does, over a blocking connection; refuses inside a running event loop."""
        refuse_loop("notify")
        return self._app.push_many_sync(self.bind(title=title, body=body, channels=channels, kind=kind, **options))

    def bind(
        self,
        *,
        title: str = "",
        body: str,
        channels: Sequence[str],
        kind: Kind = "info",
        **options: Unpack[PushOptions],
    ) -> list[Call[None]]:
        """Return the calls, one a channel; raises ``InvalidOption``."""
        if not f"{title}{body}".strip():
            raise InvalidOption("a notification has a title or a body that is not empty; nothing was sent")
        if kind not in _KINDS:
            raise InvalidOption(f"a notification's kind is one of {', '.join(_KINDS)}; nothing was sent")
        given = UNSET.with_(options)
        calls: list[Call[None]] = []
        for channel in check_channels(channels):
            call = self._job.options(**options).bind(title, body, channel, kind)
            calls.append(call if given.id is None else call.options(id=derived_id(given.id, channel)))
        return calls

    def send(self, channel: str, *, title: str, body: str, kind: str) -> None:
        """Send one, in the worker."""
        from tenure.ext.notify.sending import send  # noqa: PLC0415 - a program that only pushes does not load Apprise

        send(channel, url_of(channel, self._app.settings.environ), title=title, body=body, kind=kind)

    async def aclose(self) -> None:
        """Do nothing: every delivery has its own connection."""


def deliver(
    title: Annotated[str, Sensitive],
    body: Annotated[str, Sensitive],
    channel: str,
    kind: str,
    *,
    notifications: Notifications = Injected,
) -> None:
    """Send a stored notification to its channel: the job ``tenure.notify``, in a thread, as Apprise blocks."""
    notifications.send(channel, title=title, body=body, kind=kind)
