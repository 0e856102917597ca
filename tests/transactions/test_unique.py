"""The place of a unique job, and what becomes of the transaction that it was pushed in: OB-12."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from tenure import JobHandle, Tenure
from tests.support.servers import Server
from tests.support.uniqueness import needs_unique
from tests.transactions.conftest import Open
from tests.transactions.support import Business, WentWrong, make_app, pushed_sync, pushing

ELSEWHERE = ["memory", "valkey"]
"""Stores beside the database: what is pushed to them follows the commit."""
PLACES = [
    *(("after_commit", place) for place in (*ELSEWHERE, "sqlite", "psycopg", "pymysql")),
    *(("transaction", place) for place in ("sqlite", "psycopg", "pymysql")),
]


@pytest.fixture(params=PLACES, ids="-".join)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    option, name = request.param
    return option, name


@pytest.fixture
def business(
    place: tuple[str, str], open_business: Open, request: pytest.FixtureRequest, namespace: str
) -> Iterator[Business]:
    """A business whose jobs are in its database, or elsewhere."""
    _, name = place
    made = open_business("sqlite" if name in ELSEWHERE else name)
    app: Tenure | None = None
    store = made.store
    if name == "memory":
        app, store = make_app("memory://", namespace), "memory://"
    elif name == "valkey":
        server: Server = request.getfixturevalue("valkey")
        app, store = make_app(server.url, namespace), server.url
    made = made if app is None else replace(made, app=app, store=store)
    needs_unique(made.app)
    yield made
    if app is not None:
        app.close_sync()


@pytest.fixture
def engine(business: Business) -> Iterator[Engine]:
    with business.engine() as opened:
        yield opened


@pytest.fixture
def option(place: tuple[str, str]) -> str:
    return place[0]


def push(business: Business, number: int, **options: Any) -> JobHandle[Any]:
    handle: JobHandle[Any] = business.app.push_sync(pushing(business.app, number, unique="K", **options))
    return handle


def accepted_at_once(business: Business) -> None:
    """No job is there, and the next is accepted, once."""
    assert business.app.counts_sync("default").size == 0
    handle = push(business, 100)
    assert not handle.held
    assert push(business, 101).id == handle.id
    assert pushed_sync(business.app) == [100]


def test_ob_12_a_transaction_that_raises_takes_the_lock_back(business: Business, engine: Engine, option: str) -> None:
    with contextlib.suppress(WentWrong), Session(engine) as session, session.begin():
        session.add(business.order(1))
        push(business, 1, **{option: session})
        raise WentWrong
    accepted_at_once(business)


def test_ob_12_a_savepoint_takes_the_lock_back(business: Business, engine: Engine, option: str) -> None:
    with Session(engine) as session, session.begin():
        session.add(business.order(1))
        with contextlib.suppress(WentWrong), session.begin_nested():
            push(business, 1, **{option: session})
            raise WentWrong
    accepted_at_once(business)


def test_ob_12_a_commit_keeps_the_lock_with_the_job(business: Business, engine: Engine, option: str) -> None:
    with Session(engine) as session, session.begin():
        session.add(business.order(1))
        push(business, 1, **{option: session})
        second = push(business, 2, **{option: session})
        if option == "transaction":
            assert second.held
    assert push(business, 3).held
    assert pushed_sync(business.app) == [1]


def test_ob_12_a_process_that_is_killed_before_its_commit_leaves_no_lock(business: Business, option: str) -> None:
    if not business.app.queue().capabilities.shared:
        pytest.skip("memory is gone with its process")
    words = [sys.executable, "-m", "tests.transactions.killed", business.store, business.url, business.namespace]
    words += [option, "K"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        child.kill()
    accepted_at_once(business)


def test_ob_12_of_two_that_race_and_one_that_rolls_back_one_job_is_left(
    business: Business, engine: Engine, option: str
) -> None:
    began = threading.Event()

    def commits() -> None:
        began.wait(10)
        with Session(engine) as session, session.begin():
            push(business, 2, **{option: session})

    other = threading.Thread(target=commits)
    other.start()
    with contextlib.suppress(WentWrong), Session(engine) as session, session.begin():
        push(business, 1, **{option: session})
        began.set()
        # It gets as far as it can beside this one: to the end after a commit, to a wait inside a transaction.
        other.join(0.3)
        raise WentWrong
    other.join(30)
    assert not other.is_alive()
    assert push(business, 3).held
    assert pushed_sync(business.app) == [2]


def test_ob_12_what_never_commits_leaves_no_lock(business: Business, engine: Engine, option: str) -> None:
    """As in a test case of a framework, which rolls everything back."""
    for number in range(3):
        with engine.connect() as connection, connection.begin() as outer:
            with Session(connection, join_transaction_mode="create_savepoint") as session:
                session.add(business.order(number))
                session.flush()
                assert not push(business, number, **{option: session}).held
                session.commit()
            outer.rollback()
    accepted_at_once(business)
