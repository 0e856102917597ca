"""What upper layers offer on an application, which imports none of them: ``app.mail``, ``app.notify``.

Each offer is an **extension**: an entry point in the group ``tenure.extensions`` names a function that takes the
application and returns what it offers, and on the way registers the jobs and services that this needs. It is made once
an application, at first use; a worker makes all that can be made, so that it knows their jobs without the pushing code
ever having run in it. What is stored decides nothing here: a job's name imports nothing.

The accessors of ``Extended`` tell the type checkers what each one is. They are the only place that names an upper
layer, and only for them.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from tenure.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from tenure.ext.mail import Mail
    from tenure.ext.notify import Notifications

GROUP: Final = "tenure.extensions"


class Extension(Protocol):
    """What an upper layer offers on one application."""

    async def aclose(self) -> None:
        """Close what was opened; idempotent, and safe before first use."""
        ...


Extend = Callable[[Any], Extension]
"""An entry point: takes the application. Raises ``MissingExtra`` when what it stands on is not installed."""


class Extensions:
    """The extensions of one application. Safe from any thread."""

    def __init__(self, app: object) -> None:
        self._app = app
        self._made: dict[str, Extension] = {}
        # Reentrant: an extension may ask for another one.
        self._lock = threading.RLock()

    def get(self, name: str) -> Any:
        """Return an extension, made at first use.

        Raises ``MissingExtra``, and ``ConfigurationError`` when no installed package has one of this name.
        """
        with self._lock:
            found = self._made.get(name)
            if found is None:
                entries = _entries(name)
                if not entries:
                    raise ConfigurationError(name, f"no installed package offers it ({GROUP}); reinstall tenure")
                found = self._made[name] = _load(entries[0])(self._app)
            return found

    def make_all(self) -> None:
        """Make every extension whose extra is installed, so that its jobs are registered."""
        for name in sorted({entry.name for entry in _entries()}):
            try:
                self.get(name)
            except MissingExtra:
                continue  # a worker without it gives its jobs back, for one that has it

    async def aclose(self) -> None:
        """Close those that were made, all of them also when one cannot be."""
        async with contextlib.AsyncExitStack() as stack:
            for extension in tuple(self._made.values()):
                stack.push_async_callback(extension.aclose)


class Extended:
    """The accessors of an application's extensions."""

    extensions: Extensions
    """What upper layers offer, by name; the attributes below are the ones that tenure brings along."""

    @property
    def mail(self) -> "Mail":
        """Mails as jobs (``tenure[mail]``): ``await app.mail.push(message, via="transactional")``."""
        mail: Mail = self.extensions.get("mail")
        return mail

    @property
    def notify(self) -> "Notifications":
        """Notifications as jobs (``tenure[notify]``): ``await app.notify(title=…, body=…, channels=["ops"])``."""
        notifications: Notifications = self.extensions.get("notify")
        return notifications


def _entries(name: str | None = None) -> "list[EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - keeps `import tenure` light

    found = entry_points(group=GROUP) if name is None else entry_points(group=GROUP, name=name)
    return list(found)


def _load(entry: "EntryPoint") -> Extend:
    extend: Extend = entry.load()
    return extend
