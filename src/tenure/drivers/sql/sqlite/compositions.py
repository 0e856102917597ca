"""Every statement that compositions take besides, one a role. Values are bound, never spliced in."""

from typing import Final

from tenure.drivers.sql.nodes import COMPOSITION_COLUMNS, NODE_COLUMNS

_COLUMNS: Final = ", ".join(COMPOSITION_COLUMNS)
_NODE: Final = "node, needs, bad, turn, runs, tells, flags, queue, delay, priority, unique_key, id"
_CHANGING: Final = COMPOSITION_COLUMNS[6:]

# --------------------------------------------------------------------------------------------------------- their rows

ADD: Final = f"""
INSERT INTO tenure_compositions ({_COLUMNS}) VALUES ({", ".join(f":{name}" for name in COMPOSITION_COLUMNS)})
ON CONFLICT (home, id) DO NOTHING
"""  # noqa: S608
"""A new composition. An id that exists changes nothing."""

FIND: Final = f"SELECT {_COLUMNS} FROM tenure_compositions WHERE home = ? AND id = ?"  # noqa: S608
"""One composition."""

READ: Final = f"SELECT {_COLUMNS} FROM tenure_compositions WHERE number = ?"  # noqa: S608
"""The composition that a job belongs to."""

TO_DO: Final = f"""
SELECT {_COLUMNS} FROM tenure_compositions WHERE home = ? AND todo <= ? ORDER BY todo LIMIT ?
"""  # noqa: S608
"""Compositions with which something is to be done, the longest ago first."""

IS_CANCELLING: Final = "SELECT cancelling FROM tenure_compositions WHERE number = ?"
"""Whether a composition was cancelled."""

PAGE: Final = f"""
SELECT {_COLUMNS} FROM tenure_compositions WHERE home = ? AND id > ? ORDER BY id LIMIT ?
"""  # noqa: S608
"""Compositions behind one, by their ids."""

SAVE: Final = f"""
UPDATE tenure_compositions SET {", ".join(f"{name} = :{name}" for name in _CHANGING)} WHERE number = :number
"""  # noqa: S608
"""How far it has come."""

OVER: Final = f"""
SELECT {_COLUMNS} FROM tenure_compositions WHERE home = ? AND over_at <= ? ORDER BY over_at LIMIT ?
"""  # noqa: S608
"""Compositions that were over by a time, the longest ago first."""

FORGET: Final = "DELETE FROM tenure_compositions WHERE number = ?"
"""A composition is gone."""

# --------------------------------------------------------------------------------------------------------- their nodes

ADD_NODE: Final = f"""
INSERT INTO tenure_nodes ({", ".join(NODE_COLUMNS)}) VALUES ({", ".join(f":{name}" for name in NODE_COLUMNS)})
ON CONFLICT (composition, node) DO NOTHING
"""  # noqa: S608
"""A new node. A number that exists changes nothing."""

FIND_NODE: Final = f"SELECT {_NODE} FROM tenure_nodes WHERE composition = ? AND node = ?"  # noqa: S608
"""One node, without what is only needed when it becomes a job."""

DUE: Final = f"""
SELECT {_NODE} FROM tenure_nodes WHERE composition = ? AND turn IS NOT NULL ORDER BY turn DESC LIMIT ?
"""  # noqa: S608
"""Nodes that wait for nothing, the last that came first."""

CHANGE: Final = "UPDATE tenure_nodes SET needs = ?, bad = ?, turn = ? WHERE composition = ? AND node = ?"
"""What a node still waits for, and what it was told."""

SET_INPUT: Final = "UPDATE tenure_nodes SET input = ? WHERE composition = ? AND node = ?"
"""What the job before it returned."""

RELEASE: Final = """
INSERT INTO tenure_jobs (incarnation, queue, id, shelf, state, rank, entry, since, priority, crash_limit, expires,
                         envelope, keep, unique_key, locked, composition, node, tells, flags, input)
SELECT ?1, ?2, id, ?3, ?4, ?5, ?1, ?6, priority, crash_limit, ?6 + expires_in,
       envelope, keep, unique_key, unique_key, composition, node, ?7, flags, input
FROM tenure_nodes WHERE composition = ?8 AND node = ?9
ON CONFLICT DO NOTHING
"""
"""A node becomes a job. An id that exists changes nothing."""

REMOVE: Final = "DELETE FROM tenure_nodes WHERE composition = ? AND node = ?"
"""A node has ended, or is a job now."""

FORGET_NODES: Final = """
DELETE FROM tenure_nodes
WHERE rowid IN (SELECT rowid FROM tenure_nodes WHERE composition = ? ORDER BY node LIMIT ?)
"""
"""Some nodes of a composition that never started are gone."""

# ---------------------------------------------------------------------------------------------------------- their jobs

FIND_MEMBER: Final = """
SELECT composition, node, tells, flags FROM tenure_jobs
WHERE incarnation = ? AND queue = ? AND id = ? AND token = ? AND state = 3
"""
"""What the job of a current lease belongs to."""

FIND_MEMBERS: Final = """
SELECT incarnation, composition, node, tells, flags FROM json_each(?) CROSS JOIN tenure_jobs ON incarnation = value
"""
"""What jobs belong to. Whether their leases are current is for the statement that ends them to tell."""
