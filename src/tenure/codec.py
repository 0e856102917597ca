"""Arguments on their way: from the caller's values to the envelope's JSON, and back into the job's parameters.

The annotations of the job's own parameters say how each argument is restored; nothing in stored data does. What would
not come back equal is refused at the push, naming the argument and the path inside it, never the value.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tenure.errors import InvalidOption, NotEncodable, PayloadTooLarge, Undecodable
from tenure.sensitive import is_sensitive
from tenure.wire.annotations import Forms
from tenure.wire.form import Form, Misfit, TooMuch, Walk
from tenure.wire.plain import key_path
from tenure.wire.signature import Signature, expanded
from tenure.wire.writable import unwritable

_NO_ARGS: Final = msgspec.Raw(b"[]")
_NO_KWARGS: Final = msgspec.Raw(b"{}")
_HIDDEN: Final = "***"
_sorted: Final = msgspec.json.Encoder(order="sorted")


class _Plan(NamedTuple):
    """The forms of a signature."""

    positional: tuple[Form, ...]
    named: Mapping[str, Form]
    rest: Form
    named_rest: Form


class ArgumentCodec:
    """Encodes and decodes the arguments of one job.

    Args:
        parameters: the job's own parameters, without the injected ones.
        hints: their annotations, resolved with their extras (``typing.get_type_hints(…, include_extras=True)``).
    """

    __slots__ = ("_encoder", "_hints", "_parser", "_plan", "_sensitive", "_signature")

    def __init__(self, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        parameters, hints = expanded(parameters, hints)
        self._signature = Signature(parameters)
        self._hints = {one.name: hints.get(one.name, Any) for one in parameters}
        self._sensitive = frozenset(name for name, hint in self._hints.items() if is_sensitive(hint))
        self._plan: _Plan | None = None
        self._encoder = msgspec.json.Encoder()
        self._parser = msgspec.json.Decoder()

    def encode(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, behind: int = 0
    ) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Return the JSON of both: an array and an object.

        Args:
            args: the positional arguments.
            kwargs: the named ones.
            behind: how many positional arguments will come before them, from elsewhere.

        Raises:
            InvalidOption: the arguments do not fit the signature.
            NotEncodable: an argument has no wire form, or does not fit its annotation.
            PayloadTooLarge: an argument is nested too deeply, or has too many members.
        """
        problem = self._signature.problem(behind + len(args), kwargs, naming=True)
        if problem:
            raise InvalidOption(f"{problem}; nothing was sent")
        plan = self._plan or self._planned()
        walk = Walk()
        listed: list[Any] = []
        named: dict[str, Any] = {}
        name = None
        try:
            forms = plan.positional[behind:]
            for form, value in zip(forms, args, strict=False):
                listed.append(form.encode(value, walk))
            for value in args[len(forms) :]:
                listed.append(plan.rest.encode(value, walk))  # noqa: PERF401  (its length names the argument)
            for name, value in kwargs.items():
                named[name] = plan.named.get(name, plan.named_rest).encode(value, walk)
        except Misfit as misfit:
            done = behind + len(listed) if name is None else len(named)
            raise NotEncodable(*self._place(name, done, misfit.path), misfit.problem) from None
        except (TooMuch, RecursionError) as excess:
            argument, _ = self._place(name, behind + len(listed), "")
            what = excess if isinstance(excess, TooMuch) else "nested too deeply"
            raise PayloadTooLarge(f"argument {argument!r} is {what}; nothing was sent") from None
        try:
            return (
                msgspec.Raw(self._encoder.encode(listed)) if listed else _NO_ARGS,
                msgspec.Raw(self._encoder.encode(named)) if named else _NO_KWARGS,
            )
        except ValueError:
            raise self._unwritable(listed, named, behind) from None

    def decode(self, args: msgspec.Raw, kwargs: msgspec.Raw) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments to call the job with.

        Raises:
            Undecodable: this is no JSON, or does not fit the job's parameters. The message holds nothing of it.
        """
        try:
            listed = self._parser.decode(args)
            named = self._parser.decode(kwargs)
        except (ValueError, RecursionError):
            raise Undecodable("the arguments are not JSON") from None
        if type(listed) is not list or type(named) is not dict:
            raise Undecodable("the arguments are not an array and an object")
        problem = self._signature.problem(len(listed), named, naming=False)
        if problem:
            raise Undecodable(f"the arguments do not fit the job: {problem}")
        plan = self._plan or self._planned()
        values: list[Any] = []
        restored: dict[str, Any] = {}
        name = None
        try:
            for form, wire in zip(plan.positional, listed, strict=False):
                values.append(form.decode(wire))
            for wire in listed[len(plan.positional) :]:
                values.append(plan.rest.decode(wire))  # noqa: PERF401  (its length names the argument)
            for name, wire in named.items():
                restored[name] = plan.named.get(name, plan.named_rest).decode(wire)
        except Misfit as misfit:
            done = len(values) if name is None else len(restored)
            where, path = self._place(name, done, misfit.path)
            raise Undecodable(f"argument {where!r} cannot be restored: {misfit.problem} at {where}{path}") from None
        except RecursionError:
            raise Undecodable("the arguments are nested too deeply") from None
        return tuple(values), restored

    def canonical(self, args: msgspec.Raw, kwargs: msgspec.Raw) -> bytes:
        """Return encoded arguments written in one way, whether they were given by position or by name.

        Equal arguments are equal bytes, but for a default: one that is spelled out is an argument, and one that is
        left out is none.
        """
        listed, named = self._parser.decode(args), self._parser.decode(kwargs)
        places = self._signature.positional
        nameless: list[Any] = []
        for place, value in enumerate(listed):
            if place < len(places) and places[place] in self._signature.named:
                named[places[place]] = value
            else:
                nameless.append(value)
        return _sorted.encode([nameless, named])

    def shown(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Return the arguments' names and types, for a repr: ``email=<str>, token=***``. Never a value (P12)."""
        positional, rest = self._signature.positional, self._signature.rest
        parts = [self._one(name, value) for name, value in zip(positional, args, strict=False)]
        if len(args) > len(positional):
            parts.append(f"*{rest or '…'}=<{len(args) - len(positional)} more>")
        parts += [self._one(name, value) for name, value in kwargs.items() if name in self._signature.named]
        more = sum(name not in self._signature.named for name in kwargs)
        if more:
            parts.append(f"**{self._signature.named_rest or '…'}=<{more} more>")
        return ", ".join(parts)

    def _one(self, name: str, value: Any) -> str:
        return f"{name}={_HIDDEN if name in self._sensitive else f'<{type(value).__qualname__}>'}"

    def _planned(self) -> _Plan:
        # Not before the first use: only then is every module imported that the annotations speak of. Two threads may
        # both make it; the two are equal.
        forms, signature = Forms(), self._signature
        self._plan = _Plan(
            positional=tuple(forms.form(self._hints[name]) for name in signature.positional),
            named={name: forms.form(self._hints[name]) for name in signature.named},
            rest=forms.form(self._hints.get(signature.rest or "", Any)),
            named_rest=forms.form(self._hints.get(signature.named_rest or "", Any)),
        )
        return self._plan

    def _place(self, name: str | None, done: int, path: str) -> tuple[str, str]:
        """Return the argument, and the path inside it, at which the work stopped."""
        signature = self._signature
        if name is not None:
            # The names in **kwargs are the caller's data: they are counted, not named.
            return (name, path) if name in signature.named else (signature.named_rest or "", key_path(done) + path)
        if done < len(signature.positional):
            return signature.positional[done], path
        return signature.rest or "", f"[{done - len(signature.positional)}]{path}"

    def _unwritable(self, listed: list[Any], named: dict[str, Any], behind: int) -> NotEncodable:
        """Return the error that names what the JSON encoder refused."""
        wires: list[tuple[str | None, int, Any]] = [(None, done, wire) for done, wire in enumerate(listed, behind)]
        for done, (name, wire) in enumerate(named.items()):
            wires += [(name, done, name), (name, done, wire)]
        argument, done, refused = next(each for each in wires if not self._writes(each[2]))
        problem, path = unwritable(refused)
        return NotEncodable(*self._place(argument, done, path), problem)

    def _writes(self, wire: Any) -> bool:
        try:
            self._encoder.encode(wire)
        except ValueError:
            return False
        return True
