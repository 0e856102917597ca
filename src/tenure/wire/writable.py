"""Where, in what the JSON encoder refused, the reason lies."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tenure.wire.plain import key_path


def unwritable(wire: Any) -> tuple[str, str]:
    """Return the problem and its path in a wire value that the JSON encoder refuses."""
    if isinstance(wire, list | tuple | set | frozenset):
        return _within(wire, "[{}]")
    if isinstance(wire, dict):
        for index, key in enumerate(wire):
            if not _can_be_written(key):
                return _problem(key), key_path(index)
        return _within(wire.values(), "[key #{}]", first=1)
    return _problem(wire), ""


def _within(members: Iterable[Any], place: str, *, first: int = 0) -> tuple[str, str]:
    for index, member in enumerate(members, first):
        if not _can_be_written(member):
            problem, path = unwritable(member)
            return problem, place.format(index) + path
    return "it cannot be written as JSON", ""


def _problem(value: Any) -> str:
    if isinstance(value, str):
        return "a string with a lone surrogate is no Unicode text"
    if isinstance(value, int):
        return "an integer of too many digits"
    return "it cannot be written as JSON"


def _can_be_written(wire: Any) -> bool:
    try:
        msgspec.json.encode(wire)
    except (ValueError, RecursionError):
        return False
    return True
