"""The mark of an argument that nobody may see printed (P12): ``token: Annotated[str, Sensitive]``."""

from typing import Annotated, Any, get_args, get_origin


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
