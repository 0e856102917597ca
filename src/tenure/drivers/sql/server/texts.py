"""How the statements are written once for all databases, and completed for one of them."""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from tenure.drivers.sql.server.names import Names

Dialect = Literal["postgresql", "mysql"]

READY: Final = 0
SUSPECT: Final = 1
DELAYED: Final = 2
LEASED: Final = 3
FAILED: Final = 4

_STATES: Final[Mapping[str, int]] = {"READY": 0, "SUSPECT": 1, "DELAYED": 2, "LEASED": 3, "FAILED": 4}
_STATE: Final = re.compile(r"\b(READY|SUSPECT|DELAYED|LEASED|FAILED)\b")
_MARK: Final = re.compile(r"\{(\w+)(?::(\w+))?\}")
_NOW: Final[Mapping[str, str]] = {
    # Neither is the time at which the transaction began, which stands still.
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
    "mysql": "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)",
}


class Each(NamedTuple):
    """A change of many jobs, each by values of its own, which are bound as one list of records."""

    columns: tuple[str, ...]
    """The fields of a record, all whole numbers; ``g_incarnation`` among them names the job."""
    sets: str


class Insert(NamedTuple):
    """Many new rows."""

    table: str
    columns: Mapping[str, str]
    """Each with its type."""
    postgresql: str
    mysql: str
    """What happens to a row that is there already."""


class Differ(NamedTuple):
    """A text for each of them."""

    postgresql: str
    mysql: str


Statement = str | Each | Insert | Differ


class Texts:
    """The statements, completed for one dialect and one set of tables."""

    def __init__(self, dialect: Dialect, names: Names) -> None:
        self.dialect: Dialect = dialect
        self.names: Names = names
        self._made: dict[int, str] = {}

    def of(self, statement: Statement) -> str:
        """Return the text of a statement."""
        made = self._made.get(id(statement))  # statements are constants of a module
        if made is None:
            made = self._made[id(statement)] = self._render(statement)
        return made

    def _render(self, statement: Statement) -> str:
        match statement:
            case Differ():
                text: str = getattr(statement, self.dialect)
            case Each():
                text = self._each(statement)
            case Insert():
                text = self._insert(statement)
            case _:
                text = statement
        text = _STATE.sub(lambda match: str(_STATES[match.group()]), text)
        return _MARK.sub(lambda match: self._marked(*match.groups()), text).strip()

    def _marked(self, mark: str, argument: str | None) -> str:
        if mark == "among":
            return f"= ANY(%({argument})s)" if self.dialect == "postgresql" else f"IN %({argument})s"
        return _NOW[self.dialect] if mark == "now" else self.names.table(mark)

    def _each(self, each: Each) -> str:
        if self.dialect == "postgresql":
            columns = ", ".join(f"{name} bigint" for name in each.columns)
            given = f"json_to_recordset(CAST(%(given)s AS json)) AS given({columns})"
            return f"UPDATE {{jobs}} SET {each.sets} FROM {given} WHERE incarnation = g_incarnation"  # noqa: S608
        columns = ", ".join(f"{name} BIGINT PATH '$.{name}'" for name in each.columns)
        given = f"JSON_TABLE(%(given)s, '$[*]' COLUMNS ({columns})) AS given"
        # Straight: from the few that are given to their jobs, whatever the statistics say.
        return f"UPDATE {given} STRAIGHT_JOIN {{jobs}} ON incarnation = g_incarnation SET {each.sets}"  # noqa: S608

    def _insert(self, insert: Insert) -> str:
        columns = ", ".join(insert.columns)
        if self.dialect == "postgresql":
            tail = insert.postgresql
            rows = ", ".join(f"CAST(%({name})s AS {kind}[])" for name, kind in insert.columns.items())
            return f"INSERT INTO {{{insert.table}}} ({columns}) SELECT * FROM unnest({rows}) {tail}"  # noqa: S608
        values = ", ".join(f"%({name})s" for name in insert.columns)
        return f"INSERT INTO {{{insert.table}}} ({columns}) VALUES ({values}) {insert.mysql}"  # noqa: S608
