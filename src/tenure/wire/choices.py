"""One of several: enumerations, literals and unions."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from tenure.wire.form import Form, Misfit, Walk, kind

_VALUE_KINDS: Final = (str, int)


class EnumForm(Form):
    """A member of an enumeration: its value if all values are strings or integers, otherwise its name."""

    __slots__ = ("_by_value", "_cls", "_members")

    def __init__(self, cls: type[Enum]) -> None:
        values = [member.value for member in cls]
        self._cls = cls
        self._by_value = all(type(value) in _VALUE_KINDS for value in values)
        self._members = {(member.value if self._by_value else member.name): member for member in cls}
        kinds = {type(value) for value in values} if self._by_value and values else {str}
        super().__init__(cls.__qualname__, frozenset(kinds))

    def holds(self, value: Any) -> bool:
        """Tell by the exact class, which for enumerations is the members'."""
        return isinstance(value, self._cls)

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Return the member's value or name."""
        if not isinstance(value, self._cls):
            raise self.mismatch(value)
        wire = value.value if self._by_value else value.name
        if wire not in self._members and self._restored(wire) is not value:
            raise Misfit(f"this {self.name} would not come back")
        return wire

    def decode(self, wire: Any) -> Any:
        """Return the member."""
        if type(wire) not in self.kinds:
            raise self.mismatch(wire)
        member = self._members.get(wire)
        if member is None:
            member = self._restored(wire)
        if member is None:
            raise Misfit(f"not a member of {self.name}")
        return member

    def _restored(self, wire: Any) -> Enum | None:
        # Combined flags are members without being listed; `_missing_` may know more, and may raise whatever it likes.
        if not self._by_value:
            return None
        try:
            member: object = self._cls(wire)
        except Exception:  # noqa: BLE001
            return None
        return member if isinstance(member, self._cls) else None


class LiteralForm(Form):
    """One of a list of values, each in its own wire form."""

    __slots__ = ("_choices",)

    def __init__(self, choices: Sequence[tuple[Any, Form]]) -> None:
        walk = Walk()
        self._choices = [(value, form, form.encode(value, walk)) for value, form in choices]
        shown = ", ".join(repr(value) for value, _ in choices)
        super().__init__(f"Literal[{shown}]", frozenset().union(*(form.kinds for _, form in choices)))

    def holds(self, value: Any) -> bool:
        """Tell by value and type: 1 and True are two literals."""
        return any(type(value) is type(choice) and value == choice for choice, _, _ in self._choices)

    def encode(self, value: Any, walk: Walk) -> Any:  # noqa: ARG002
        """Return the wire value of the literal."""
        for choice, _, wire in self._choices:
            if type(value) is type(choice) and value == choice:
                return wire
        raise self._not_among(value)

    def decode(self, wire: Any) -> Any:
        """Return the literal."""
        for choice, form, _ in self._choices:
            if type(wire) in form.kinds:
                try:
                    value = form.decode(wire)
                except Misfit:
                    continue
                if value == choice:
                    return choice
        raise self._not_among(wire)

    def _not_among(self, value: Any) -> Misfit:
        return Misfit(f"expected {self.name}, got another {kind(value)}")


class UnionForm(Form):
    """A union whose members are told apart by their JSON kind alone."""

    __slots__ = ("_by_kind", "_members")

    def __init__(self, members: Sequence[Form]) -> None:
        super().__init__(" | ".join(member.name for member in members), frozenset().union(*(m.kinds for m in members)))
        self._members = tuple(members)
        self._by_kind = {kind_: member for member in reversed(members) for kind_ in member.kinds}
        # `int | float`: both could read an integer, and only the first would give it back as one.
        for member in members:
            if member.kinds == {int}:
                self._by_kind[int] = member

    def holds(self, value: Any) -> bool:
        """Tell whether a member does."""
        return any(member.holds(value) for member in self._members)

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the wire value of the member that the value belongs to."""
        return chosen(self, self._members, value, walk)[1]

    def decode(self, wire: Any) -> Any:
        """Return the value, by the member that reads this kind of JSON."""
        member = self._by_kind.get(type(wire))
        if member is None:
            raise self.mismatch(wire)
        return member.decode(wire)


class TaggedForm(Form):
    """A union whose members share a JSON kind: ``{"name of the member": wire value}``.

    The name only chooses among the members that the annotation lists.
    """

    __slots__ = ("_by_name", "_members")

    def __init__(self, members: Sequence[Form]) -> None:
        super().__init__(" | ".join(member.name for member in members), frozenset({dict}))
        self._members = tuple(members)
        self._by_name = {member.name: member for member in members}

    def holds(self, value: Any) -> bool:
        """Tell whether a member does."""
        return any(member.holds(value) for member in self._members)

    def encode(self, value: Any, walk: Walk) -> Any:
        """Return the object of one member."""
        walk.enter(1)
        member, wire = chosen(self, self._members, value, walk)
        walk.leave()
        return {member.name: wire}

    def decode(self, wire: Any) -> Any:
        """Return the value that the tag's member reads."""
        if type(wire) is not dict or len(wire) != 1:
            raise Misfit(f"expected an object of one member, whose name is one of {self.name}, got {kind(wire)}")
        ((name, inner),) = wire.items()
        member = self._by_name.get(name)
        if member is None:
            raise Misfit(f"expected an object of one member, whose name is one of {self.name}")
        return member.decode(inner)


def overlap(members: Sequence[Form]) -> bool:
    """Tell whether two members read the same JSON kind, so that the kind does not tell them apart."""
    seen: set[type] = set()
    for member in members:
        # An integer for a float is a courtesy: an `int` beside it has the better claim.
        claimed = (
            member.kinds - {int} if float in member.kinds and len(member.kinds) == len({int, float}) else member.kinds
        )
        if seen & claimed:
            return True
        seen |= claimed
    return False


def chosen(union: Form, members: Sequence[Form], value: Any, walk: Walk) -> tuple[Form, Any]:
    """Return the member that takes the value, and the wire value: first those of its exact type."""
    depth = walk.depth
    misfits: list[Misfit] = []
    for member in members:
        if member.holds(value):
            try:
                return member, member.encode(value, walk)
            except Misfit as misfit:
                misfits.append(misfit)
                walk.depth = depth
    if len(misfits) == 1:
        raise misfits[0]  # it belongs here, and the path inside it is worth telling
    for member in members:
        try:
            return member, member.encode(value, walk)
        except Misfit:
            walk.depth = depth
    raise Misfit(f"expected {union.name}, got {kind(value)}")
