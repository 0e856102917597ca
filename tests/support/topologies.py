"""Looking at a server from outside, and a server whose client has only the rights it was given.

The larger shapes stand beside it: `tls`, `sentinel` and `cluster`; what may go wrong with a running server is in
`faults`.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support import processes
from tests.support.servers import Server, redis_like

Target = Server | str
# What a URL must carry encoded, and what breaks those who split it by hand.
SPECIAL = "p@ss:/?#[]%&=+;, ü'\"\\"


def client(target: Target, *, timeout: float | None = 5, retries: int = 0, **options: Any) -> redis.Redis:
    """Connect at once, to a server's unix socket or a URL; without `retries` no call is ever sent twice."""
    return redis.Redis.from_url(
        target if isinstance(target, str) else target.url,
        retry=Retry(NoBackoff(), retries),
        socket_timeout=timeout,
        single_connection_client=True,
        decode_responses=True,
        **options,
    )


def tell(target: Target, *words: str | int, timeout: float = 5) -> Any:
    """Send one command over a connection of its own and return the reply as RESP 2 spells it: text, numbers, lists."""
    with closing(client(target, timeout=timeout, protocol=2)) as control:
        return raw(control, *words)


def raw(control: redis.Redis, *words: str | int) -> Any:
    """Send one command over this connection and return the reply as it came."""
    send: Callable[..., Any] = control.execute_command  # which redis-py has not typed
    return send(*words)


def pairs(flat: Sequence[Any]) -> dict[str, Any]:
    """Read a reply that lists names and values by turns."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def info(target: Target, section: str) -> dict[str, Any]:
    """Return a section of INFO, numbers as numbers."""
    with closing(client(target)) as control:
        return dict(control.info(section))


def loopback(port: int) -> str:
    return f"redis://127.0.0.1:{port}"


@dataclass(frozen=True)
class AclServer:
    """A server that lets in one user with the rights under test, and the tests' own administrator."""

    server: Server
    username: str
    password: str
    url: str
    unix_url: str
    admin_url: str

    def restart(self) -> None:
        """Restart it; the users are part of its configuration and come back."""
        self.server.restart()
        self.wait_loaded()

    def wait_loaded(self, timeout: float = 20) -> None:
        """Return when a restarted server has its data: it asks for a password before, which passes for an answer."""
        processes.eventually(lambda: not info(self.admin_url, "persistence")["loading"], timeout, what="it has loaded")


@contextmanager
def acl_server(binary: str | os.PathLike[str], rules: str | Sequence[str]) -> Iterator[AclServer]:
    """Run a server without the default user, whose only user has exactly these rules, e.g. `"~jobs:* +@all -eval"`.

    The password is full of characters that mean something in a URL. `admin_url` is for the test itself: it may do
    everything, so that rights can be changed while a client is connected.
    """
    username, password, admin_password = "job@runner", SPECIAL + secrets.token_hex(4), secrets.token_hex(8)
    words = rules.split() if isinstance(rules, str) else list(rules)
    arguments = ["--user", "default", "off"]
    arguments += ["--user", "admin", "on", hashed(admin_password), "~*", "&*", "+@all"]
    arguments += ["--user", username, "on", hashed(password), *words]
    with redis_like(binary, extra_args=arguments, tcp=True) as server:
        login = f"{quote(username, safe='')}:{quote(password, safe='')}"
        yield AclServer(
            server,
            username,
            password,
            url=f"redis://{login}@127.0.0.1:{server.port}",
            unix_url=f"unix://{login}@{server.socket}",
            admin_url=f"unix://admin:{admin_password}@{server.socket}",
        )


def hashed(password: str) -> str:
    """Return the rule that sets this password; the hash survives every way of writing a configuration."""
    return "#" + hashlib.sha256(password.encode()).hexdigest()
