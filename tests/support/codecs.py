"""Codecs of functions, as a job makes them."""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from tenure.codec import ArgumentCodec


def codec_of(function: Callable[..., Any]) -> ArgumentCodec:
    """Return the codec of a function's parameters."""
    parameters = list(inspect.signature(function).parameters.values())
    return ArgumentCodec(parameters, get_type_hints(function, include_extras=True))


def codec_for(hint: Any) -> ArgumentCodec:
    """Return the codec of one parameter, ``value``, with this annotation."""
    return ArgumentCodec([inspect.Parameter("value", inspect.Parameter.POSITIONAL_OR_KEYWORD)], {"value": hint})


def there_and_back(hint: Any, value: Any) -> Any:
    """Return what a job gets whose parameter has this annotation, when it is pushed with this value."""
    codec = codec_for(hint)
    (back,), named = codec.decode(*codec.encode((value,), {}))
    assert named == {}
    return back


def wire_of(hint: Any, value: Any) -> str:
    """Return the JSON of one argument."""
    args, _ = codec_for(hint).encode((value,), {})
    return bytes(args)[1:-1].decode()


def from_wire(hint: Any, wire: str | bytes) -> Any:
    """Return what a job gets whose parameter has this annotation, when the store holds this JSON for it."""
    text = wire.encode() if isinstance(wire, str) else wire
    (back,), _ = codec_for(hint).decode(msgspec.Raw(b"[" + text + b"]"), msgspec.Raw(b"{}"))
    return back
