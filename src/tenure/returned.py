"""What a handler returned on its way: into bytes that a store keeps, and back into what its annotation says.

Wherever a handler runs, in a worker's loop, thread or child process, ``ResultCodec.encode`` makes the bytes of it, and
the handle restores them.
"""

from functools import cached_property
from typing import Any

import msgspec

from tenure.errors import Undecodable
from tenure.wire.annotations import Forms
from tenure.wire.form import Form, Misfit, TooMuch, Walk
from tenure.wire.writable import unwritable


class Unkeepable(Exception):
    """What was returned cannot be kept; says why, and holds nothing of it."""


class ResultCodec:
    """Encodes and decodes what one job returns, by the rules of arguments (``docs/wire.md``).

    Args:
        hint: the annotation of what is returned, resolved with its extras; ``Any`` when there is none.
    """

    def __init__(self, hint: Any = Any) -> None:
        self._hint = hint
        self._encoder = msgspec.json.Encoder()
        self._parser = msgspec.json.Decoder()

    @cached_property
    def _form(self) -> Form:
        return Forms().form(self._hint)

    def encode(self, value: Any, *, max_bytes: int) -> bytes:
        """Return the JSON of what a handler returned, or raise ``Unkeepable``; nothing else, whatever it is."""
        wire: Any = None
        try:
            wire = self._form.encode(value, Walk())
            data = self._encoder.encode(wire)
        except Misfit as misfit:
            raise Unkeepable(f"{misfit.problem} at result{misfit.path}") from None
        except (TooMuch, RecursionError) as excess:
            raise Unkeepable(str(excess) if isinstance(excess, TooMuch) else "it is nested too deeply") from None
        except ValueError:
            problem, path = unwritable(wire)
            raise Unkeepable(f"{problem} at result{path}") from None
        except Exception as error:  # noqa: BLE001 - it may be of the user's own types, whose code runs here
            raise Unkeepable(f"it cannot be encoded ({type(error).__name__})") from None
        if len(data) > max_bytes:
            raise Unkeepable(f"it is {len(data)} bytes, over the limit of {max_bytes} (QUEUE_MAX_PAYLOAD_BYTES)")
        return data

    def decode(self, data: bytes) -> Any:
        """Return what was returned; raises ``Undecodable``, whose message holds nothing of it."""
        try:
            return self._form.decode(self._parser.decode(data))
        except Misfit as misfit:
            raise Undecodable(f"the result cannot be restored: {misfit.problem} at result{misfit.path}") from None
        except (ValueError, RecursionError):
            raise Undecodable("the result cannot be restored: it is not JSON") from None
