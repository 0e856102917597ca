"""URLs of database servers are read strictly, select what they name, and never show a secret."""

import importlib.util
from typing import Any

import pytest

from tenure import ConfigurationError, Tenure
from tenure.config import Settings, embedded
from tenure.databases import of
from tenure.drivers.sql.mysql.server import Mysql
from tenure.drivers.sql.postgresql.server import Postgres
from tenure.drivers.sql.server.names import Names
from tenure.drivers.sql.server.statements import LEASE, PUSH
from tenure.drivers.sql.server.texts import Texts
from tenure.errors import MissingExtra


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgresql://h/db", ("postgresql", "h", 5432, "", "", "db", {})),
        ("postgres://u:p%40w@h:6000/d%62", ("postgresql", "h", 6000, "u", "p@w", "db", {})),
        (
            "postgresql+psycopg://[::1]:1/x?sslmode=require",
            ("postgresql", "::1", 1, "", "", "x", {"sslmode": "require"}),
        ),
        ("postgresql://u@/db?host=/run/pg", ("postgresql", "", 5432, "u", "", "db", {"host": "/run/pg"})),
        ("mysql://u@h/db", ("mysql", "h", 3306, "u", "", "db", {})),
        ("mariadb+pymysql://u@h/db?table_prefix=jobs_", ("mysql", "h", 3306, "u", "", "db", {"table_prefix": "jobs_"})),
    ],
)
def test_a_url_is_read_and_written_again(url: str, parts: tuple[Any, ...]) -> None:
    read = of(url, "KEY")
    assert (read.server, read.host, read.port, read.user, read.password, read.database, read.parameters) == parts
    assert of(read.text, "KEY") == read


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3c@ret@h/db",
        "postgresql://u:s3c/ret@h/db",
        "postgresql://u:s3c#ret@h/db",
        "postgresql://u:s3cret@h/",
        "postgresql://u:s3cret@h/a/b",
        "postgresql://u:s3cret@h:port/db",
        "postgresql://u:s3cret@h:70000/db",
        "postgresql://u:s3cret@a b/db",
        "postgresql://u:s3cret@h,i/db",
        "postgresql://u:s3cret@h/db?options=-csearch_path",
        "postgresql://u:s3cret@h/db?sslmode=a&sslmode=b",
        "postgresql://u:s3cret@h/db?schema=a;drop",
        "postgresql://u:s3cret@h/db?table_prefix=A-",
        "postgresql://u:s3cret@h/db?host=/run",
        "postgresql://u:s3cret@h/%ff",
        "mysql://u:s3cret@h/db?schema=s",
        "sqlite:///s3cret.db",
    ],
)
def test_a_url_that_could_mean_two_things_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^KEY: ") as refusal:
        of(url, "KEY")
    assert "s3c" not in str(refusal.value)


def test_nothing_of_a_url_is_shown() -> None:
    address = Settings.from_environ({"TENURE_URL": "postgresql://user:s3cret@host/db"}).connection()
    for shown in (repr(address), repr(address.address), repr(address.address.database)):
        assert not any(word in shown for word in ("user", "s3cret", "host"))


@pytest.mark.parametrize(
    ("environ", "driver"),
    [
        ({"DATABASE_URL": "postgresql://h/db"}, "sqlite"),
        ({"DATABASE_URL": "postgresql://h/db", "QUEUE_CONNECTION": "sqlite"}, "sqlite"),
        ({"DATABASE_URL": "postgresql://h/db", "QUEUE_CONNECTION": "sql"}, "postgresql"),
        ({"DATABASE_URL": "mysql://h/db", "QUEUE_CONNECTION": "sql"}, "mysql"),
        ({"DATABASE_URL": "mysql://h/db", "QUEUE_CONNECTION": "mariadb"}, "mysql"),
        ({"TENURE_URL": "postgresql://h/db", "QUEUE_CONNECTION": "sql"}, "postgresql"),
        ({"TENURE_URL": "postgresql://h/db"}, "postgresql"),
    ],
)
def test_a_database_server_is_used_only_when_it_is_asked_for(environ: dict[str, str], driver: str) -> None:
    assert Settings.from_environ(environ).connection().address.driver == driver


def test_auto_falls_back_to_the_database_that_the_environment_names() -> None:
    environ = {"QUEUE_CONNECTION": "auto", "DATABASE_URL": "postgresql://h/db"}
    fallback = Settings.from_environ(environ).connection().fallback
    assert fallback is not None
    assert fallback.driver == "postgresql"
    assert Settings.from_environ({"QUEUE_CONNECTION": "auto"}).connection().fallback == embedded()


@pytest.mark.parametrize(
    "environ",
    [
        {"QUEUE_CONNECTION": "postgresql"},
        {"QUEUE_CONNECTION": "postgresql", "DATABASE_URL": "mysql://u:s3cret@h/db"},
        {"QUEUE_CONNECTION": "mysql", "DATABASE_URL": "sqlite:///s3cret.db"},
        {"QUEUE_CONNECTION": "sql", "DATABASE_URL": "oracle://u:s3cret@h/db"},
    ],
)
def test_a_server_that_no_url_names_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"^DATABASE_URL: ") as refusal:
        Settings.from_environ(environ).connection()
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(("url", "extra"), [("postgresql://h/d", "postgres"), ("mysql://h/d", "mysql")])
def test_a_missing_library_is_told_with_the_extra_that_brings_it(
    url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = {"psycopg", "pymysql"}
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in libraries else find(name))
    with pytest.raises(MissingExtra, match=rf"pip install 'tenure\[{extra}\]'"):
        Tenure(url, namespace="n").infrastructure()


def test_what_a_url_says_reaches_the_client_library() -> None:
    ours = of("postgresql://u:p@h:1/d?sslmode=require&schema=s&table_prefix=t_", "KEY")
    assert Postgres.parameters(ours) == {
        **{"host": "h", "port": 1, "user": "u", "password": "p", "dbname": "d", "sslmode": "require"}
    }
    theirs = of("mysql://u:p@/d?unix_socket=/s&ssl_verify_identity=true", "KEY")
    assert Mysql.parameters(theirs) == {
        **{"port": 3306, "user": "u", "password": "p", "database": "d", "unix_socket": "/s"},
        "ssl_verify_identity": True,
    }


@pytest.mark.parametrize("names", [("Jobs_", None), ("jobs_", "a.b"), ('j"', None), ("", None), ("x" * 33, None)])
def test_names_of_tables_are_plain_identifiers(names: tuple[str, str | None]) -> None:
    with pytest.raises(ConfigurationError):
        Names(*names)


def test_a_prefix_and_a_schema_are_part_of_every_text() -> None:
    texts = Texts("postgresql", Names("jobs_", "queue"))
    assert "INSERT INTO queue.jobs_jobs (" in texts.of(PUSH)
    assert "UPDATE queue.jobs_jobs" in texts.of(LEASE)
    assert "UPDATE tenure_jobs" in Texts("mysql", Names()).of(LEASE)
