"""Notifications through Apprise to real HTTP services that fail."""

import asyncio
import logging
from typing import Any

import pytest

from tenure import InvalidOption, Tenure, WrongContext
from tests.notify.conftest import Services
from tests.worker.support import drain, until_counts, working

# A library below Apprise imports what Python 3.13 has no more, where that is there.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

CHANNELS = ["ops", "oncall", "chat"]


# S19
async def test_a_channel_that_fails_is_tried_again_and_the_others_are_not(app: Tenure, services: Services) -> None:
    services.statuses["oncall"].extend([500, 503])
    handles = await app.notify(title="Disk", body="94 % full", channels=CHANNELS, kind="warning", backoff=0.01)
    assert len(handles) == 3
    async with working(app):
        await until_counts(app, ready=0, delayed=0, leased=0)
    assert {channel: len(services.posted[channel]) for channel in CHANNELS} == {"ops": 1, "oncall": 3, "chat": 1}
    assert {channel: len(services.taken[channel]) for channel in CHANNELS} == {"ops": 1, "oncall": 1, "chat": 1}
    [taken] = services.taken["ops"]
    assert (taken["title"], taken["message"], taken["type"]) == ("Disk", "94 % full", "warning")
    assert not (await app.counts("default")).failed


async def test_a_notification_pushed_again_with_its_id_is_held_channel_by_channel(
    app: Tenure, services: Services
) -> None:
    first = await app.notify(body="once", channels=["ops"], id="deploy-7")
    again = await app.notify(body="once", channels=["ops", "chat"], id="deploy-7")
    assert [handle.id for handle in first] == ["deploy-7.ops"]
    assert [(handle.id, handle.held) for handle in again] == [("deploy-7.ops", True), ("deploy-7.chat", False)]
    await drain(app)
    assert [len(services.taken[channel]) for channel in ("ops", "chat")] == [1, 1]


async def test_the_blocking_twin_does_the_same(app: Tenure, services: Services) -> None:
    await asyncio.to_thread(app.notify.sync, title="Disk", body="full", channels=CHANNELS)
    assert (await app.counts("default")).ready == 3
    with pytest.raises(WrongContext):
        app.notify.sync(body="full", channels=CHANNELS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"channels": []},
        {"channels": "ops"},
        {"channels": ["json://host/c4nary"]},
        {"channels": [7]},
        {"title": "", "body": " "},
        {"kind": "loud"},
        {"delays": 3},
    ],
    ids=repr,
)
async def test_what_is_no_notification_is_refused(app: Tenure, wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"title": "Disk", "body": "full", "channels": ["ops"], **wrong}
    with pytest.raises(InvalidOption):
        await app.notify(**given)
    assert (await app.counts("default")).ready == 0


# S19
async def test_a_channel_s_secrets_appear_nowhere(
    app: Tenure, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    services.statuses["ops"].extend([500, 500])
    await app.notify(title="Disk", body="full", channels=["ops"], max_attempts=2, backoff=0.01)
    async with working(app):
        await until_counts(app, failed=1)
    [record] = await app.failed("default")
    assert "channel 'ops' (TENURE_NOTIFY_OPS_URL) has not taken the notification (HTTP status 500)" in (
        record.failure.message
    )
    await app.notify(title="Disk", body="full", channels=["ops"])
    [lease] = (await app.queue().claim(["default"], limit=1, lease=60, wait=0)).leases
    logged = "".join(f"{entry.getMessage()}{vars(entry)}" for entry in caplog.records)
    shown = f"{app!r}{app.notify!r}{app.settings!r}{record!r}{record.failure.message}{record.failure.traceback}"
    assert "c4nary" not in f"{logged}{shown}{lease.envelope.decode()}"


@pytest.mark.parametrize(("url", "problem"), [("", "is not set in this worker"), ("c4nary://x", "is not a URL that")])
async def test_a_channel_that_leads_nowhere_names_its_key(app: Tenure, url: str, problem: str) -> None:
    app.settings.environ["TENURE_NOTIFY_LOST_URL"] = url  # type: ignore[index] # a dict, for the test
    await app.notify(body="full", channels=["lost"], max_attempts=1)
    await drain(app)
    [record] = await app.failed("default")
    assert record.failure.message.startswith(f"TENURE_NOTIFY_LOST_URL: {problem}")
    assert "c4nary" not in f"{record.failure.message}{record.failure.traceback}"


async def test_what_others_log_through_apprise_is_left_alone(
    app: Tenure, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    await app.notify(body="full", channels=["ops"])
    await drain(app)
    caplog.set_level(logging.DEBUG)
    logging.getLogger("apprise").debug("of the program's own")
    assert "of the program's own" in caplog.text
