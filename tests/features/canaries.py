"""Secrets that are new in every run, put where secrets live, and looked for wherever something is shown."""

import base64
import logging
import pprint
import secrets
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from rich.pretty import pretty_repr

LOUD = ("", "tenure", "redis", "redis.asyncio", "asyncio", "svcs", "concurrent.futures")
"""Loggers that say all they have to say while canaries are looked for."""


class Canary:
    """One secret. It holds what an URL must percent-encode, and is recognized in whatever form it is repeated."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.core = secrets.token_hex(12)
        self.text = f"c@nary/{self.core}"

    @property
    def quoted(self) -> str:
        """As it stands in a URL."""
        return quote(self.text, safe="")

    def found_in(self, text: str) -> bool:
        encoded = self.text.encode()
        forms = [self.core, self.core[::-1], encoded.hex(), *self._base64()]
        return any(form in text for form in forms)

    def _base64(self) -> Iterator[str]:
        """Each way in which its middle can stand in the base64 of something longer."""
        for shift in range(3):
            yield base64.b64encode(b"\0" * shift + self.core.encode())[4:-4].decode()


class Canaries:
    """The four places that no secret may leave."""

    def __init__(self) -> None:
        self.url = Canary("the password of the URL")
        self.argument = Canary("an argument")
        self.sensitive = Canary("a Sensitive argument")
        self.exception = Canary("the message of an exception")

    def __iter__(self) -> Iterator[Canary]:
        return iter((self.url, self.argument, self.sensitive, self.exception))

    def leaks(self, text: str) -> list[str]:
        """Return from where something got into the text."""
        return [canary.place for canary in self if canary.found_in(text)]

    def check(self, text: str, where: str) -> None:
        """Fail when there is one in the text; the text itself is shown only without it."""
        found = self.leaks(text)
        lines = [line for line in text.splitlines() if self.leaks(line)]
        assert not found, f"{' and '.join(found)} got into {where}:\n" + "\n".join(lines)


def every_form(thing: object) -> str:
    """Return all that Python, and those who print prettily, show of an object."""
    forms = [repr(thing), str(thing), f"{thing}", pprint.pformat(thing), pretty_repr(thing), repr([thing])]
    if isinstance(thing, BaseException):
        forms += [repr(thing.args), *traceback.format_exception(thing)]
    return "\n".join(forms)


class Heard(logging.Handler):
    """Keeps all that a record holds: the message, what it was made of, the traceback, every further field."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = dict(vars(record))
        texts = [self.format(record), record.getMessage(), *map(every_form, fields.values())]
        self.texts.append("\n".join(texts))

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


@contextmanager
def listening() -> Iterator[Heard]:
    """Hear every logger of the process, at DEBUG, for the length of the block."""
    heard = Heard()
    root = logging.getLogger()
    loggers = [logging.getLogger(name) for name in LOUD]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    root.addHandler(heard)
    try:
        yield heard
    finally:
        root.removeHandler(heard)
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
