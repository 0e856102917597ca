"""Where, in what the JSON encoder refused, the reason lies."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tenure.wire.plain import key_path


def unwritable(wire: Any) -> tuple[str, str]:
    """Return the problem and its path in a wire value that the JSON encoder refuses."""
    for path, member in _members(wire):
        try:
            msgspec.json.encode(member)
        except ValueError:
            problem, inner = unwritable(member)
            return problem, path + inner
    if isinstance(wire, str):
        return "a string with a lone surrogate is no Unicode text", ""
    return "an integer of more digits than this process writes", ""  # sys.set_int_max_str_digits


def _members(wire: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(wire, list | tuple | set | frozenset):
        for index, member in enumerate(wire):
            yield f"[{index}]", member
    elif isinstance(wire, dict):
        for index, (key, member) in enumerate(wire.items()):
            yield key_path(index), key
            yield key_path(index), member
