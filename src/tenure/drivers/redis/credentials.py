"""Credentials that may change: read anew for every connection that is made, never kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redis.credentials import CredentialProvider

from tenure.drivers.redis.trouble import Unsent

Credentials = Callable[[], str | tuple[str, str] | None]
"""Returns a password, or a user's name and a password; None when there are others. Called from any thread; it may
block."""


class PasswordFile:
    """A password in a file, as orchestrators mount it; a line's end behind it is not a part of it."""

    def __init__(self, username: str, path: Path) -> None:
        self._username = username
        self._path = path

    def __call__(self) -> tuple[str, str]:
        """Return the user's name and the password; raises ``OSError`` and ``UnicodeDecodeError``."""
        return self._username, self._path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")


class Provider(CredentialProvider):
    """Hands them to redis-py."""

    def __init__(self, *credentials: Credentials) -> None:
        """Take what is asked in turn."""
        self._credentials = credentials

    # redis-py says less than it takes: nothing at all is right, too, and then it does not ask to be let in.
    def get_credentials(self) -> Any:
        """Return the password alone, the user's name and the password, or nothing; raises ``Unsent``."""
        try:
            given = next((found for found in (ask() for ask in self._credentials) if found is not None), None)
        except Exception as error:
            # Whose words these are is not known, so they are not repeated.
            raise Unsent(f"the credentials could not be read ({type(error).__name__}); nothing was sent") from error
        if given is None:
            return ()
        username, password = ("", given) if isinstance(given, str) else given
        return (username, password) if username else (password,)

    async def get_credentials_async(self) -> Any:
        """Do the same without blocking the event loop."""
        return await asyncio.to_thread(self.get_credentials)
