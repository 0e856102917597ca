"""Settings come from the environment; what they mean, what they select, and what they refuse."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenure
from tenure import ConfigurationError, Tenure
from tenure.config import ConnectionSettings, Settings, embedded, path_namespace, project
from tests.support import servers
from tests.support.ports import free_port


def read(**environ: str) -> Settings:
    return Settings.from_environ(environ)


def chosen(name: str = "default", **environ: str) -> ConnectionSettings:
    return read(**environ).connection(name)


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test stands in a project of its own."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --------------------------------------------------------------------------------------------------------------- tuning


# K8
def test_nothing_set_means_the_defaults() -> None:
    settings = read()
    assert (settings.visibility_timeout, settings.max_attempts, settings.max_payload_bytes) == (300, None, 60_000)
    assert (settings.retry_base_delay, settings.poll_timeout) == (1.0, 1.0)


def test_the_tuning_is_read_from_its_keys() -> None:
    settings = read(
        QUEUE_VISIBILITY_TIMEOUT_SECONDS=" 60 ",
        QUEUE_MAX_ATTEMPTS="7",
        QUEUE_RETRY_BASE_DELAY_SECONDS="0.5",
        QUEUE_POLL_TIMEOUT="2",
        QUEUE_MAX_PAYLOAD_BYTES="1000",
    )
    assert (settings.visibility_timeout, settings.max_attempts, settings.max_payload_bytes) == (60, 7, 1000)
    assert (settings.retry_base_delay, settings.poll_timeout) == (0.5, 2.0)


@pytest.mark.parametrize("value", ["", " ", "\t"])
def test_an_empty_value_is_unset(value: str) -> None:
    settings = read(QUEUE_VISIBILITY_TIMEOUT_SECONDS=value, TENURE_URL=value, QUEUE_NAMESPACE=value, REDIS_URL=value)
    assert settings.visibility_timeout == 300
    assert settings.connection().configured == ""


# K8, S2
@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("QUEUE_VISIBILITY_TIMEOUT_SECONDS", ["0", "-1", "1.5", "five", "nan", "1e400", "٣", "9" * 30, "'60'", "60s"]),
        ("QUEUE_MAX_ATTEMPTS", ["0", "-1", "many", "1.5"]),
        ("QUEUE_RETRY_BASE_DELAY_SECONDS", ["-1", "nan", "inf", "1e400", "soon"]),
        ("QUEUE_POLL_TIMEOUT", ["0", "-1", "nan", "inf"]),
        ("QUEUE_MAX_PAYLOAD_BYTES", ["0", "-1", "60kB", "1e400"]),
        ("QUEUE_NAMESPACE", ["a:b", "{x}", "é", "a b", "x" * 129]),
    ],
)
def test_a_bad_value_names_its_key_and_is_not_quoted(key: str, values: list[str]) -> None:
    for value in values:
        with pytest.raises(ConfigurationError, match=f"^{key}: ") as refusal:
            read(**{key: value})
        problem = str(refusal.value).removeprefix(key)
        assert value not in problem.split() or value.isdigit()
        assert "`" not in problem


def test_settings_show_no_secret() -> None:
    settings = read(TENURE_URL="redis://:s3cret@h", REDIS_PASSWORD="s3cret", REDIS_HOST="h")
    connection = settings.connection()
    for shown in (repr(settings), repr(connection), *settings.__rich_repr__(), *connection.__rich_repr__()):
        assert "s3cret" not in str(shown)
        assert "redis://" not in str(shown)


def test_only_known_keys_are_kept() -> None:
    kept = read(TENURE_URL="memory://", PATH="/bin", SECRET_KEY="x", DATABASE_URL="sqlite:///x.db").environ
    assert set(kept) == {"TENURE_URL", "DATABASE_URL"}


# ----------------------------------------------------------------------------------------------------- what is selected


@pytest.mark.parametrize(
    ("environ", "selected", "configured"),
    [
        ({}, "sqlite", ""),
        ({"DATABASE_URL": "postgresql://h/db"}, "sqlite", ""),
        ({"REDIS_HOST": "h"}, "sqlite", ""),
        ({"REDIS_URL": "redis://h"}, "redis", "redis"),
        ({"TENURE_URL": "memory://"}, "memory", "memory"),
        ({"TENURE_URL": "memory://", "REDIS_URL": "redis://h"}, "memory", "memory"),
        ({"QUEUE_CONNECTION": "redis"}, "redis", "redis"),
        ({"QUEUE_CONNECTION": "redis", "TENURE_URL": "redis://h"}, "redis", "redis"),
        ({"QUEUE_CONNECTION": "sqlite"}, "sqlite", "sqlite"),
        ({"QUEUE_CONNECTION": "Memory"}, "memory", "memory"),
        ({"QUEUE_CONNECTION": "sql"}, "sqlite", "sqlite"),
        ({"QUEUE_CONNECTION": "memory"}, "memory", "memory"),
        ({"QUEUE_CONNECTION": "sync", "REDIS_URL": "redis://h"}, "sync", "sync"),
        ({"QUEUE_CONNECTION": "redis-streams", "REDIS_URL": "redis://h"}, "redis-streams", "redis-streams"),
        ({"QUEUE_CONNECTION": "redis_streams", "REDIS_HOST": "h"}, "redis-streams", "redis-streams"),
        ({"TENURE_URL": "redis+streams://h"}, "redis-streams", "redis-streams"),
        ({"QUEUE_CONNECTION": "redis-streams", "TENURE_URL": "redis+streams://h"}, "redis-streams", "redis-streams"),
        ({"QUEUE_CONNECTION": "reports", "TENURE_REPORTS_URL": "memory://"}, "memory", "memory"),
    ],
)
def test_the_environment_selects_the_store(environ: dict[str, str], selected: str, configured: str) -> None:
    connection = chosen(**environ)
    assert (connection.address.driver, connection.configured) == (selected, configured)


@pytest.mark.parametrize(
    "environ",
    [
        {"QUEUE_CONNECTION": "sync", "TENURE_URL": "redis://h"},
        {"QUEUE_CONNECTION": "reports", "TENURE_URL": "redis://h", "TENURE_REPORTS_URL": "memory://"},
        {"QUEUE_CONNECTION": "reports"},
        {"QUEUE_CONNECTION": "default"},
        {"QUEUE_CONNECTION": "redis-streams", "TENURE_URL": "redis://h"},
        {"QUEUE_CONNECTION": "redis://:s3cret@h"},
    ],
)
def test_a_selection_that_contradicts_or_names_nothing_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"^QUEUE_CONNECTION: ") as refusal:
        chosen(**environ)
    assert "s3cret" not in str(refusal.value)


def test_a_file_that_the_database_url_names_is_used_when_sql_is_asked_for() -> None:
    connection = chosen(QUEUE_CONNECTION="sql", DATABASE_URL="sqlite:////var/jobs.db")
    assert connection.address.path == "/var/jobs.db"
    assert chosen(QUEUE_CONNECTION="sqlite", DATABASE_URL="postgresql://h/x").address == embedded()


# ---------------------------------------------------------------------------------------------------------------- redis


# K9, S2
def test_redis_is_put_together_from_separate_keys() -> None:
    connection = chosen(
        QUEUE_CONNECTION="redis",
        REDIS_HOST="::1",
        REDIS_PORT="6380",
        REDIS_DB="3",
        REDIS_USERNAME="ana",
        REDIS_PASSWORD="p@s:w/r#d?%+ &é",
        REDIS_TLS="yes",
        REDIS_PREFIX="shop:",
    )
    assert connection.address.url == "rediss://ana:p%40s%3Aw%2Fr%23d%3F%25%2B%20%26%C3%A9@[::1]:6380/3"
    assert connection.prefix == "shop:"


def test_the_port_that_kubernetes_sets_is_ignored() -> None:
    assert chosen(QUEUE_CONNECTION="redis", REDIS_PORT="tcp://10.0.0.1:6379").address.url == "redis://127.0.0.1:6379/0"


def test_a_redis_url_replaces_the_separate_keys() -> None:
    connection = chosen(REDIS_URL="redis://h/2", REDIS_HOST="other", REDIS_PREFIX="p:")
    assert (connection.address.url, connection.prefix) == ("redis://h:6379/2", "p:")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("REDIS_HOST", "h:6380"), ("REDIS_HOST", "redis://h"), ("REDIS_HOST", "h/0"), ("REDIS_HOST", "a b"),
        ("REDIS_PORT", "x"), ("REDIS_PORT", "0"), ("REDIS_PORT", "65536"), ("REDIS_PORT", "6379/tcp"),
        ("REDIS_DB", "x"), ("REDIS_DB", "-1"), ("REDIS_TLS", "maybe"), ("REDIS_PREFIX", "a{b}"),
        ("REDIS_PREFIX", "é"), ("REDIS_PREFIX", "a b"), ("REDIS_CLUSTER", "perhaps"),
        ("REDIS_URL", "sqlite:///x"), ("REDIS_URL", "memory://"),
    ],
)  # fmt: skip
def test_a_bad_redis_key_is_refused_by_its_name(key: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{key}: "):
        chosen(QUEUE_CONNECTION="redis", **{key: value})
    with pytest.raises(ConfigurationError, match=f"^{key.replace('REDIS_', 'REDIS_REPORTS_')}: "):
        chosen("reports", TENURE_OTHER="x", **{key.replace("REDIS_", "REDIS_REPORTS_"): value})


def test_no_cluster_is_no_reason_to_refuse() -> None:
    assert chosen(QUEUE_CONNECTION="redis", REDIS_CLUSTER="false").address.driver == "redis"


# ---------------------------------------------------------------------------------------------------- named connections


# K9
def test_a_named_connection_reads_only_its_own_keys() -> None:
    environ = {
        "REDIS_HOST": "plain",
        "REDIS_CLUSTER": "true",
        "QUEUE_MAX_ATTEMPTS": "9",
        "REDIS_REPORTS_HOST": "own",
        "REDIS_REPORTS_DB": "4",
        "QUEUE_REPORTS_VISIBILITY_TIMEOUT_SECONDS": "5",
        "QUEUE_REPORTS_NAMESPACE": "mine",
        "REDIS_REPORTS_PREFIX": "r:",
    }
    connection = chosen("reports", **environ)
    assert connection.address.url == "redis://own:6379/4"
    assert (connection.visibility_timeout, connection.max_attempts) == (5, None)
    assert (connection.namespace, connection.prefix, connection.name) == ("mine", "r:", "reports")


def test_a_connection_that_is_not_configured_is_refused_by_the_key_it_lacks() -> None:
    with pytest.raises(ConfigurationError, match=r"^TENURE_REPORTS_URL: "):
        chosen("reports", REDIS_HOST="h")
    for name in ("", "a b", "é", "x" * 65, "a.b"):
        with pytest.raises(ConfigurationError, match="connection"):
            chosen(name)


# K9
@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({"QUEUE_REPORTS_CONNECTION": "postgresql"}, "TENURE_REPORTS_URL"),
        ({"QUEUE_REPORTS_CONNECTION": "sync", "TENURE_REPORTS_URL": "memory://"}, "QUEUE_REPORTS_CONNECTION"),
        ({"TENURE_REPORTS_URL": "redis://h:x"}, "TENURE_REPORTS_URL"),
        ({"TENURE_REPORTS_URL": "memory://", "QUEUE_REPORTS_MAX_ATTEMPTS": "0"}, "QUEUE_REPORTS_MAX_ATTEMPTS"),
        ({"TENURE_REPORTS_URL": "memory://", "QUEUE_REPORTS_NAMESPACE": ":"}, "QUEUE_REPORTS_NAMESPACE"),
    ],
)
def test_a_bad_scoped_key_is_refused_by_its_own_name(environ: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{key}: "):
        chosen("reports", **environ)


def test_a_named_connection_may_choose_a_driver_without_an_address() -> None:
    assert chosen("reports", QUEUE_REPORTS_CONNECTION="sync").address.driver == "sync"
    assert chosen("reports", QUEUE_REPORTS_CONNECTION="sqlite").address == embedded()
    assert chosen("a-b", TENURE_A_B_URL="memory://").name == "a-b"


def test_the_name_of_a_driver_is_a_connection_too() -> None:
    app = Tenure(settings=read(QUEUE_CONNECTION="memory"))
    assert app.queue("memory") is app.queue()
    assert app.queue("memory") is app.queue("default")
    assert app.queue("sync") is not app.queue()
    assert chosen("redis", TENURE_URL="redis://h").name == "default"
    assert chosen("redis", TENURE_URL="memory://", REDIS_HOST="r").address.url == "redis://r:6379/0"


# ---------------------------------------------------------------------------------------------------- the project's own


def test_the_project_is_the_nearest_directory_that_looks_like_one(
    at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = at_home / "package" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert project() == at_home
    (inner / "manage.py").touch()
    assert project() == inner


# S2
def test_the_namespace_is_a_hash_of_the_project_unless_it_is_given(at_home: Path) -> None:
    connection = chosen()
    assert connection.namespace == path_namespace()
    assert not connection.namespace_given
    assert chosen(QUEUE_NAMESPACE="shop").namespace == "shop"
    assert Tenure("memory://", namespace="own", settings=read(QUEUE_NAMESPACE="shop")).settings.namespace == "own"
    assert str(at_home) not in connection.namespace


async def test_nothing_configured_is_the_projects_own_file_and_is_said_once(
    at_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = Tenure(settings=read())
    assert not (at_home / ".tenure").exists()
    assert app.infrastructure() == ("", "sql", "nothing is configured")
    await app.counts("default")
    app.queue()
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 1
    assert ".tenure/tenure.db" in told[0]
    assert "TENURE_URL" in told[0]
    assert (at_home / ".tenure" / ".gitignore").read_text() == "*\n"
    assert (at_home / ".tenure" / "tenure.db").exists()
    await app.aclose()


async def test_what_is_configured_is_told_without_its_address(caplog: pytest.LogCaptureFixture) -> None:
    app = Tenure("memory://", settings=read())
    assert app.infrastructure() == ("memory", "memory", "it is configured")
    assert caplog.records == []


def test_a_namespace_of_a_path_is_warned_of_where_the_store_is_on_another_host(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Tenure("redis://:s3cret@db.example", settings=read()).queue()
    Tenure("redis://localhost", settings=read()).queue()
    Tenure("redis://db.example", namespace="shop", settings=read()).queue()
    [told] = [record.getMessage() for record in caplog.records]
    assert "QUEUE_NAMESPACE" in told
    assert "db.example" not in told


# ----------------------------------------------------------------------------------------------------------------- auto


def test_auto_takes_the_file_when_redis_does_not_answer_and_stays_with_it(
    at_home: Path,
) -> None:
    environ = {"QUEUE_CONNECTION": "auto", "REDIS_PORT": str(free_port())}
    app = Tenure(settings=read(**environ))
    assert app.infrastructure() == ("auto", "sql", "Redis did not answer at first use")
    assert app.queue("auto") is app.queue()
    assert (at_home / ".tenure").is_dir()


def test_auto_takes_redis_when_it_answers(valkey: servers.Server) -> None:
    app = Tenure(settings=read(QUEUE_CONNECTION="auto", TENURE_URL=valkey.url))
    assert app.infrastructure() == ("auto", "redis", "Redis answered at first use")


def test_auto_takes_redis_when_it_answers_with_a_refusal(valkey: servers.Server) -> None:
    url = valkey.url.replace("://", "://nobody:wrong@")
    app = Tenure(settings=read(QUEUE_REPORTS_CONNECTION="auto", REDIS_REPORTS_URL=url))
    assert app.infrastructure("reports").selected == "redis"


# S3
def test_auto_never_takes_anything_but_redis_and_the_file() -> None:
    connection = chosen(QUEUE_CONNECTION="auto", TENURE_URL="sqlite:////var/jobs.db")
    assert connection.fallback is not None
    assert (connection.address.driver, connection.fallback.path) == ("redis", "/var/jobs.db")
    assert chosen("auto").configured == "auto"


NO_REDIS = """
import sys
sys.modules[sys.argv[1]] = None
from tenure import Tenure
from tenure.config import Settings
print(Tenure(settings=Settings.from_environ({"QUEUE_CONNECTION": "auto"})).infrastructure().reason)
try:
    Tenure("redis://h").queue()
except Exception as error:
    print(error)
try:
    import tenure.drivers.redis
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("library", ["redis", "hiredis"])
def test_without_the_redis_extra_its_name_is_told(at_home: Path, library: str) -> None:
    source = str(Path(tenure.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", NO_REDIS, library],
        env={**os.environ, "PYTHONPATH": source},
        cwd=at_home,
        capture_output=True,
        text=True,
        check=True,
    )
    auto, asked, imported = done.stdout.splitlines()
    assert auto == "the redis extra is not installed"
    assert "pip install 'tenure[redis]'" in asked
    assert imported.startswith("MissingExtra")
    assert "pip install 'tenure[redis]'" in imported


def test_keys_of_mail_and_notifications_make_no_connection_of_these_names() -> None:
    environ = {"TENURE_MAIL_DEFAULT_URL": "smtp://mail.test", "TENURE_NOTIFY_OPS_URL": "json://ops.test"}
    for name in ("mail", "notify"):
        with pytest.raises(ConfigurationError, match=f"TENURE_{name.upper()}_URL: is not set"):
            Settings.from_environ(environ).connection(name)
    found = Settings.from_environ({**environ, "REDIS_MAIL_HOST": "redis.test"}).connection("mail")
    assert found.address.driver == "redis"
