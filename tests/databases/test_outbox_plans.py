"""What a look into the outbox reads does not grow with what waits there."""

from typing import Any

import pytest

from tenure.drivers.sql.outbox import statements
from tenure.drivers.sql.server.texts import Statement, Texts
from tests.databases.support import Place
from tests.databases.test_plans import FILL, NAMES, backlog, explained

__all__ = ["backlog"]

ROW = "'n', concat('t', mod(n, 2)), concat('q', mod(n, 20)), concat('j', n), 1, {bytes}"
COLUMNS = "namespace, target, queue, job, created, envelope"
LIMIT = 50
LINE = {"namespace": "n", "target": "t0", "queue": "q4"}
READS: dict[str, tuple[Statement, dict[str, Any]]] = {
    "namespace": (statements.NEXT_NAMESPACE, {"after": ""}),
    "target": (statements.NEXT_TARGET, {"namespace": "n", "after": "t0"}),
    "queue": (statements.NEXT_QUEUE, {"namespace": "n", "target": "t0", "after": "q12"}),
    "last": (statements.NEXT_QUEUE, {"namespace": "n", "target": "t1", "after": "q9"}),
    "sizes": (statements.SIZES, {**LINE, "limit": LIMIT}),
    "rows": (statements.ROWS, {"ids": list(range(100, 100 + LIMIT))}),
}


@pytest.mark.parametrize("analyzed", [False, True])
async def test_no_look_into_the_outbox_reads_more_than_it_brings(backlog: Place, scale: int, *, analyzed: bool) -> None:
    count = 20_000 * min(scale, 10)
    kind = "postgresql" if backlog.postgres else "mariadb"
    row = ROW.format(bytes="CAST('x' AS bytea)" if backlog.postgres else "'x'")
    with backlog.database.engine().begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO plans_outbox ({COLUMNS}) {FILL[kind].format(row=row, count=count)}")
    if analyzed:
        with backlog.database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE plans_outbox" if backlog.postgres else "ANALYZE TABLE plans_outbox")
    texts = Texts("postgresql" if backlog.postgres else "mysql", NAMES)
    for name, (statement, values) in READS.items():
        assert explained(backlog, texts, statement, values) <= 2 * LIMIT, name
