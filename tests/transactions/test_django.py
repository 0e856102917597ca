"""Jobs follow what becomes of Django's atomic blocks, on SQLite and on PostgreSQL."""

import asyncio
import contextlib
import pathlib
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, cast

import django
import pytest
import sqlalchemy
from django.conf import settings
from django.db import DatabaseError, connections, transaction

from tenure import Injected, InvalidOption, NotSupported, Tenure, current
from tenure.context import Current
from tenure.errors import StaleLease, StoreRefused, WrongContext
from tenure.outbox import Relay
from tenure.portal import blocking
from tenure.queue import Release
from tests.support.databases import Database
from tests.transactions.support import QUEUE, Base, WentWrong, file_url, make_app, note, pushed, pushed_sync, pushing
from tests.worker.support import drain


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, postgresql: Database) -> Iterator[pathlib.Path]:
    """Where SQLite's file is; Django's settings hold for the whole process."""
    place = tmp_path_factory.mktemp("django")
    at = sqlalchemy.make_url(postgresql.url)
    settings.configure(
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(place / "jobs.sqlite")},
            "server": {
                "ENGINE": "django.db.backends.postgresql",
                "HOST": at.host,
                "PORT": at.port,
                "USER": at.username,
                "NAME": at.database,
            },
        }
    )
    django.setup()
    yield place
    connections.close_all()


@pytest.fixture(params=["default", "server"])
def alias(request: pytest.FixtureRequest, directory: pathlib.Path) -> Iterator[str]:
    yield request.param
    connections[request.param].close()


@pytest.fixture(params=["transaction", "after_commit"])
def option(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def app(alias: str, directory: pathlib.Path, postgresql: Database, namespace: str) -> Iterator[Tenure]:
    url = file_url(directory) if alias == "default" else postgresql.url
    made = make_app(url, namespace)
    made.counts_sync("default")
    engine = sqlalchemy.create_engine(url) if alias == "default" else postgresql.engine()
    Base.metadata.create_all(engine)
    engine.dispose()
    yield made
    made.close_sync()


def atomic(alias: str) -> AbstractContextManager[None]:
    block: Any = transaction.atomic(using=alias)
    return cast("AbstractContextManager[None]", block)


def insert(alias: str, number: int, owner: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute("INSERT INTO test_orders (number, owner) VALUES (%s, %s)", [number, owner])


def push(app: Tenure, number: int, **options: Any) -> Any:
    return app.push_sync(pushing(app, number, **options))


def test_jobs_follow_the_outermost_block_in_order(app: Tenure, alias: str, option: str, namespace: str) -> None:
    given: Any = {option: alias}
    with atomic(alias):
        insert(alias, 1, namespace)
        first = push(app, 1, **given)
        with atomic(alias):
            push(app, 2, **given)
        with contextlib.suppress(WentWrong), atomic(alias):
            push(app, 3, **given)
            raise WentWrong
        app.push_many_sync([pushing(app, 4), pushing(app, 5)], **given)
        assert first.status_sync() == "gone"
    assert pushed_sync(app) == [1, 2, 4, 5]
    with contextlib.suppress(WentWrong), atomic(alias):
        push(app, 6, id="six", **given)
        raise WentWrong
    assert pushed_sync(app) == []
    assert not push(app, 6, id="six").held


def test_a_block_that_never_commits_leaves_nothing(app: Tenure, alias: str, option: str, namespace: str) -> None:
    block = atomic(alias)  # what Django's TestCase does around each test
    block.__enter__()
    with atomic(alias):
        insert(alias, 1, namespace)
        push(app, 1, id="one", **{option: alias})
    transaction.set_rollback(True, using=alias)
    block.__exit__(None, None, None)
    assert pushed_sync(app) == []
    assert not push(app, 1, id="one").held


def test_what_is_no_transaction_is_refused(app: Tenure, alias: str) -> None:
    with pytest.raises(InvalidOption, match="no atomic block is open"):
        push(app, 1, transaction=alias)
    for option in ("transaction", "after_commit"):
        with pytest.raises(InvalidOption, match="takes the alias"):
            push(app, 1, **{option: connections[alias].ops})
        with pytest.raises(InvalidOption, match="Django has no database 'nowhere'"):
            push(app, 1, **{option: "nowhere"})
        with pytest.raises(WrongContext, match="use push_sync"):
            asyncio.run(_awaited(app, **{option: alias}))
    with atomic(alias):
        with pytest.raises(NotSupported, match="the 'memory' driver"):
            push(make_app("memory://", "other"), 1, transaction=alias)
        with pytest.raises(DatabaseError), connections[alias].cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")
        transaction.set_rollback(True, using=alias)
        with pytest.raises(InvalidOption, match="has failed"):
            push(app, 1, transaction=alias)
    assert pushed_sync(app) == []


async def _awaited(app: Tenure, **options: Any) -> None:
    await app.push(pushing(app, 1, **options))


def test_without_a_block_the_push_is_made_at_once(app: Tenure, alias: str) -> None:
    push(app, 1, after_commit=alias)
    assert pushed_sync(app) == [1]


@pytest.mark.parametrize("alias", ["server"], indirect=True)
def test_a_refused_statement_shows_no_payload(app: Tenure, alias: str) -> None:
    secret = 987654321
    with atomic(alias):
        with connections[alias].cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        with pytest.raises(StoreRefused) as caught:
            push(app, secret, transaction=alias)
        transaction.set_rollback(True, using=alias)
    assert caught.value.code == "READONLY"
    assert str(secret) not in "".join(traceback.format_exception(caught.value))


def test_transactions_that_are_ended_by_hand_tell_nobody(app: Tenure, alias: str) -> None:
    transaction.set_autocommit(False, using=alias)
    with pytest.raises(InvalidOption, match="manual transaction management"):
        push(app, 1, after_commit=alias)
    transaction.rollback(using=alias)
    transaction.set_autocommit(True, using=alias)


@pytest.mark.parametrize("happens", ["commit", "roll back", "stale", "failed"])
def test_a_block_commits_with_the_acknowledgement_of_its_job(
    app: Tenure, alias: str, namespace: str, happens: str
) -> None:
    push(app, 1)
    (lease,) = blocking("claim", lambda: app.queue().claim([QUEUE], limit=1, lease=60, wait=0)).leases
    attempt = Current(lease, name="note", max_attempts=1, queue=app.queue())
    if happens == "stale":
        blocking("settle", lambda: app.queue().settle([Release(lease, delay=3600)]))
    raised = {"commit": None, "roll back": WentWrong, "stale": StaleLease, "failed": InvalidOption}[happens]
    with pytest.raises(raised) if raised else contextlib.nullcontext(), attempt.enter():
        _written(alias, namespace, happens)
    assert not connections[alias].in_atomic_block
    assert app.counts_sync("default").leased == (happens in {"roll back", "failed"})
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT number FROM test_orders WHERE owner = %s", [namespace])
        assert cursor.fetchall() == ([(1,)] if happens == "commit" else [])


def test_a_block_is_the_outermost_one_of_plain_code(app: Tenure, alias: str) -> None:
    push(app, 1)
    (lease,) = blocking("claim", lambda: app.queue().claim([QUEUE], limit=1, lease=60, wait=0)).leases
    with Current(lease, name="note", max_attempts=1, queue=app.queue()).enter() as attempt:
        with atomic(alias), pytest.raises(InvalidOption, match="is open on"), attempt.transaction(alias):
            pytest.fail("the block must not begin")
        with pytest.raises(WrongContext, match="use 'with'"):
            asyncio.run(_entered(attempt, alias))


async def _entered(attempt: Current, alias: str) -> None:
    async with attempt.transaction(alias):
        pytest.fail("the block must not begin")


def _written(alias: str, namespace: str, happens: str) -> None:
    with current().transaction(alias):
        insert(alias, 1, namespace)
        if happens == "roll back":
            raise WentWrong
        if happens == "failed":
            transaction.set_rollback(True, using=alias)


class Tidy:
    """Closes what a worker's thread has opened, before the thread is gone."""


def tidy() -> Iterator[Tidy]:
    yield Tidy()
    connections.close_all()


def write(alias: str, owner: str, *, tidy: Tidy = Injected) -> str:
    """Write an order, at the first attempt in vain."""
    insert(alias, current().attempt, owner)
    if current().attempt == 1:
        raise WentWrong
    return "written"


async def never(alias: str) -> None:
    raise AssertionError(alias)


def test_a_whole_handler_may_be_such_a_block(app: Tenure, alias: str, namespace: str) -> None:
    app.services.register_factory(Tidy, tidy)
    app.job(name="write", atomic=alias)(write)
    handle = app.push_sync(app.call("write", [alias, namespace]).options(result_ttl=60))
    blocking("work", lambda: drain(app))
    assert handle.status_sync() == "succeeded"
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT number FROM test_orders WHERE owner = %s", [namespace])
        assert cursor.fetchall() == [(2,)]
    for wrong in ({"atomic": alias, "executor": "process"}, {"atomic": ""}, {"atomic": None}):
        with pytest.raises(InvalidOption, match="atomic"):
            app.job(name="wrong", **cast("Any", wrong))(write)
    with pytest.raises(InvalidOption, match="atomic is for plain functions"):
        app.job(name="wrong", atomic=alias)(never)


def test_jobs_of_another_store_wait_in_the_outbox(
    app: Tenure, alias: str, namespace: str, tmp_path: pathlib.Path
) -> None:
    elsewhere = Tenure(f"sqlite:///{tmp_path}/jobs.sqlite", namespace=namespace, outbox=app.settings.url)
    elsewhere.job(note)
    with atomic(alias):
        insert(alias, 1, namespace)
        calls = [pushing(elsewhere, number) for number in range(600)]
        elsewhere.push_many_sync(calls, transaction=alias)
        with contextlib.suppress(WentWrong), atomic(alias):
            push(elsewhere, 1000, transaction=alias)
            raise WentWrong
    with contextlib.suppress(WentWrong), atomic(alias):
        push(elsewhere, 1001, transaction=alias)
        raise WentWrong
    assert blocking("relay", Relay(elsewhere).once) == 600
    assert blocking("pushed", lambda: pushed(elsewhere, 1000)) == list(range(600))
    elsewhere.close_sync()
