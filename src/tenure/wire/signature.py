"""Which arguments a job takes: the rules of a Python call, without the cost of ``inspect.Signature.bind``."""

import inspect
import typing
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Unpack, get_args, get_origin

from tenure.naming import shown

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Signature:
    """The names of a job's own parameters, and which of them must be given. Defaults are never sent.

    ``rest`` and ``named_rest`` are the names of ``*args`` and ``**kwargs``, where the job has them.
    """

    __slots__ = ("_indexes", "_required", "_required_first", "named", "named_rest", "positional", "rest")

    def __init__(self, parameters: Sequence[inspect.Parameter]) -> None:
        self.positional: tuple[str, ...] = tuple(one.name for one in parameters if one.kind in _POSITIONAL)
        self.named: frozenset[str] = frozenset(one.name for one in parameters if one.kind in _NAMED)
        self.rest: str | None = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), None)
        self.named_rest: str | None = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), None)
        self._indexes = {name: index for index, name in enumerate(self.positional)}
        self._required = tuple(
            one.name for one in parameters if one.default is one.empty and one.kind in {*_POSITIONAL, *_NAMED}
        )
        self._required_first = sum(name in self._indexes for name in self._required)

    def problem(self, count: int, names: Collection[str], *, naming: bool) -> str:
        """Return what is wrong with so many positional and these named arguments, or nothing.

        Args:
            count: how many positional arguments there are.
            names: the names of the others.
            naming: whether unexpected names may be repeated; those of stored records may not.
        """
        if not names and len(self._required) == self._required_first <= count <= len(self.positional):
            return ""
        if count > len(self.positional) and self.rest is None:
            return f"takes at most {len(self.positional)} positional arguments, got {count}"
        for name in names:
            if name not in self.named:
                if self.named_rest is None:
                    return f"unexpected argument {shown(name)}" if naming else "an unexpected argument"
            elif self._indexes.get(name, count) < count:
                return f"argument {name!r} is given twice"
        for name in self._required:
            if self._indexes.get(name, count) >= count and (name not in names or name not in self.named):
                return f"argument {name!r} is missing"
        return ""


def expanded(
    parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """Return the parameters and annotations with ``**kwargs: Unpack[TypedDict]`` as the parameters that it means."""
    plain, all_hints = list(parameters), dict(hints)
    last = plain[-1] if plain else None
    if last is None or last.kind is not last.VAR_KEYWORD or get_origin(hints.get(last.name)) is not Unpack:
        return plain, all_hints
    (options,) = get_args(all_hints.pop(last.name))
    keys = typing.get_type_hints(options, include_extras=True)
    plain.pop()
    for name, hint in keys.items():
        default = last.empty if name in options.__required_keys__ else None
        plain.append(inspect.Parameter(name, last.KEYWORD_ONLY, default=default))
        all_hints[name] = hint
    return plain, all_hints
