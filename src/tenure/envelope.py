"""The envelope: the stored form of a job, versioned JSON that no store reads (P13).

The wire form is documented in ``docs/wire.md``, so that other languages can push.
"""

import re
from typing import Any, Final

import msgspec

from tenure.errors import NewerEnvelope, PayloadTooLarge, Undecodable

VERSION: Final = 1
MAX_BYTES: Final = 60_000
"""The default limit of an envelope, ``QUEUE_MAX_PAYLOAD_BYTES``."""
MAX_DEPTH: Final = 32
"""How deeply an envelope may be nested, its own two levels included."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call of one job, and the options that travel with it. None is unset: the claiming worker fills it."""

    v: int
    id: str
    name: str
    queue: str
    args: msgspec.Raw = msgspec.Raw(b"[]")
    kwargs: msgspec.Raw = msgspec.Raw(b"{}")
    max_attempts: int | None = None
    priority: int = 0
    timeout: float | None = None
    """Seconds that an attempt may take."""
    backoff: float | None = None
    """Seconds between attempts, fixed."""
    meta: dict[str, Any] = msgspec.field(default_factory=dict)


class _Version(msgspec.Struct):
    v: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Envelope)
_version = msgspec.json.Decoder(_Version)
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def encode(envelope: Envelope, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the envelope's bytes, or raise ``PayloadTooLarge``."""
    data = _encoder.encode(envelope)
    if len(data) > max_bytes:
        raise PayloadTooLarge(
            f"the encoded job is {len(data)} bytes, over the limit of {max_bytes} (QUEUE_MAX_PAYLOAD_BYTES); "
            "nothing was sent; store the data elsewhere and push a reference to it"
        )
    if too_deep(data):
        raise PayloadTooLarge(f"the arguments are nested more deeply than {MAX_DEPTH} levels; nothing was sent")
    return data


def decode(data: bytes) -> Envelope:
    """Return the envelope, or raise ``NewerEnvelope`` or ``Undecodable``. Both are silent about the content."""
    if too_deep(data):
        raise Undecodable(f"nested more deeply than {MAX_DEPTH} levels")
    try:
        envelope = _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        # A newer version may well have changed the other fields: it is judged by its version alone.
        if _newer(data):
            raise NewerEnvelope("written by a newer version of tenure") from None
        raise Undecodable(f"not an envelope ({type(error).__name__})") from None
    if envelope.v > VERSION:
        raise NewerEnvelope("written by a newer version of tenure")
    if envelope.v < 1:
        raise Undecodable("not an envelope (version below 1)")
    return envelope


def too_deep(data: bytes) -> bool:
    """Tell whether JSON is nested over the limit, without parsing it (a parser may exhaust the stack)."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        # Not deeper than it has brackets: the answer for nearly every job, at the price of two counts.
        return False
    level = 0
    for match in _STRUCTURE.finditer(data):
        mark = data[match.start()]
        if mark in b"[{":
            level += 1
            if level > MAX_DEPTH:
                return True
        elif mark in b"]}":
            level -= 1
    return False


def _newer(data: bytes) -> bool:
    try:
        return _version.decode(data).v > VERSION
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
