"""What upper layers offer on an application: made once, at first use, and by name."""

import importlib.util
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from tenure import ConfigurationError, Tenure
from tenure.errors import MissingExtra
from tenure.ext.mail import Mail
from tenure.ext.notify import Notifications
from tenure.extending import Extensions
from tests.worker.support import drain, push_unknown


@pytest.fixture
def app(namespace: str) -> Tenure:
    return Tenure("memory://", namespace=namespace)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """No extra is installed."""
    find = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in {"aiosmtplib", "apprise"} else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)


def test_an_extension_is_made_at_first_use_and_once(app: Tenure) -> None:
    assert len(app.registry) == 0
    assert isinstance(app.mail, Mail)
    assert app.mail is app.mail
    assert "tenure.mail" in app.registry
    assert isinstance(app.notify, Notifications)
    assert Tenure("memory://").mail is not app.mail


def test_threads_that_ask_at_the_same_time_get_the_same(app: Tenure) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(app.mail)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_one_that_nobody_offers_is_named(app: Tenure) -> None:
    with pytest.raises(ConfigurationError, match=r"pigeon: no installed package offers it"):
        app.extensions.get("pigeon")


@pytest.mark.usefixtures("without")
def test_a_missing_extra_is_named_where_it_is_asked_for(app: Tenure) -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'tenure\[mail\]'"):
        _ = app.mail
    with pytest.raises(MissingExtra, match=r"pip install 'tenure\[notify\]'"):
        _ = app.notify


# S19
async def test_a_worker_knows_the_jobs_without_having_pushed_one(app: Tenure) -> None:
    await push_unknown(app, "tenure.mail")
    await drain(app)
    [record] = await app.failed("default")
    assert record.failure.reason == "arguments"  # known, and these are none of it


@pytest.mark.usefixtures("without")
async def test_a_worker_without_the_extra_leaves_its_jobs_to_one_that_has_it(app: Tenure) -> None:
    await push_unknown(app, "tenure.mail")
    await drain(app)
    assert "tenure.mail" not in app.registry
    assert (await app.counts("default")).delayed == 1


async def test_closing_an_application_closes_what_was_made(app: Tenure) -> None:
    await app.aclose()
    _ = app.mail, app.notify
    await app.aclose()
    await app.aclose()


async def test_one_that_cannot_be_closed_keeps_no_other_from_being_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Offered:
        def __init__(self, name: str) -> None:
            self.name = name

        async def aclose(self) -> None:
            closed.append(self.name)
            raise OSError(self.name)

    class Entry:
        def __init__(self, name: str) -> None:
            self.name = name

        def load(self) -> Callable[[object], Offered]:
            return lambda _: Offered(self.name)

    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group, name: [Entry(name)] if group else [])
    extensions = Extensions(object())
    for name in ("one", "two"):
        extensions.get(name)
    with pytest.raises(OSError, match="one"):
        await extensions.aclose()
    assert sorted(closed) == ["one", "two"]
