"""An exception as data: what the failed store keeps of it, whatever the exception does to prevent that.

Everything here is bounded and nothing here raises: an exception is the user's own code, its ``__str__`` included.
"""

import linecache
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from tenure.queue import Failure
from tenure.worker.judgement import HandlerRaised

MESSAGE_LIMIT: Final = 1_000
TRACEBACK_LIMIT: Final = 20_000
FRAMES: Final = 40
CAUSES: Final = 8
MEMBERS: Final = 5
"""Exceptions of a group that are shown."""
DEPTH: Final = 3
"""How deeply groups inside groups are shown."""

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"


def describe(error: BaseException, reason: str = "exception") -> Failure:
    """Return the exception as a failure. Never raises."""
    return Failure(
        reason=reason,
        type=_bounded(type_name(error), MESSAGE_LIMIT),
        message=message(error),
        traceback=_bounded("\n".join(_lines(error, depth=0)), TRACEBACK_LIMIT),
    )


def type_name(error: BaseException) -> str:
    """Return the class's name, with its module unless it is a builtin. Never raises."""
    kind = type(error)
    try:
        module, name = str(kind.__module__), str(kind.__qualname__)
    except BaseException:  # noqa: BLE001 - a metaclass may do anything
        return "(a class without a name)"
    # A class body may set __module__ to anything.
    return name if module == "builtins" else f"{module}.{name}"


def message(error: BaseException) -> str:
    """Return the exception's text, cut and safe to store. Never raises."""
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - a text method may raise anything, SystemExit included
        return f"(its text cannot be had: {type_name(second)})"
    return _bounded(text, MESSAGE_LIMIT)


def _bounded(text: str, limit: int) -> str:
    # Cut first: the text may be of any length. str.__getitem__: a subclass of str may have an opinion of its own.
    head = str.__getitem__(text, slice(0, limit + 1))
    # Lone surrogates have no UTF-8 form; NUL has no place in some stores' text.
    safe = head.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
    if len(safe) <= limit:
        return safe
    mark = " … (cut)"
    return safe[: limit - len(mark)] + mark


def _lines(error: BaseException, depth: int) -> Iterator[str]:
    """Yield the traceback: earlier exceptions first, as Python prints them."""
    chain = list(_chain(error))
    for link, joint in reversed(chain):
        yield from _one(link, depth)
        if joint:
            yield ""
            yield joint
            yield ""


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yield the exception and what led to it, each with the sentence that joins it to the one yielded before."""
    seen: set[int] = set()
    current: BaseException | None = error
    joint = ""
    # Causes can form a cycle, and a long retry loop can chain thousands.
    while current is not None and id(current) not in seen and len(seen) < CAUSES:
        seen.add(id(current))
        yield current, joint
        if current.__cause__ is not None:
            current, joint = current.__cause__, _CAUSE
        elif not current.__suppress_context__:
            current, joint = current.__context__, _CONTEXT
        else:
            current = None


def _one(error: BaseException, depth: int) -> Iterator[str]:
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):"
        yield from _frames(error.__traceback__)
    yield f"{type_name(error)}: {message(error)}"
    if isinstance(error, HandlerRaised) and error.judgement.failure is not None:
        yield "In the process of the handler:"
        yield error.judgement.failure.traceback
    if isinstance(error, BaseExceptionGroup):
        try:
            members = tuple(error.exceptions)
        except BaseException:  # noqa: BLE001 - a subclass may override the attribute
            return
        for number, member in enumerate(members[:MEMBERS], 1):
            yield f"  +-- {number} of {len(members)}"
            if depth >= DEPTH:
                yield f"  | {type_name(member)}: {message(member)}"
            else:
                yield from (f"  | {line}" for line in _lines(member, depth + 1))


def _frames(trace: TracebackType) -> Iterator[str]:
    frames: list[tuple[str, int, str]] = []
    total = 0
    current: TracebackType | None = trace
    while current is not None:
        total += 1
        code = current.tb_frame.f_code
        frames.append((code.co_filename, current.tb_lineno, code.co_name))
        if len(frames) > FRAMES:  # the innermost frames tell most
            del frames[0]
        current = current.tb_next
    if total > len(frames):
        yield f"  … {total - len(frames)} outer frames left out"
    for filename, line, name in frames:
        yield f'  File "{filename}", line {line}, in {name}'
        source = linecache.getline(filename, line).strip()
        if source:
            yield f"    {source[:200]}"


def stack_of(frame_lines: traceback.StackSummary) -> str:
    """Return a stack as one bounded text of places, without values."""
    return " < ".join(f"{entry.name} ({entry.filename}:{entry.lineno})" for entry in reversed(frame_lines[-12:]))
