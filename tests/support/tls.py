"""A server behind TLS: Redis where it was built with it, elsewhere a proxy that speaks it."""

import asyncio
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from tests.support.absent import not_proven
from tests.support.ports import free_port
from tests.support.servers import Server, ServerFailed, redis_like

T = TypeVar("T")

BUILT_WITHOUT = ("Bad directive", "Failed finding TLS support")
# Extensions as Python's strictest verification (the default from 3.13) wants them.
EXTENSIONS = """
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


@dataclass(frozen=True)
class Certificates:
    """A certificate authority of the tests' own with a server (localhost, 127.0.0.1) and a client it vouches for."""

    directory: pathlib.Path

    @property
    def ca(self) -> str:
        return str(self.directory / "ca.crt")

    @property
    def cert(self) -> str:
        """The client's certificate."""
        return str(self.directory / "client.crt")

    @property
    def key(self) -> str:
        return str(self.directory / "client.key")

    @property
    def server_cert(self) -> str:
        return str(self.directory / "server.crt")

    @property
    def server_key(self) -> str:
        return str(self.directory / "server.key")


@contextmanager
def certificates() -> Iterator[Certificates]:
    """Make an authority and its two certificates, valid for two days; ask twice for two strangers."""
    openssl = shutil.which("openssl")
    if openssl is None:
        not_proven("openssl", "apt-get install openssl")
    with tempfile.TemporaryDirectory(prefix="t-") as name:
        directory = pathlib.Path(name)

        def run(*arguments: str) -> None:
            subprocess.run([openssl, *arguments], cwd=directory, check=True, capture_output=True, timeout=30)

        (directory / "cnf").write_text(EXTENSIONS)
        for who in ("ca", "server", "client"):
            run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{who}.key")
            request = ["req", "-new", "-config", "cnf", "-key", f"{who}.key", "-subj", f"/CN=tests {who}"]
            if who == "ca":
                run(*request, "-x509", "-extensions", "ca", "-days", "2", "-out", "ca.crt")
            else:
                run(*request, "-out", f"{who}.csr")
                signing = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
                signing += ["-extfile", "cnf", "-extensions", who]
                run("x509", "-req", "-in", f"{who}.csr", *signing, "-out", f"{who}.crt")
        yield Certificates(directory)


@dataclass(frozen=True)
class TlsServer:
    """A server that is reached by TLS at `url`; its unix socket stays open for the test itself."""

    server: Server
    port: int
    certificates: Certificates
    auth_clients: bool

    @property
    def url(self) -> str:
        """Its address alone: a client must still be told whom to trust."""
        return f"rediss://localhost:{self.port}"

    @property
    def full_url(self) -> str:
        """Its address with the paths of the authority and of the client's certificate, as redis-py reads them."""
        paths = {"ssl_ca_certs": self.ca, "ssl_certfile": self.cert, "ssl_keyfile": self.key}
        return f"{self.url}?{urlencode(paths)}"

    @property
    def ca(self) -> str:
        return self.certificates.ca

    @property
    def cert(self) -> str:
        return self.certificates.cert

    @property
    def key(self) -> str:
        return self.certificates.key


@contextmanager
def tls_server(
    binary: str | os.PathLike[str], *, trust: Certificates | None = None, auth_clients: bool = False
) -> Iterator[TlsServer]:
    """Run a server behind TLS; with `auth_clients` it lets in only who shows the client's certificate.

    `trust` saves making certificates anew (about 0.1 s).
    """
    with ExitStack() as stack:
        trust = trust or stack.enter_context(certificates())
        try:
            server, port = stack.enter_context(_native(binary, trust, auth_clients))
        except ServerFailed as error:
            if not any(words in str(error) for words in BUILT_WITHOUT):
                raise
            server = stack.enter_context(redis_like(binary))
            port = stack.enter_context(TlsProxy(server.socket, trust, auth_clients=auth_clients)).port
        yield TlsServer(server, port, trust, auth_clients)


@contextmanager
def _native(binary: str | os.PathLike[str], trust: Certificates, auth_clients: bool) -> Iterator[tuple[Server, int]]:
    arguments = ["--tls-cert-file", trust.server_cert, "--tls-key-file", trust.server_key]
    arguments += ["--tls-ca-cert-file", trust.ca, "--tls-auth-clients", "yes" if auth_clients else "no"]
    with ExitStack() as stack:
        for attempt in range(5):
            port = free_port()
            try:
                server = stack.enter_context(redis_like(binary, extra_args=[*arguments, "--tls-port", str(port)]))
            except ServerFailed as error:
                if attempt == 4 or "ddress already in use" not in str(error):
                    raise
            else:
                yield server, port
                return


class TlsProxy:
    """Speaks TLS on a free loopback port and passes what it hears to a server's unix socket."""

    def __init__(self, upstream: str, trust: Certificates, *, auth_clients: bool = False) -> None:
        self.upstream = upstream
        self.port = 0
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=trust.ca)
        self._context.load_cert_chain(trust.server_cert, trust.server_key)
        self._context.verify_mode = ssl.CERT_REQUIRED if auth_clients else ssl.CERT_NONE
        self._own_errors: list[Exception] = []
        self._links: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls-proxy", daemon=True)
        self._listener: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._on_loop(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._on_loop(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._own_errors:
            raise self._own_errors[0]

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._loop.set_exception_handler(self._judge)
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = self._listener.sockets[0].getsockname()[1]

    def _judge(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A refused handshake is the client's to report; any other error is this proxy's own."""
        error = context.get("exception") or RuntimeError(context["message"])
        if not isinstance(error, OSError):
            self._own_errors.append(error)

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for link in self._links:
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        with suppress(OSError, asyncio.CancelledError):  # the server is down, a side hung up, or the test is over
            server_reader, server_writer = await asyncio.open_unix_connection(self.upstream)
            pumps = [asyncio.create_task(_pump(*ends)) for ends in ((reader, server_writer), (server_reader, writer))]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
                server_writer.transport.abort()
        writer.transport.abort()
        self._links.discard(task)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
