"""What the server's error replies mean.

A reply that is an error is told by its code alone: the server's own words may hold arguments of the call.
"""

import re

REFUSALS = {
    "OOM": "its memory is full (maxmemory); claims and settlements still work, so workers can drain the queue",
    "READONLY": "it is a replica, or was demoted to one",
    "LOADING": "it is loading its data; try again shortly",
    "MISCONF": "it cannot write to its disk",
    "NOPERM": "this user has no permission for the call",
    "NOAUTH": "it asks for a password",
    "WRONGPASS": "user name or password is wrong",
    "BUSY": "it is busy with a long script; try again shortly",
    "WRONGTYPE": "one of the queue's keys holds something else than tenure's data",
    "WRONGVALUE": "one of the queue's keys holds something else than tenure's data",
    "CLUSTERDOWN": "the cluster is down",
    "MASTERDOWN": "its primary is down",
    "TRYAGAIN": "the queue's slot is being moved; try again shortly",
    "NOREPLICAS": "too few replicas are connected (min-replicas-to-write)",
    "MOVED": "the queue lives on another node of the cluster; a redis+cluster:// URL finds it there",
    "ASK": "the queue is being moved to another node of the cluster; a redis+cluster:// URL finds it there",
    "UNBLOCKED": "it was demoted to a replica meanwhile",
    "CROSSSLOT": "the keys lie in several slots of a cluster",
}
"""Refusals by code: nothing was executed, or the script ended before its first write."""

_CODE = re.compile(r"-?([A-Z]{2,}) ")
# A command that the user may not call, met inside a script: Redis 6.2 and 7, Valkey.
_DENIED = re.compile(r"user executing the script can't run|ACL failure in script")
# Redis 6.2 wraps an error that ended a script, and puts its code behind the line that made it.
_WRAPPED = re.compile(r"@user_script:\s*\d+: -?([A-Z]{3,})\b")


def code(text: str, status: str | None = None) -> str:
    """Return the code of an error reply, ``ERR`` if it has none of its own."""
    if _DENIED.search(text):
        return "NOPERM"
    wrapped = _WRAPPED.search(text)
    if wrapped is not None:
        return wrapped[1]
    if status:
        return status
    plain = _CODE.match(f"{text} ")
    return plain[1] if plain else "ERR"


def broke(text: str, status: str | None = None) -> bool:
    """Tell whether a script broke off by an error of its own: then it may have written a part."""
    return "user_script:" in text and (code(text, status) == "ERR" or _DENIED.search(text) is not None)
