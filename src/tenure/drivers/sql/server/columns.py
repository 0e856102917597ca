"""What columns and tables are made of; migrations that were released use it, so it is added to and not changed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import BigInteger, Column, LargeBinary, String
from sqlalchemy.dialects.mysql import LONGBLOB
from sqlalchemy.dialects.postgresql import BYTEA

BYTES: Final = LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb").with_variant(BYTEA(), "postgresql")

OPTIONS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        f"{dialect}_{name}": value
        for dialect in ("mysql", "mariadb")
        for name, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
    }
)
"""Of every table."""


def text(length: int) -> Any:
    """Return a type of plain text that is compared byte by byte: `a` is not `A`, and nothing is padded."""
    return (
        String(length)
        .with_variant(String(length, collation="C"), "postgresql")
        .with_variant(String(length, collation="utf8mb4_bin"), "mysql", "mariadb")
    )


def number(name: str, **options: Any) -> Column[int]:
    """Return a column of a whole number that is always there."""
    return Column(name, BigInteger, nullable=False, autoincrement=False, **options)
