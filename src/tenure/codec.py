"""Arguments on their way: from the caller's values to the envelope's JSON, and back into the job's parameters.

The annotations of the job's own parameters say how each argument is restored; nothing in stored data does. What would
not come back equal is refused at the push, naming the argument and the path inside it, never the value.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tenure.errors import InvalidOption, NotEncodable, PayloadTooLarge, Undecodable
from tenure.naming import shown as harmless
from tenure.sensitive import is_sensitive
from tenure.wire.annotations import Forms
from tenure.wire.form import Form, Misfit, TooMuch, Walk

_EMPTY_ARGS: Final = msgspec.Raw(b"[]")
_EMPTY_KWARGS: Final = msgspec.Raw(b"{}")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class _Plan(NamedTuple):
    """The forms of a signature, made at first use: by then every module that annotations speak of is imported."""

    positional: tuple[tuple[str, Form], ...]
    by_name: Mapping[str, Form]
    rest: tuple[str, Form] | None
    named_rest: Form | None


class ArgumentCodec:
    """Encodes and decodes the arguments of one job.

    Args:
        parameters: the job's own parameters, without the injected ones.
        hints: their annotations, resolved with their extras (``typing.get_type_hints(…, include_extras=True)``).
    """

    def __init__(self, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        self._parameters = tuple(parameters)
        self._hints = dict(hints)
        self._plan: _Plan | None = None
        self._order = {
            parameter.name: index for index, parameter in enumerate(parameters) if parameter.kind in _POSITIONAL
        }
        self._required = tuple(
            parameter.name
            for parameter in parameters
            if parameter.default is parameter.empty and parameter.kind in (*_POSITIONAL, parameter.KEYWORD_ONLY)
        )
        self._required_first = sum(name in self._order for name in self._required)
        self._encoder = msgspec.json.Encoder()
        self._parser = msgspec.json.Decoder()

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Return the JSON of both.

        Raises:
            InvalidOption: the arguments do not fit the signature.
            NotEncodable: an argument has no wire form, or does not fit its annotation.
            PayloadTooLarge: an argument is nested too deeply.
        """
        plan = self._plan or self._planned()
        problem = self._misfit(len(args), kwargs)
        if problem:
            raise InvalidOption(f"{problem}; nothing was sent")
        walk = Walk()
        name = ""
        try:
            listed = []
            for (name, form), value in zip(plan.positional, args, strict=False):
                listed.append(form.encode(value, walk))
            if plan.rest is not None and len(args) > len(listed):
                name, form = plan.rest
                for value in args[len(listed) :]:
                    listed.append(form.encode(value, walk))
            named = {}
            for name, value in kwargs.items():
                named[name] = (plan.by_name.get(name) or plan.named_rest).encode(value, walk)
        except Misfit as misfit:
            raise NotEncodable(name, misfit.path, misfit.problem) from None
        except TooMuch as excess:
            raise PayloadTooLarge(f"argument {name!r} is {excess}; nothing was sent") from None
        except RecursionError:
            raise PayloadTooLarge(f"argument {name!r} is nested too deeply; nothing was sent") from None
        try:
            return (
                msgspec.Raw(self._encoder.encode(listed)) if listed else _EMPTY_ARGS,
                msgspec.Raw(self._encoder.encode(named)) if named else _EMPTY_KWARGS,
            )
        except (ValueError, RecursionError):
            raise self._unwritable(listed, named) from None
