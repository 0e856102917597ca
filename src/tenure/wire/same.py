"""Whether what came back is what was sent: values and, throughout, their types."""

import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import msgspec


def same(sent: Any, back: Any) -> bool:
    """Tell whether two values are equal and of equal types. A float may come back for an equal integer."""
    if type(sent) is not type(back):
        return type(sent) is int and type(back) is float and sent == back
    result: bool
    match sent:
        case list() | tuple():
            result = _same_members(sent, back)
        case dict():
            result = _same_members(list(sent), list(back)) and _same_members(list(sent.values()), list(back.values()))
        case set() | frozenset():
            result = sent == back and {*map(type, sent)} == {*map(type, back)}
        case msgspec.Struct():
            result = all(same(getattr(sent, name), getattr(back, name)) for name in sent.__struct_fields__)
        case datetime() | time():
            # Zones are not compared: an offset comes back, the name of the zone does not.
            result = sent.utcoffset() == back.utcoffset() and sent.replace(tzinfo=None) == back.replace(tzinfo=None)
        case float():
            result = sent == back and math.copysign(1.0, sent) == math.copysign(1.0, back)
        case Decimal():
            result = str(sent) == str(back)
        case _ if is_dataclass(sent):
            result = all(same(getattr(sent, field.name), getattr(back, field.name)) for field in fields(sent))
        case _:
            result = bool(sent == back)
    return result


def _same_members(sent: Sequence[Any], back: Sequence[Any]) -> bool:
    return len(sent) == len(back) and all(map(same, sent, back))
