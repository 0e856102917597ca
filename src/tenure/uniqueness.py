"""What a unique job is unique by: a digest of its call, or of a text of the caller's.

A store compares digests alone and never sees what they were made of, ``Sensitive`` arguments among it. The digest is
no secret: who has it can try out what it may have been made of, as who can read the store can read the job itself.
"""

import hashlib
from typing import Final

from tenure.call import Call

SIZE: Final = 16
"""Bytes of a digest: 2**64 jobs until two of them share one by chance."""


def unique_text(call: Call[object]) -> str:
    """Return ``Push.unique`` for a call: '' for one that is like others.

    With ``unique=True`` calls of one job with equal arguments share it, however they are written; with a text all
    calls of whatever job with that text.
    """
    wanted = call.overrides.unique
    if wanted is None:
        wanted = call.definition.options.unique
    if isinstance(wanted, str):
        # A lone surrogate has no UTF-8 form, and is another text than any that has one.
        return _digest(b"text", wanted.encode(errors="surrogatepass"))
    if not wanted:
        return ""
    definition = call.definition
    return _digest(b"call", definition.name.encode() + b"\0" + definition.codec.canonical(call.args, call.kwargs))


def _digest(kind: bytes, data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=SIZE, person=kind).hexdigest()
