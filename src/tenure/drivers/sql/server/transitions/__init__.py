"""The transitions, by family: functions of a transaction, each done whole or not at all.

Rows are locked before they are looked at, always in the order of their numbers, and changed afterwards, many at once.
"""

from tenure.drivers.sql.server.transitions.claiming import claim, glance
from tenure.drivers.sql.server.transitions.composing import (
    add,
    begin_to_cancel,
    cancel_some,
    composition,
    compositions,
    grow,
    prepare,
    prune_compositions,
    start,
)
from tenure.drivers.sql.server.transitions.keeping import endings, progress, report
from tenure.drivers.sql.server.transitions.listing import held, jobs
from tenure.drivers.sql.server.transitions.operating import cancel, clear, forget, old, prune, retry
from tenure.drivers.sql.server.transitions.pushing import push
from tenure.drivers.sql.server.transitions.reading import counts, failed, failed_record, queues, states
from tenure.drivers.sql.server.transitions.relaying import push_numbered
from tenure.drivers.sql.server.transitions.scheduling import (
    book,
    fire,
    pause_schedule,
    put_schedule,
    remove_schedule,
)
from tenure.drivers.sql.server.transitions.settling import renew, settle
from tenure.drivers.sql.server.transitions.telling import pause, paused, request_restart, restart_marker, resume
from tenure.drivers.sql.server.transitions.unreadable import content, drop, records

__all__ = [
    "add",
    "begin_to_cancel",
    "book",
    "cancel",
    "cancel_some",
    "claim",
    "clear",
    "composition",
    "compositions",
    "content",
    "counts",
    "drop",
    "endings",
    "failed",
    "failed_record",
    "fire",
    "forget",
    "glance",
    "grow",
    "held",
    "jobs",
    "old",
    "pause",
    "pause_schedule",
    "paused",
    "prepare",
    "progress",
    "prune",
    "prune_compositions",
    "push",
    "push_numbered",
    "put_schedule",
    "queues",
    "records",
    "remove_schedule",
    "renew",
    "report",
    "request_restart",
    "restart_marker",
    "resume",
    "retry",
    "settle",
    "start",
    "states",
]
