"""Addresses that people really have parse exactly, by every road; others are refused, and secrets are not shown."""

from collections.abc import Callable
from urllib.parse import quote

import msgspec
import pytest
import redis

from tenure import ConfigurationError, Tenure
from tenure.config import Settings
from tenure.urls import Address, parse

PASSWORD = "p@s:w/r#d?%+ &é"
ENCODED = quote(PASSWORD, safe="")


def by_code(url: str) -> Address:
    return Tenure(url).settings.connection().address


def by_environ(url: str) -> Address:
    return Settings.from_environ({"TENURE_URL": url}).connection().address


def by_redis_url(url: str) -> Address:
    return Settings.from_environ({"REDIS_URL": url}).connection().address


def by_a_named_connection(url: str) -> Address:
    return Settings.from_environ({"TENURE_REPORTS_URL": url}).connection("reports").address


Road = Callable[[str], Address]


@pytest.fixture(params=[by_code, by_environ, by_redis_url, by_a_named_connection], ids=lambda road: road.__name__)
def road(request: pytest.FixtureRequest) -> Road:
    found: Road = request.param
    return found


def arguments(address: Address) -> dict[str, object]:
    """Return what redis-py makes of the address."""
    pool = redis.ConnectionPool.from_url(address.url)
    kept = {"host", "port", "db", "username", "password", "path"}
    return {name: value for name, value in pool.connection_kwargs.items() if name in kept and value is not None}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"redis://:{ENCODED}@db.example:6380/15", ("db.example", 6380, 15, None, PASSWORD)),
        (f"redis://ana:{ENCODED}@db.example", ("db.example", 6379, 0, "ana", PASSWORD)),
        (f"redis://{quote('a@b:c', safe='')}:{ENCODED}@h", ("h", 6379, 0, "a@b:c", PASSWORD)),
        ("redis://ana:a:b@h", ("h", 6379, 0, "ana", "a:b")),
        ("redis://ana:+@h", ("h", 6379, 0, "ana", "+")),
        ("redis://ana@h/0", ("h", 6379, 0, "ana", None)),
        ("redis://ana:@h/0", ("h", 6379, 0, "ana", None)),
        ("redis://:@h/0", ("h", 6379, 0, None, None)),
        ("redis://h/", ("h", 6379, 0, None, None)),
        ("redis://h/15", ("h", 6379, 15, None, None)),
        ("redis://h/0/", ("h", 6379, 0, None, None)),
        ("redis://h?db=3", ("h", 6379, 3, None, None)),
        ("redis://h/3?db=3", ("h", 6379, 3, None, None)),
        ("redis://[::1]:6380/1", ("::1", 6380, 1, None, None)),
        ("redis://[2001:db8::1]", ("2001:db8::1", 6379, 0, None, None)),
        ("redis://", ("localhost", 6379, 0, None, None)),
        ("redis:///2", ("localhost", 6379, 2, None, None)),
        ("  redis://h  ", ("h", 6379, 0, None, None)),
        ("REDIS://h", ("h", 6379, 0, None, None)),
        ("valkey://h", ("h", 6379, 0, None, None)),
        ("redis://my_redis-1.svc.cluster.local.:6379", ("my_redis-1.svc.cluster.local.", 6379, 0, None, None)),
    ],
)
def test_an_address_parses_exactly(
    road: Road, url: str, expected: tuple[str, int, int, str | None, str | None]
) -> None:
    made = arguments(road(url))
    assert tuple(made.get(name) for name in ("host", "port", "db", "username", "password")) == expected


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{PASSWORD}@h:6379/0",
        "redis://:p@s@h",
        "redis://:12/3@h:6379/0",
        "redis://:s3cret/x@h/0",
        "redis://:s3cret#x@h/0",
        "redis://:s3cret?x@h/0",
        "redis://u:1?db=3@h/0",
        "redis://:s3cret%@h",
        "redis://:s3cret%zz@h",
        "redis://:%ff@h",
        "redis://:s3c ret@h",
        "redis://:s3cret\n@h",
        "redis://:s3cret@",
        "redis://:s3cret@/0",
        "redis://:s3cret@:6379",
        "redis://h/x",
        "redis://h/-1",
        "redis://h/1/2",
        "redis://h/1?db=2",
        "redis://h/99999999999",
        "redis://h/٣",
        "redis://h:",
        "redis://h:port",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:tcp://10.0.0.1:6379",
        "redis://::1",
        "redis://::1:6379",
        "redis://[::1",
        "redis://[::1]6379",
        "redis://[nonsense]",
        "redis://-h",
        "redis://h h",
        "redis://h?pasword=s3cret",
        "redis://h?password=s3cret",
        '"redis://h"',
        "'redis://:s3cret@h'",
        "h:6379",
        "localhost",
        "redis:/h",
        "s3cret://h",
        "unix://relative/s3cret.sock",
        "unix://",
        "unix:///",
        "unix:///a.sock?db=x",
    ],
)
def test_a_malformed_address_is_refused_by_its_key_and_without_its_secret(url: str) -> None:
    for key, road in {"TENURE_URL": by_environ, "Tenure(url)": by_code, "REDIS_URL": by_redis_url}.items():
        with pytest.raises(ConfigurationError) as refusal:
            road(url)
        text = str(refusal.value)
        assert text.startswith(f"{key}: ")
        assert not any(piece in text for piece in ("s3c", "p@s", "12/3", "pasword", "nonsense"))
        assert "\n" not in text


@pytest.mark.parametrize(
    ("url", "without"),
    [
        ("redis+streams://h", "redis://h"),
        ("valkeys+streams://ana:x@h:7/2", "rediss://ana:x@h:7/2"),
        ("unix+streams:///run/s?db=1", "unix:///run/s?db=1"),
        ("redis+streams+sentinel://a,b:2/main/3", "redis+sentinel://a,b:2/main/3"),
        ("rediss+streams+cluster://[::1]:7000,b", "rediss+cluster://[::1]:7000,b"),
    ],
)
def test_a_url_of_streams_is_that_of_the_same_store_with_another_driver(url: str, without: str) -> None:
    address, same = by_environ(url), by_environ(without)
    assert address == msgspec.structs.replace(same, driver="redis-streams")
    assert (address.driver, address.local, same.driver) == ("redis-streams", same.local, "redis")


@pytest.mark.parametrize(
    "scheme", ["redis+streams+streams", "redis+sentinel+streams", "unix+streams+cluster", "sqlite+streams", "streams"]
)
def test_other_mixtures_with_streams_are_refused(scheme: str) -> None:
    with pytest.raises(ConfigurationError, match=r"TENURE_URL: has a scheme that tenure does not know"):
        by_environ(f"{scheme}://h/name")


def test_the_url_of_a_store_does_not_choose_the_driver() -> None:
    with pytest.raises(ConfigurationError, match=r"REDIS_URL: must be .*chosen by QUEUE_CONNECTION"):
        by_redis_url("redis+streams://h")


def test_tls_and_its_files_reach_the_client() -> None:
    address = parse("rediss://h?ssl_ca_certs=/etc/ca.pem&ssl_cert_reqs=required&client_name=shop", "K")
    pool = redis.ConnectionPool.from_url(address.url)
    assert pool.connection_class is redis.SSLConnection
    assert pool.connection_kwargs["ssl_ca_certs"] == "/etc/ca.pem"
    assert parse("valkeys://h", "K").url == "rediss://h:6379/0"


def test_a_unix_socket_has_a_path_a_database_and_perhaps_a_password() -> None:
    address = by_code(f"unix://ana:{ENCODED}@/run/red%20is.sock?db=2")
    made = arguments(address)
    assert (made["path"], made["db"], made["username"], made["password"]) == ("/run/red is.sock", 2, "ana", PASSWORD)
    assert arguments(by_code("unix:///run/a@b.sock"))["path"] == "/run/a@b.sock"
    assert address.local


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite:///a%20b%3F.db", "a b?.db"),
    ],
)
def test_a_file_is_named_after_three_slashes(url: str, path: str) -> None:
    assert by_code(url) == Address("sqlite", path=path)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://jobs.db", "sqlite://", "sqlite:///", "sqlite:///dir/", "sqlite:///:memory:", "sqlite:///a?b=1",
        "sqlite:///a#b", "sqlite:///%00", "memory://x", "sync:///",
    ],
)  # fmt: skip
def test_what_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="TENURE_URL"):
        by_environ(url)


def test_the_other_drivers_need_no_address() -> None:
    assert [by_code(url).driver for url in ("memory://", "sync://")] == ["memory", "sync"]


def test_an_address_is_never_shown() -> None:
    address = by_code(f"redis://ana:{ENCODED}@db.example")
    assert repr(address) == "<redis address>"
    assert list(address.__rich_repr__()) == [("driver", "redis")]


@pytest.mark.parametrize(
    ("host", "local"), [("localhost", True), ("127.0.0.1", True), ("[::1]", True), ("db.example", False)]
)
def test_an_address_knows_whether_it_is_on_this_host(host: str, *, local: bool) -> None:
    assert by_code(f"redis://{host}").local is local
