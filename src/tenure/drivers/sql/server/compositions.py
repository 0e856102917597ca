"""The statements that compositions take besides, one a role; how they are written is said in ``statements``."""

from typing import Final

from tenure.drivers.sql.nodes import COMPOSITION_COLUMNS, NODE_COLUMNS
from tenure.drivers.sql.server.texts import Differ, Insert

_COLUMNS: Final = ", ".join(COMPOSITION_COLUMNS)
_KINDS: Final = {"id": "text", "kind": "text", "name": "bytea", "queues": "bytea"}
_NODE: Final = "node, needs, bad, turn, runs, tells, flags, queue, delay, priority, unique_key, id"
_NODE_KINDS: Final = {
    **dict.fromkeys(("label", "runs", "queue", "id", "unique_key"), "text"),
    **dict.fromkeys(("tells", "envelope"), "bytea"),
}

_LABEL: Final = "g_label VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.g_label'"

# --------------------------------------------------------------------------------------------------------- their rows

ADD: Final = Insert(
    "compositions",
    {name: _KINDS.get(name, "bigint") for name in COMPOSITION_COLUMNS},
    postgresql="ON CONFLICT DO NOTHING",
    mysql="ON DUPLICATE KEY UPDATE number = number",
)
"""A new composition. An id that exists changes nothing."""

FIND: Final = f"SELECT {_COLUMNS} FROM {{compositions}} WHERE home = %(home)s AND id = %(id)s"  # noqa: S608
"""One composition."""

FIND_LOCKED: Final = f"{FIND} FOR UPDATE"
"""The same; nobody else changes it, nor its nodes."""

LOCK: Final = f"""
SELECT {_COLUMNS} FROM {{compositions}} WHERE number {{among:numbers}} ORDER BY number FOR UPDATE
"""  # noqa: S608
"""The compositions that jobs belong to: nobody else changes them, nor their nodes, until this transaction ends."""

TO_DO: Final = f"""
SELECT {_COLUMNS} FROM {{compositions}} WHERE home = %(home)s AND todo <= %(now)s
ORDER BY todo LIMIT %(most)s FOR UPDATE SKIP LOCKED
"""  # noqa: S608
"""Compositions with which something is to be done, the longest ago first, that nobody else is at."""

ARE_CANCELLING: Final = "SELECT number FROM {compositions} WHERE number {among:numbers} AND cancelling = 1"
"""Which of these compositions were cancelled."""

PAGE: Final = f"""
SELECT {_COLUMNS} FROM {{compositions}} WHERE home = %(home)s AND id > %(after)s ORDER BY id LIMIT %(most)s
"""  # noqa: S608
"""Compositions behind one, by their ids."""

SAVE: Final = f"""
UPDATE {{compositions}} SET {", ".join(f"{name} = %({name})s" for name in COMPOSITION_COLUMNS[6:])}
WHERE number = %(number)s
"""  # noqa: S608
"""How far it has come."""

OVER: Final = f"""
SELECT {_COLUMNS} FROM {{compositions}} WHERE home = %(home)s AND over_at <= %(until)s
ORDER BY over_at LIMIT %(most)s FOR UPDATE SKIP LOCKED
"""  # noqa: S608
"""Compositions that were over by a time, the longest ago first."""

FORGET: Final = "DELETE FROM {compositions} WHERE number {among:numbers}"
"""Compositions are gone."""

# --------------------------------------------------------------------------------------------------------- their nodes

ADD_NODES: Final = Insert(
    "nodes",
    {name: _NODE_KINDS.get(name, "bigint") for name in ("label", *NODE_COLUMNS)},
    postgresql="ON CONFLICT DO NOTHING",
    mysql="ON DUPLICATE KEY UPDATE node = node",
)
"""New nodes. A number that exists changes nothing."""

FIND_NODES: Final = f"SELECT {_NODE} FROM {{nodes}} WHERE label {{among:labels}} FOR UPDATE"  # noqa: S608
"""Some nodes, without what is only needed when they become jobs. Locked, so that they are seen as they are now, also in
a transaction that sees what was there when it began."""

DUE: Final = f"""
SELECT {_NODE} FROM {{nodes}} WHERE composition = %(composition)s AND turn IS NOT NULL
ORDER BY turn DESC LIMIT %(most)s FOR UPDATE
"""  # noqa: S608
"""Nodes that wait for nothing, the last that came first."""

CHANGE: Final = Differ(
    postgresql="""
UPDATE {nodes} SET needs = g_needs, bad = g_bad, turn = g_turn
FROM json_to_recordset(CAST(%(given)s AS json)) AS given(g_label text, g_needs bigint, g_bad smallint, g_turn bigint)
WHERE label = g_label
""",
    mysql=f"""
UPDATE JSON_TABLE(%(given)s, '$[*]' COLUMNS ({_LABEL}, g_needs BIGINT PATH '$.g_needs',
                                             g_bad BIGINT PATH '$.g_bad', g_turn BIGINT PATH '$.g_turn')) AS given
STRAIGHT_JOIN {{nodes}} ON label = g_label
SET needs = g_needs, bad = g_bad, turn = g_turn
""",  # noqa: S608
)
"""What nodes still wait for, and what they were told."""

SET_INPUT: Final = "UPDATE {nodes} SET input = %(input)s WHERE label = %(label)s"
"""What the job before it returned."""

_JOB: Final = (
    "incarnation, queue, id, shelf, state, place, entry, since, priority, crash_limit, expires, keep, envelope, "
    "unique_key, locked, composition, node, tells, flags, input"
)
_RELEASED: Final = (
    "g_incarnation, g_queue, n.id, g_shelf, g_state, g_place, g_incarnation, %(now)s, n.priority, n.crash_limit, "
    "%(now)s + n.expires_in, n.keep, n.envelope, n.unique_key, n.unique_key, n.composition, n.node, g_tells, n.flags, "
    "n.input"
)

RELEASE: Final = Differ(
    postgresql=f"""
INSERT INTO {{jobs}} ({_JOB})
SELECT {_RELEASED.replace("%(now)s", "CAST(%(now)s AS bigint)")}
FROM json_to_recordset(CAST(%(given)s AS json)) AS given(
    g_label text, g_incarnation bigint, g_queue bigint, g_shelf bigint, g_state smallint, g_place bigint,
    g_tells bigint)
JOIN {{nodes}} AS n ON n.label = g_label
ORDER BY g_incarnation
ON CONFLICT DO NOTHING
""",  # noqa: S608
    mysql=f"""
INSERT INTO {{jobs}} ({_JOB})
SELECT {_RELEASED} FROM JSON_TABLE(%(given)s, '$[*]' COLUMNS (
    {_LABEL}, g_incarnation BIGINT PATH '$.g_incarnation', g_queue BIGINT PATH '$.g_queue',
    g_shelf BIGINT PATH '$.g_shelf', g_state BIGINT PATH '$.g_state', g_place BIGINT PATH '$.g_place',
    g_tells BIGINT PATH '$.g_tells')) AS given
STRAIGHT_JOIN {{nodes}} AS n ON n.label = g_label
ON DUPLICATE KEY UPDATE incarnation = incarnation
""",  # noqa: S608
)
"""Nodes become jobs. An id that exists changes nothing, nor does a text by which another is unique."""

REMOVE: Final = "DELETE FROM {nodes} WHERE label {among:labels}"
"""Nodes have ended, or are jobs now."""

FORGETTABLE: Final = """
SELECT node FROM {nodes} WHERE composition = %(composition)s LIMIT %(most)s FOR UPDATE
"""
"""Some nodes of a composition that never started."""
