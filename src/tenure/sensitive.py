"""What nobody may see printed (P12): arguments that are marked, ``token: Annotated[str, Sensitive]``, and payloads."""

from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

HIDDEN: Final = frozenset(
    {"args", "definition", "envelope", "input", "kwargs", "message", "meta", "result", "token", "traceback", "unique"}
)
"""Fields of records whose values are a user's, or settle a lease: their presence is shown, and nothing of them."""


class Sensitive:
    """Marks an argument whose value is never shown, wherever calls are listed: ``Annotated[str, Sensitive]``.

    The class itself and an instance of it (``Sensitive()``) mean the same. It hides the argument where tenure shows
    calls; it does not encrypt what is stored.
    """

    __slots__ = ()


def is_sensitive(hint: Any) -> bool:
    """Tell whether an annotation, resolved with its extras, carries the mark, at its top or inside a union."""
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        return any(extra is Sensitive or isinstance(extra, Sensitive) for extra in extras) or is_sensitive(inner)
    return any(is_sensitive(part) for part in get_args(hint) if get_origin(part) is not None)


class Discreet(msgspec.Struct, frozen=True):
    """The root of records that hold what nobody may see printed: their ``repr`` names it, with its size at most."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, _veiled(name, getattr(self, name))) for name in self.__struct_fields__]


class _Veil:
    """Stands for a value in a ``repr``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _veiled(name: str, value: Any) -> Any:
    if name not in HIDDEN or value is None:
        return value
    return _Veil(f"<{len(value)} bytes>" if isinstance(value, bytes) else "<hidden>")
