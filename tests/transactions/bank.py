"""A bank whose transfers are jobs, and a worker for it: `python -m tests.transactions.bank STORE NAMESPACE [options]`.

`TENURE_TEST_BANK` is the bank's database, as SQLAlchemy takes it. Which attempts began is written to the journal, and
not to the database: those that came to nothing are to be counted too.
"""

import os
import random
import signal
import time
from collections.abc import Sequence
from functools import cache

import sqlalchemy
from sqlalchemy import Engine, event
from sqlalchemy.orm import Mapped, Session, mapped_column

from tenure import Tenure, current
from tests.transactions.support import Base, begin_by_hand
from tests.worker import program

ACCOUNTS = 10
OPENING = 10_000
PAUSE = {"sqlite": 0.003, "postgresql": 0.02}
"""Seconds behind each of a transfer's statements. On a file all others wait for them."""


class Account(Base):
    """An account of one test."""

    __tablename__ = "test_accounts"

    number: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str] = mapped_column(sqlalchemy.String(64), primary_key=True)
    balance: Mapped[int]


Transfer = tuple[int, int, int]
"""From which account, to which, and how much."""


def transfers(seed: int, count: int) -> list[Transfer]:
    chosen = random.Random(seed)
    return [(*chosen.sample(range(ACCOUNTS), 2), chosen.randint(1, 50)) for _ in range(count)]  # type: ignore[misc]


def expected(made: Sequence[Transfer]) -> dict[int, int]:
    """Return what each account must hold."""
    balances = dict.fromkeys(range(ACCOUNTS), OPENING)
    for source, target, amount in made:
        balances[source] -= amount
        balances[target] += amount
    return balances


def opened(url: str) -> Engine:
    engine = sqlalchemy.create_engine(url)
    begin_by_hand(engine)
    return engine


@cache
def bank() -> Engine:
    """The one of this process."""
    return opened(os.environ["TENURE_TEST_BANK"])


def open_accounts(engine: Engine, owner: str) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add_all(Account(number=number, owner=owner, balance=OPENING) for number in range(ACCOUNTS))


def balances(engine: Engine, owner: str) -> dict[int, int]:
    asked = sqlalchemy.select(Account.number, Account.balance).where(Account.owner == owner)
    with Session(engine) as session:
        return {account.number: account.balance for account in session.execute(asked)}


def transfer(owner: str, source: int, target: int, amount: int) -> None:
    """Move an amount. Not one of its statements may be done twice, and it takes its time between them."""
    program.journal().write("start", "transfer")
    with Session(bank()) as session, current().transaction(session):
        moves = {source: -amount, target: amount}
        for number in sorted(moves):  # so that two transfers do not wait for each other
            move(session, owner, number, moves[number])
            time.sleep(PAUSE[bank().dialect.name])  # handler


def move(session: Session, owner: str, number: int, amount: int) -> None:
    account = sqlalchemy.update(Account).where(Account.owner == owner, Account.number == number)
    session.execute(account.values(balance=Account.balance + amount))


def dies(owner: str, when: str) -> None:
    """Add one to an account; the process is killed at the first attempt's COMMIT, before it or behind it."""
    program.journal().write("start", when)
    with Session(bank()) as session, current().transaction(session):
        move(session, owner, 0, 1)
        if current().attempt == 1:
            event.listen(session, when, lambda _: os.kill(os.getpid(), signal.SIGKILL))
    program.journal().write("end", when)


def build(url: str, namespace: str) -> Tenure:
    app = Tenure(url, namespace=namespace)
    app.job(name="transfer")(transfer)
    app.job(name="dies")(dies)
    return app


if __name__ == "__main__":
    program.main(build)
