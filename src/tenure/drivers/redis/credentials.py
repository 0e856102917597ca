"""Credentials that may change: read anew for every connection that is made, never kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from redis.credentials import CredentialProvider

from tenure.drivers.redis.trouble import Unsent

Credentials = Callable[[], str | tuple[str, str]]
"""Returns a password, or a user's name and a password. Called from any thread; it may block."""


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

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Return the password alone, or the user's name and the password; raises ``Unsent``."""
        try:
            given = self._credentials()
        except Exception as error:
            # Whose words these are is not known, so they are not repeated.
            raise Unsent(f"the credentials could not be read ({type(error).__name__}); nothing was sent") from error
        username, password = ("", given) if isinstance(given, str) else given
        return (username, password) if username else (password,)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """Do the same without blocking the event loop."""
        return await asyncio.to_thread(self.get_credentials)
