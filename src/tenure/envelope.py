"""The envelope: the stored form of a job, versioned JSON that no store reads (P13).

The wire form is documented in ``docs/wire.md``, so that other languages can push.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from tenure.errors import InvalidOption, NewerEnvelope, NotEncodable, PayloadTooLarge, Undecodable
from tenure.naming import check_job_id, check_job_name, check_queue
from tenure.sensitive import Discreet

VERSION: Final = 1
MAX_BYTES: Final = 60_000
"""The default limit of an envelope, ``QUEUE_MAX_PAYLOAD_BYTES``."""
MAX_DEPTH: Final = 32
"""How deeply an envelope may be nested, its own two levels included."""
MAX_ATTEMPTS: Final = 1_000_000
MAX_SECONDS: Final = 100 * 365.25 * 24 * 3600
"""The longest timeout and backoff: a hundred years."""


class Envelope(Discreet, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call of one job, and the options that travel with it. None is unset: the claiming worker fills it."""

    v: Annotated[int, Meta(ge=1)]
    id: str
    name: str
    queue: str
    args: msgspec.Raw = msgspec.Raw(b"[]")
    kwargs: msgspec.Raw = msgspec.Raw(b"{}")
    max_attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS)] | None = None
    priority: Annotated[int, Meta(ge=-100, le=100)] = 0
    timeout: Annotated[float, Meta(gt=0, le=MAX_SECONDS)] | None = None
    """Seconds that an attempt may take."""
    backoff: Annotated[float, Meta(ge=0, le=MAX_SECONDS)] | None = None
    """Seconds between attempts, fixed."""
    meta: dict[str, Any] = msgspec.field(default_factory=dict)


class _Version(msgspec.Struct):
    v: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Envelope)
_version = msgspec.json.Decoder(_Version)
_value = msgspec.json.Decoder(msgspec.Raw)
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")


def encode(envelope: Envelope, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the envelope's bytes, or raise ``PayloadTooLarge``, or ``NotEncodable`` for ``meta``."""
    try:
        data = _encoder.encode(envelope)
    except (ValueError, TypeError, RecursionError) as error:
        # Everything else is text of known form, so it is `meta`. The encoder's own message may hold a value.
        raise NotEncodable("meta", "", f"it is not JSON ({type(error).__name__})") from None
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
    except (ValueError, RecursionError) as error:
        # A newer version may well have changed the other fields: it is judged by its version alone.
        if _newer(data):
            raise NewerEnvelope("written by a newer version of tenure") from None
        raise Undecodable(f"not an envelope ({type(error).__name__})") from None
    if envelope.v > VERSION:
        raise NewerEnvelope("written by a newer version of tenure")
    try:
        check_job_id(envelope.id)
        check_job_name(envelope.name)
        check_queue(envelope.queue)
    except InvalidOption:
        raise Undecodable("not an envelope (its id, name or queue cannot be one)") from None
    return envelope


def with_first(args: msgspec.Raw, given: bytes) -> msgspec.Raw:
    """Return an array of arguments with one more before them; both are JSON, and stay as they were written.

    Raises ``Undecodable`` when what is given is not one JSON value.
    """
    try:
        _value.decode(given)
    except (ValueError, RecursionError):
        raise Undecodable("what the job before it returned is not JSON") from None
    rest = bytes(args).strip()
    if not rest.startswith(b"["):
        return args  # no array: it is refused as what it is
    rest = rest[1:].lstrip()
    return msgspec.Raw(b"[" + given + (rest if rest.startswith(b"]") else b"," + rest))


def too_deep(data: bytes) -> bool:
    """Tell whether JSON is nested over the limit, without parsing it (a parser may exhaust the stack).

    What is no JSON is judged as if its brackets were: by as much as a parser could go into it.
    """
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        # Not deeper than it has brackets: the answer for nearly every job, at the price of two counts.
        return False
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(data.split(b'"')[::2])
    brackets = outside.translate(_AS_SQUARE, _NO_BRACKETS)
    # Each pass takes the innermost pairs away, so a document takes as many passes as it has levels.
    for level in range(MAX_DEPTH):
        fewer = brackets.replace(b"[]", b"")
        if len(fewer) == len(brackets):
            return level + fewer.count(b"[") > MAX_DEPTH
        brackets = fewer
    return b"[" in brackets


def _newer(data: bytes) -> bool:
    try:
        return _version.decode(data).v > VERSION
    except (ValueError, RecursionError):
        return False
