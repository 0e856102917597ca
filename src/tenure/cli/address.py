"""``--http [HOST:]PORT``: where a worker answers, and where a probe asks it."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from tenure.cli.options import setting
from tenure.web.server import Address

F = TypeVar("F", bound=Callable[..., Any])
LOCAL: Final = "127.0.0.1"
_ADDRESS: Final = re.compile(r"(?:(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>[0-9]{1,5})")


def http_option(**attributes: Any) -> Callable[[F], F]:
    """Declare ``--http``."""
    return setting("--http", callback=_checked, metavar="[HOST:]PORT", **attributes)


def _checked(_: click.Context, __: click.Parameter, value: str | None) -> Address | None:
    if value is None:
        return None
    found = _ADDRESS.fullmatch(value)
    if found is None or int(found["port"]) > 65535:
        raise click.BadParameter(f"{value!r} is not of the form [HOST:]PORT, such as 8080 or 0.0.0.0:8080")
    return Address((found["host"] or LOCAL).strip("[]"), int(found["port"]))
