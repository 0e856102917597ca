"""Over TLS: whom this side trusts, whom the server trusts, and what is said when they do not."""

import asyncio
import gc
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from tenure import ConfigurationError, Tenure
from tenure.config import Settings
from tenure.drivers.redis import RedisQueue
from tenure.errors import ConnectionFailed, OutcomeUnknown
from tests.redis.steps import job
from tests.support.absent import not_proven
from tests.support.servers import redis7_binary
from tests.support.tls import Certificates, TlsServer, certificates, tls_server


@pytest.fixture(scope="module")
def secure() -> Iterator[TlsServer]:
    """A server that lets in only who shows the client's certificate."""
    with tls_server(redis7_binary() or not_proven("Redis 7", "apt-get install redis-server"), auth_clients=True) as one:
        yield one


@pytest.fixture(scope="module")
def strangers() -> Iterator[Certificates]:
    with certificates() as others:
        yield others


def url(secure: TlsServer, host: str = "localhost", **parameters: str) -> str:
    names = {"ca_certs": secure.ca, "certfile": secure.cert, "keyfile": secure.key, **parameters}
    return f"rediss://{host}:{secure.port}?" + urlencode({f"ssl_{k}": v for k, v in names.items() if v})


async def counted(url: str, namespace: str) -> int:
    queue = RedisQueue.from_url(url, namespace=namespace)
    try:
        await queue.push([job("a")])
        pusher, keeper = queue.pusher(), queue.keeper()
        pusher.push([job("b")])
        keeper.renew((await queue.claim(["q"], limit=1, lease=60, wait=0)).leases)
        pusher.close()
        keeper.close()
        return (await queue.counts("q")).ready
    finally:
        await queue.aclose()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_both_sides_show_their_certificates(secure: TlsServer, namespace: str, host: str) -> None:
    assert await counted(url(secure, host), namespace) == 1


async def test_files_may_have_any_names(secure: TlsServer, namespace: str, tmp_path: Path) -> None:
    home = tmp_path / "my certs & keys?"
    home.mkdir()
    for source, name in ((secure.ca, "ca+é.crt"), (secure.cert, "client 1.crt"), (secure.key, "client#1.key")):
        shutil.copy(source, home / name)
    names = {"ca_certs": "ca+é.crt", "certfile": "client 1.crt", "keyfile": "client#1.key"}
    paths = {f"ssl_{key}": quote(str(home / name)) for key, name in names.items()}
    query = "&".join(f"{key}={path}" for key, path in paths.items())
    assert await counted(f"rediss://localhost:{secure.port}?{query}", namespace) == 1


async def test_the_environment_says_the_same_by_its_keys(secure: TlsServer, namespace: str) -> None:
    files = {"REDIS_TLS_CA": secure.ca, "REDIS_TLS_CERT": secure.cert, "REDIS_TLS_KEY": secure.key}
    parts = {"QUEUE_CONNECTION": "redis", "REDIS_TLS": "yes", "REDIS_HOST": "localhost", "REDIS_PORT": str(secure.port)}
    for keys in (parts, {"REDIS_URL": f"rediss://localhost:{secure.port}/0"}):
        app = Tenure(settings=Settings.from_environ({**files, **keys, "QUEUE_NAMESPACE": namespace}))
        assert (await app.queue().counts("q")).ready == 0
        await app.aclose()


@pytest.mark.parametrize("missing", ["certfile", "ca_certs"])
async def test_without_one_of_the_certificates_nobody_gets_in(secure: TlsServer, namespace: str, missing: str) -> None:
    without = {missing: "", **({"keyfile": ""} if missing == "certfile" else {})}
    with pytest.raises(ConnectionFailed, match=r"nothing was (sent|stored)"):
        await counted(url(secure, **without), namespace)


async def test_a_stranger_is_not_trusted_by_either_side(
    secure: TlsServer, strangers: Certificates, namespace: str
) -> None:
    with pytest.raises(ConnectionFailed, match="certificate verify failed"):
        await counted(url(secure, ca_certs=strangers.ca), namespace)
    with pytest.raises(ConnectionFailed, match=r"nothing was (sent|stored)"):
        await counted(url(secure, certfile=strangers.cert, keyfile=strangers.key), namespace)


async def test_a_certificate_for_another_host_is_refused_unless_that_is_not_checked(
    secure: TlsServer, namespace: str
) -> None:
    elsewhere = "127.0.0.2"  # the same loopback, under an address that the certificate does not name
    with pytest.raises(ConnectionFailed) as refused:
        await counted(url(secure, elsewhere), namespace)
    assert "nothing was sent" in str(refused.value)


@pytest.mark.parametrize("name", ["ca_certs", "certfile", "keyfile"])
def test_a_file_that_does_not_exist_is_told_by_its_parameter(secure: TlsServer, namespace: str, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^ssl_{name}: names a file that does not exist$"):
        RedisQueue.from_url(url(secure, **{name: "/nowhere/secret.pem"}), namespace=namespace)


async def test_a_plain_connection_to_it_is_no_connection(secure: TlsServer, namespace: str) -> None:
    queue = RedisQueue.from_url(f"redis://localhost:{secure.port}", namespace=namespace)
    with pytest.raises(OutcomeUnknown):
        await queue.counts("q")
    await queue.aclose()


def test_a_loop_may_end_with_the_close_of_a_driver(secure: TlsServer, namespace: str) -> None:
    loop = asyncio.new_event_loop()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        loop.run_until_complete(counted(url(secure), namespace))
        loop.close()
        gc.collect()
    assert [str(one.message) for one in said] == []
