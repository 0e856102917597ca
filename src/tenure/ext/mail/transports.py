"""Transports: servers for mail by a logical name, which the worker's environment explains.

``via="transactional"`` is ``TENURE_MAIL_TRANSACTIONAL_URL``. A job holds the name and nothing else of it.
"""

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from tenure.errors import ConfigurationError, InvalidOption
from tenure.naming import shown

StartTls = Literal["required", "auto", "never"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_PORTS: Final = {"smtp": 25, "smtps": 465}
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_TEXTS: Final = frozenset({"starttls", "ca", "helo", "password_file"})
_HIDDEN: Final = "***"


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """One server for mail. Its ``repr`` shows its name alone."""

    name: str
    key: str
    """The key that tells all this."""
    host: str
    port: int
    tls: bool
    """TLS from the first byte (``smtps``)."""
    starttls: StartTls
    username: str = ""
    password: str = ""
    ca: str | None = None
    """A file of certificates to trust instead of the system's."""
    helo: str | None = None
    """What the worker calls itself; its host's name unless given."""
    timeout: float = 60.0
    """Seconds for a connection, and for each answer but the last one."""
    data_timeout: float = 600.0
    """Seconds for the answer to a whole message: RFC 5321 asks for ten minutes, since giving up means a repeat."""
    connections: int = 5
    """How many a worker has at the same time."""

    def redacted(self, text: str) -> str:
        """Return a server's text without this transport's password, should the server have repeated it."""
        for secret in self._secrets():
            text = text.replace(secret, _HIDDEN)
        return text

    def _secrets(self) -> list[str]:
        if not self.password:
            return []
        user, password = self.username.encode(), self.password.encode()
        plain = base64.b64encode(b"\0" + user + b"\0" + password).decode()
        return [plain, base64.b64encode(password).decode(), quote(self.password, safe=""), self.password]

    def __repr__(self) -> str:
        return f"<transport {self.name}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name)]


def check_name(name: object, what: str) -> str:
    """Return a logical name, or raise ``InvalidOption``."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidOption(
            f"{what} {shown(name)} is not a name: 1 to 64 of letters, digits, '_' and '-'; nothing was sent"
        )
    return name


def key_of(name: str) -> str:
    """Return the key that explains a transport."""
    return f"TENURE_MAIL_{name.upper().replace('-', '_')}_URL"


def transport(name: str, environ: Mapping[str, str]) -> Transport:
    """Return a transport; raises ``ConfigurationError``, which names the key and shows nothing of its value."""
    key = key_of(name)
    url = environ.get(key, "").strip()
    if not url:
        raise ConfigurationError(key, f"is not set in this worker, so it cannot send mail via {name!r}")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
        given = parse_qsl(parts.query, strict_parsing=True, keep_blank_values=True) if parts.query else []
    except ValueError:
        raise ConfigurationError(key, "is not a URL: percent-encode what has a meaning in one") from None
    if parts.scheme not in _PORTS:
        raise ConfigurationError(key, "must be an smtp:// or smtps:// URL")
    if not host or parts.path.strip("/") or parts.fragment:
        raise ConfigurationError(key, "must be like smtp://user:password@host:port, a reserved character as %23")
    options = _options(key, dict(given))
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    if (file := options.pop("password_file", None)) is not None:
        if password:
            raise ConfigurationError(key, "has a password and a password_file: which one counts?")
        password = _read(key, file)
    if password and not username:
        raise ConfigurationError(key, "has a password without a user's name")
    tls = parts.scheme == "smtps"
    starttls = _starttls(key, options.pop("starttls", None), tls=tls, login=bool(username), local=host in _LOOPBACK)
    return Transport(
        name=name,
        key=key,
        host=host,
        port=_PORTS[parts.scheme] if port is None else port,
        tls=tls,
        starttls=starttls,
        username=username,
        password=password,
        **options,
    )


def _starttls(key: str, said: str | None, *, tls: bool, login: bool, local: bool) -> StartTls:
    if tls:
        if said is not None:
            raise ConfigurationError(key, "has starttls, which smtps:// does not need")
        return "never"
    if said is None:
        # A password never goes out in the clear because somebody on the way removed the server's offer.
        return "required" if login and not local else "auto"
    if said == "required":
        return "required"
    if said == "auto":
        return "auto"
    if said == "never":
        return "never"
    raise ConfigurationError(key, "has starttls, which must be required, auto or never")


def _options(key: str, given: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in given.items():
        if name in _TEXTS and text:
            found[name] = text
        elif name in {"timeout", "data_timeout"}:
            found[name] = _number(key, name, text, most=3600)
        elif name == "connections":
            found[name] = int(_number(key, name, text, most=1000))
        else:
            raise ConfigurationError(
                key,
                "has a parameter that is none: they are starttls, ca, helo, password_file, timeout, data_timeout and "
                "connections",
            )
    return found


def _number(key: str, name: str, text: str, *, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= most or (name == "connections" and not number.is_integer()):
        raise ConfigurationError(key, f"has {name}, which must be a number from 1 to {most:g}")
    return number


def _read(key: str, file: str) -> str:
    try:
        return Path(file).read_text("utf-8").strip("\r\n")
    except (OSError, ValueError) as error:
        raise ConfigurationError(key, f"has a password_file that cannot be read ({type(error).__name__})") from None
