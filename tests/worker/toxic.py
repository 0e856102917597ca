"""Exceptions that should end a process, or cannot be stored."""

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import NoReturn


class Toxic(BaseException):
    pass


class TwoArguments(Exception):
    def __init__(self, code: int, detail: str) -> None:
        super().__init__(f"{code}: {detail}")


class HoldsASocket(Exception):
    def __init__(self) -> None:
        super().__init__("a socket and a lock")
        self.socket = socket.socket()
        self.socket.close()
        self.lock = threading.Lock()


class TextRaises(Exception):
    def __str__(self) -> NoReturn:
        raise KeyboardInterrupt


class TextIsHuge(Exception):
    def __str__(self) -> str:
        return "x" * 100_000_000


class PicklingRaises(Exception):
    def __reduce__(self) -> NoReturn:
        raise RuntimeError("no")


def in_a_cycle() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def of_a_local_class() -> BaseException:
    class Local(Exception):
        pass

    return Local("local")


ERRORS: dict[str, Callable[[], BaseException]] = {
    "a BaseException": Toxic,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": lambda: SystemExit(0),
    "GeneratorExit": GeneratorExit,
    "its own CancelledError": asyncio.CancelledError,
    "its own TimeoutError": TimeoutError,
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "a group": lambda: ExceptionGroup("group", [ValueError("one"), TypeError("two")]),
    "a base group": lambda: BaseExceptionGroup("group", [KeyboardInterrupt()]),
    "two required arguments": lambda: TwoArguments(1, "x"),
    "a socket and a lock": HoldsASocket,
    "a text that raises": TextRaises,
    "a text of 100 MB": TextIsHuge,
    "a message of 5 MB": lambda: ValueError("y" * 5_000_000),
    "pickling that raises": PicklingRaises,
    "a cycle of causes": in_a_cycle,
    "a lone surrogate": lambda: ValueError("\ud800 and \0"),
    "a local class": of_a_local_class,
    "a KeyError": lambda: KeyError("missing"),
    "MemoryError": MemoryError,
    "RecursionError": RecursionError,
}
