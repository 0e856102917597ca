"""Pushes in a transaction, says so, and waits to be killed.

Its arguments: store, library's URL, namespace, the options that it pushes with, one after the other, and what makes
its jobs unique, if anything does.
"""

import sys

from sqlalchemy.orm import Session

from tests.transactions.support import Business, make_app, pushing


def main(store: str, library_url: str, namespace: str, options: str, unique: str = "") -> None:
    business = Business(library_url, store, make_app(store, namespace), namespace)
    with business.engine() as engine, Session(engine) as session:
        session.add(business.order(1))
        for option in options.split(","):
            business.app.push_sync(pushing(business.app, 1, id=option, unique=unique or False, **{option: session}))
        session.flush()
        sys.stdout.write("open\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
