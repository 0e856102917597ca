"""What a worker and its child processes say to each other: frames of msgpack over a socket pair of their own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from tenure.queue import Lease
from tenure.sensitive import Discreet
from tenure.worker.judgement import Judgement, NoWireForm, raised

LONGEST: Final = 4 * 1024 * 1024
"""Bytes of a frame that a child may send: a result's limit, and room for the rest."""
RESULT_LIMIT: Final = 1024 * 1024
"""Bytes of the longest result that comes out of a process."""


class Load(msgspec.Struct, frozen=True, tag=True):
    """The first order: get ready."""

    app: str
    """The application, as ``module:attribute``."""
    modules: Sequence[str]
    """Where the jobs stand."""
    jobs: Sequence[str]
    """Their names: all of them must be there then."""
    prepare: Sequence[str] = ()
    """What to call before anything is imported, as ``module:function``, and its arguments."""
    connection: str = "default"
    """Where the jobs come from."""


class Run(Discreet, frozen=True, tag=True):
    """Run the job of a lease, and answer with ``Began``, then with ``Returned`` or ``Raised``."""

    number: int
    lease: Lease
    name: str
    max_attempts: int
    trace: Mapping[str, str]
    """The context that the handler goes on from."""


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Let the handler see that it should stop."""

    number: int


class End(msgspec.Struct, frozen=True, tag=True):
    """End in order."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The answer to ``Load``; the problem is empty when there is none."""

    problem: str = ""


class Began(msgspec.Struct, frozen=True, tag=True):
    """The job is this process's now."""

    number: int


class Told(msgspec.Struct, frozen=True, tag=True):
    """How far the handler has come; at any time between ``Began`` and the answer."""

    number: int
    fraction: float
    note: str


class Returned(Discreet, frozen=True, tag=True):
    """The handler has returned."""

    number: int
    seen: bool
    """Whether it looked at ``current().cancelled`` after that was set."""
    result: bytes = b""
    problem: str = ""
    """Why there is no result, if there is none."""


class Raised(Discreet, frozen=True, tag=True):
    """The handler has raised."""

    number: int
    seen: bool
    judgement: Judgement


Order = Load | Run | Cancel | End
Answer = Returned | Raised
Word = Ready | Began | Told | Answer
M = TypeVar("M")


def framed(message: Order | Word) -> bytes:
    """Return the frame of a message."""
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(4, "big") + data


def value_of(answer: Answer, restore: Callable[[bytes], Any]) -> Any:
    """Return what a handler returned, or raise what stands for what it raised."""
    if isinstance(answer, Raised):
        raise raised(answer.judgement)
    return NoWireForm(answer.problem) if answer.problem else restore(answer.result)


class Frames(Generic[M]):
    """Turns what was read into messages of one kind."""

    def __init__(self, kind: Any, longest: int | None = None) -> None:
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(kind)
        self._longest = longest
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[M]:
        """Yield the messages that are whole now; raises ``ValueError`` at the first that is none."""
        self._rest += data
        while len(self._rest) >= 4:
            length = int.from_bytes(self._rest[:4], "big")
            if self._longest is not None and length > self._longest:
                raise ValueError("a frame is too long")
            if len(self._rest) < 4 + length:
                return
            frame = bytes(self._rest[4 : 4 + length])
            del self._rest[: 4 + length]
            yield self._decoder.decode(frame)
