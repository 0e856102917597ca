"""What a form is: one annotation's way onto the wire and back."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, Final

from tenure.envelope import MAX_DEPTH

INNER_DEPTH: Final = MAX_DEPTH - 2
"""How deeply one argument may be nested: the envelope and its list of arguments are the other two levels."""
MAX_MEMBERS: Final = 5_000_000
"""How many values one call may hold. Lists that share a list can stand for more than any memory holds."""
MAX_DIGITS: Final = 4_300
"""The longest integer, a minus sign included: what the JSON parser reads, and Python's own conversions."""
INTEGER_LIMIT: Final = 10**MAX_DIGITS
NEGATIVE_LIMIT: Final = -(10 ** (MAX_DIGITS - 1))


class Misfit(Exception):
    """A value and its annotation do not fit. Neither the problem nor the path holds anything of the value."""

    def __init__(self, problem: str, path: str = "") -> None:
        self.problem: str = problem
        self.path: str = path
        super().__init__(problem)

    def under(self, part: str) -> "Misfit":
        """Return this misfit, seen from one container further out."""
        self.path = part + self.path
        return self


class TooMuch(Exception):
    """A value is nested too deeply, or has too many members."""


class Walk:
    """How far the encoding of one call has gone into its values."""

    __slots__ = ("_left", "depth")

    def __init__(self) -> None:
        self.depth: int = 0
        """Containers entered and not left. After a misfit nobody leaves them; who goes on puts it back."""
        self._left = MAX_MEMBERS

    def enter(self, members: int) -> None:
        """Go into a container, or raise ``TooMuch``."""
        self.depth += 1
        if self.depth > INNER_DEPTH:
            raise TooMuch(f"nested more deeply than {INNER_DEPTH} levels")
        self._left -= members
        if self._left < 0:
            raise TooMuch(f"more than {MAX_MEMBERS:,} values")

    def leave(self) -> None:
        """Come out of a container."""
        self.depth -= 1


class Form(ABC):
    """One annotation's way onto the wire and back.

    The wire value of ``encode`` is what the JSON encoder writes: JSON values, and those types of the standard library
    that it knows. That of ``decode`` is what the JSON parser reads.

    Args:
        name: the annotation, as messages and the tags of unions show it.
        kinds: what the parser may read for it: of ``NoneType bool int float str list dict``.
    """

    __slots__ = ("kinds", "name")

    def __init__(self, name: str, kinds: frozenset[type]) -> None:
        self.name: str = name
        self.kinds: frozenset[type] = kinds

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Tell whether the value is exactly of the annotated type, seen from outside."""

    @abstractmethod
    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the wire value, or raise ``Misfit``: what is returned comes back equal, and of an equal type."""

    @abstractmethod
    def decode(self, wire: Any) -> Any:
        """Return the value, or raise ``Misfit``."""

    def goes_as_is(self, values: Collection[Any]) -> bool:  # noqa: ARG002
        """Tell quickly whether every value is its own wire value. False may also mean that nobody looked."""
        return False

    def comes_as_is(self, wires: Collection[Any]) -> bool:  # noqa: ARG002
        """Tell quickly whether every wire value is already the value. False may also mean that nobody looked."""
        return False

    def mismatch(self, value: Any) -> Misfit:
        """Return the misfit of a value of another type."""
        return Misfit(f"expected {self.name}, got {kind(value)}")


def kind(value: Any) -> str:
    """Return the name of the value's type, for messages."""
    cls = type(value)
    return "None" if value is None else str(cls.__qualname__)
