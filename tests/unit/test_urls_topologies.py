"""URLs of sentinels and of clusters, and TLS: read as strictly as those of one server."""

from urllib.parse import quote

import pytest

from tenure import ConfigurationError, Tenure
from tenure.config import Settings
from tenure.urls import Address, parse

PASSWORD = "p@s:w/r#d?%+ &é,="
ENCODED = quote(PASSWORD, safe="")


def test_a_url_of_sentinels_names_them_and_what_they_watch() -> None:
    address = parse(f"redis+sentinel://ana:{ENCODED}@one,two:26380,[::1]:7/mymaster/3?client_name=shop", "K")
    assert address.hosts == (("one", 26379), ("two", 26380), ("::1", 7))
    assert (address.topology, address.master) == ("sentinel", "mymaster")
    assert address.base == f"redis://ana:{ENCODED}@one:26379/3?client_name=shop"
    assert address.sentinel_base == "redis://one:26379/0"
    assert parse(address.url, "K") == address


def test_sentinels_may_ask_for_credentials_of_their_own() -> None:
    address = parse(f"redis+sentinel://h/m?sentinel_username=w&sentinel_password={ENCODED}", "K")
    assert (address.sentinel_username, address.sentinel_password) == ("w", PASSWORD)
    assert "sentinel_" not in address.base + address.sentinel_base
    assert parse("redis+sentinel://h/m?sentinel_password_file=/run/s%20p", "K").sentinel_password_file == "/run/s p"


def test_a_url_of_a_cluster_names_the_nodes_that_are_asked_first() -> None:
    address = parse(f"rediss+cluster://:{ENCODED}@one:7000,[::1],two?ssl_ca_certs=/ca.pem", "K")
    assert address.hosts == (("one", 7000), ("::1", 6379), ("two", 6379))
    assert (address.topology, address.master) == ("cluster", "")
    assert address.base == f"rediss://:{ENCODED}@one:7000/0?ssl_ca_certs=/ca.pem"
    assert parse(address.url, "K") == address
    assert parse("valkey+cluster://h/0", "K").url == "redis+cluster://h:6379"


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel:///m", "redis+sentinel://h,/m",
        "redis+sentinel://,h/m", "redis+sentinel://h/m/x", "redis+sentinel://h/m/1/2", "redis+sentinel://h/m m",
        "redis+sentinel://h/m/1?db=2", "redis+sentinel://h:0/m", "redis+sentinel://a:s3cret@b:s3cret@h/m",
        "redis+sentinel://u:s3/cret@h/m", "redis+sentinel://h/m?sentinel_passwort=s3cret",
        "redis+sentinel://h/m?sentinel_password=s3c@ret", "redis+sentinel://h/m?password=s3cret",
        "redis+sentinel://h/m?sentinel_password=s3cret&sentinel_password_file=/f", "redis+sentinel://::1/m",
        "redis+cluster://", "redis+cluster://h,", "redis+cluster://h,,i", "redis+cluster://h/1", "redis+cluster://h?db=1",
        "redis+cluster://h?sentinel_password=s3cret", "redis+cluster://h/m", "redis+cluster://h i",
        "redis://h?sentinel_password=s3cret", "redis://one,two", "redis+nothing://h", "unix+cluster:///s",
    ],
)  # fmt: skip
def test_a_url_that_could_mean_something_else_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^K: ") as refused:
        parse(url, "K")
    assert "s3c" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://h?ssl_ca_certs=/ca", "unix:///s?ssl_ca_certs=/ca", "redis+cluster://h?ssl_certfile=/c",
        "redis+sentinel://h/m?ssl_keyfile=/k", "rediss://h?ssl_ca_cert=/ca", "rediss://h?ssl_cert_reqs=sometimes",
        "rediss://h?ssl_check_hostname=perhaps", "rediss://h?ssl_ca_certs=",
    ],
)  # fmt: skip
def test_parameters_that_would_leave_a_connection_unprotected_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^K: has "):
        parse(url, "K")


@pytest.mark.parametrize("url", ["redis://u:s3cret@h?password_file=/f", "unix://:s3cret@/s?password_file=/f"])
def test_two_passwords_are_one_too_many(url: str) -> None:
    with pytest.raises(ConfigurationError, match="both a password and a password_file") as refused:
        parse(url, "K")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("redis+cluster://127.0.0.1:1,localhost:2", True),
        ("redis+cluster://127.0.0.1:1,db.example:2", False),
        ("redis+sentinel://[::1]/m", True),
    ],
)
def test_several_hosts_are_on_this_host_when_all_are(url: str, *, local: bool) -> None:
    assert parse(url, "K").local is local


def test_nothing_of_it_is_shown() -> None:
    for url in (f"redis+cluster://ana:{ENCODED}@db.example", f"redis+sentinel://ana:{ENCODED}@db.example/m"):
        assert repr(parse(url, "K")) == "<redis address>"


def by_parts(**parts: str) -> Address:
    environ = {f"REDIS_{key}": value for key, value in parts.items()}
    return Settings.from_environ({"QUEUE_CONNECTION": "redis", **environ}).connection().address


def test_a_cluster_is_put_together_from_its_keys() -> None:
    address = by_parts(CLUSTER="yes", HOST="::1", PORT="7000", USERNAME="ana", PASSWORD=PASSWORD)
    assert address == parse(f"redis+cluster://ana:{ENCODED}@[::1]:7000", "K")
    assert by_parts(CLUSTER="1", HOST="one:7000, two").hosts == (("one", 7000), ("two", 6379))
    assert by_parts(CLUSTER="true", URL="redis://one:7000") == parse("redis+cluster://one:7000", "K")
    assert by_parts(CLUSTER="true", URL="rediss+cluster://one").topology == "cluster"


def test_sentinels_are_put_together_from_their_keys() -> None:
    address = by_parts(
        SENTINELS="one, [::1]:7",
        SENTINEL_MASTER="mymaster",
        SENTINEL_USERNAME="w",
        SENTINEL_PASSWORD=PASSWORD,
        DB="2",
        PASSWORD=PASSWORD,
    )
    expected = f"redis+sentinel://:{ENCODED}@one,[::1]:7/mymaster/2?sentinel_username=w&sentinel_password={ENCODED}"
    assert address == parse(expected, "K")


def test_tls_is_put_together_from_its_keys() -> None:
    files = {"TLS_CA": "/my ca.pem", "TLS_CERT": "/c.pem", "TLS_KEY": "/k.pem"}
    query = "ssl_ca_certs=/my%20ca.pem&ssl_certfile=/c.pem&ssl_keyfile=/k.pem"
    assert by_parts(TLS="on", HOST="h", **files) == parse(f"rediss://h?{query}", "K")
    assert by_parts(URL="rediss://h", TLS="on", **files) == parse(f"rediss://h?{query}", "K")
    # What the URL says itself stays.
    assert "ssl_ca_certs=/other" in by_parts(URL="rediss://h?ssl_ca_certs=/other", **files).url


def test_a_password_may_stand_in_a_file() -> None:
    assert by_parts(HOST="h", PASSWORD_FILE="/run/my secret").url == "redis://h:6379/0?password_file=/run/my%20secret"
    assert by_parts(URL="redis://ana@h/1", PASSWORD_FILE="/s").url == "redis://ana@h:6379/1?password_file=/s"


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("REDIS_SENTINEL_MASTER", {"SENTINELS": "h"}),
        ("REDIS_SENTINEL_MASTER", {"SENTINEL_MASTER": "m"}),
        ("REDIS_SENTINELS", {"SENTINELS": "h", "SENTINEL_MASTER": "m", "CLUSTER": "1"}),
        ("REDIS_SENTINELS", {"SENTINELS": "h", "SENTINEL_MASTER": "m", "HOST": "h"}),
        ("REDIS_SENTINELS", {"SENTINELS": "h", "SENTINEL_MASTER": "m", "URL": "redis://h"}),
        ("REDIS_SENTINELS", {"SENTINELS": "h:x", "SENTINEL_MASTER": "m"}),
        ("REDIS_SENTINELS", {"SENTINELS": "h,,i", "SENTINEL_MASTER": "m"}),
        ("REDIS_SENTINEL_PASSWORD", {"SENTINEL_PASSWORD": "s3cret"}),
        (
            "REDIS_SENTINEL_PASSWORD_FILE",
            {"SENTINELS": "h", "SENTINEL_MASTER": "m", "SENTINEL_PASSWORD": "s3cret", "SENTINEL_PASSWORD_FILE": "/f"},
        ),
        ("REDIS_DB", {"CLUSTER": "1", "DB": "1"}),
        ("REDIS_CLUSTER", {"CLUSTER": "1", "URL": "redis+sentinel://h/m"}),
        ("REDIS_TLS", {"TLS": "1", "URL": "redis://:s3cret@h"}),
        ("REDIS_TLS_CA", {"TLS_CA": "/ca"}),
        ("REDIS_TLS_CERT", {"TLS_CERT": "/c", "URL": "redis://h"}),
        ("REDIS_TLS_KEY", {"TLS": "1", "TLS_KEY": "/k"}),
        ("REDIS_PASSWORD_FILE", {"PASSWORD": "s3cret", "PASSWORD_FILE": "/f"}),
        ("REDIS_URL", {"URL": "redis://:s3cret@h", "PASSWORD_FILE": "/f"}),
        ("REDIS_URL", {"URL": "unix:///s", "CLUSTER": "1"}),
    ],
)
def test_keys_that_contradict_are_refused_by_their_names(key: str, parts: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=f"^{key}: ") as refused:
        by_parts(**parts)
    assert "s3cret" not in str(refused.value)


def test_a_named_connection_has_a_topology_of_its_own() -> None:
    settings = Settings.from_environ(
        {
            "REDIS_HOST": "plain",
            "REDIS_REPORTS_SENTINELS": "one",
            "REDIS_REPORTS_SENTINEL_MASTER": "m",
            "REDIS_MAIL_CLUSTER": "true",
            "REDIS_MAIL_HOST": "two",
            "REDIS_MAIL_PREFIX": "mail:",
            "TENURE_LOGS_URL": "redis+cluster://three",
        }
    )
    assert settings.connection("redis").address.host == "plain"
    reports, mail, logs = (settings.connection(name) for name in ("reports", "mail", "logs"))
    assert (reports.address.topology, reports.address.master) == ("sentinel", "m")
    assert (mail.address.hosts, mail.prefix) == ((("two", 6379),), "mail:")
    assert (logs.address.hosts, logs.prefix) == ((("three", 6379),), "")


@pytest.mark.parametrize("name", ["tls", "SENTINEL", "sentinels", "password"])
def test_a_name_whose_keys_mean_something_else_is_refused(name: str) -> None:
    environ = {"REDIS_TLS_CA": "/ca", "REDIS_SENTINEL_MASTER": "m", "REDIS_PASSWORD_FILE": "/f"}
    with pytest.raises(ConfigurationError, match="cannot name one"):
        Settings.from_environ(environ).connection(name)


def test_a_store_that_is_not_this_hosts_and_has_no_namespace_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    for url in ("redis+cluster://db.example", "redis+sentinel://db.example/m", "redis+cluster://localhost"):
        Tenure(url).queue()
    assert [record.message.partition(":")[0] for record in caplog.records] == ["QUEUE_NAMESPACE is not set"] * 2
