"""Which application a command is about, and how it is imported."""

import importlib
import importlib.util
import os
import re
import sys
import tomllib
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final

import msgspec

from tenure.app import Tenure
from tenure.cli.errors import AppImportFailed
from tenure.errors import AppNotFound, ConfigurationError, TenureError
from tenure.naming import shown

APP_KEY: Final = "TENURE_APP"
_TARGET: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_HERE: Final = str(Path(__file__).parents[1])


class Target(msgspec.Struct, frozen=True):
    """``module:attribute``, where it was said, and the directory that its imports start from."""

    module: str
    attribute: str
    said: str
    root: Path

    @property
    def text(self) -> str:
        """The target as it was written."""
        return f"{self.module}:{self.attribute}"


def find_app(argument: str | None) -> Tenure:
    """Return the application named by the argument, by ``TENURE_APP`` or by ``pyproject.toml``, in that order.

    Raises ``ConfigurationError`` when none of them names one, or not as ``module:attribute``; ``AppNotFound`` when it
    cannot be imported.
    """
    return load(find_target(argument))


def find_target(argument: str | None) -> Target:
    """Return which application is meant, without importing it."""
    here = Path.cwd()
    if argument:
        return _parsed(argument, "the argument APP", here)
    if text := os.environ.get(APP_KEY, "").strip():
        return _parsed(text, APP_KEY, here)
    for directory in (here, *here.parents):
        configured = _in_pyproject(directory / "pyproject.toml")
        if configured is not None:
            return _parsed(configured, f"[tool.tenure] app in {directory / 'pyproject.toml'}", directory)
    raise ConfigurationError(
        "APP",
        f"no application is named: give it as module:attribute, in {APP_KEY}, "
        "or as app under [tool.tenure] in pyproject.toml",
    )


def load(target: Target) -> Tenure:
    """Import the target's module and return the application in it."""
    root = str(target.root)
    if root not in sys.path:
        sys.path.insert(0, root)
    module = _import(target)
    value: Any = module
    for name in target.attribute.split("."):
        if not hasattr(value, name):
            there = sorted(name for name, value in vars(module).items() if isinstance(value, Tenure))
            hint = f"; it has {', '.join(there)}" if there else ""
            raise AppNotFound(target.said, f"module {target.module!r} has no {target.attribute!r}{hint}")
        value = getattr(value, name)
    if not isinstance(value, Tenure):
        raise AppNotFound(target.said, f"{target.text!r} is not a Tenure application but a {type(value).__name__}")
    return value


def _parsed(text: str, said: str, root: Path) -> Target:
    if not _TARGET.fullmatch(text) or ".py:" in text:
        raise ConfigurationError(said, f"{shown(text)} is not of the form module:attribute, such as shop.tasks:app")
    module, _, attribute = text.partition(":")
    return Target(module, attribute, said, root)


def _in_pyproject(path: Path) -> str | None:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(path), f"cannot be read: {error}") from None
    table = content.get("tool", {}).get("tenure", {})
    text = table.get("app") if isinstance(table, dict) else None
    if text is None or isinstance(text, str):
        return text
    raise ConfigurationError(str(path), "[tool.tenure] app must be text: module:attribute")


def _import(target: Target) -> ModuleType:
    try:
        return importlib.import_module(target.module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's code may raise anything here, SystemExit included
        if isinstance(error, ModuleNotFoundError) and _is_target(error.name, target.module):
            raise AppNotFound(
                target.said, f"there is no module {error.name!r} in {target.root} or on the path"
            ) from None
        raise AppImportFailed(
            target.said,
            f"{target.module!r} raised {type(error).__name__} while it was imported",
            "".join(_own_lines(error)),
        ) from None


def _is_target(missing: str | None, module: str) -> bool:
    """Tell whether it is the module itself that is missing, or a package around it, rather than one it imports."""
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def _own_lines(error: BaseException) -> Iterator[str]:
    """Format the error without the frames that lead to the user's code, and without ours where we refuse something."""
    frames = list(_frames(error.__traceback__))
    while frames and _leads(frames[0]):
        frames.pop(0)
    if isinstance(error, TenureError):
        while frames and frames[-1].filename.startswith(_HERE):
            frames.pop()
    formatted = traceback.TracebackException.from_exception(error)
    formatted.stack = traceback.StackSummary.from_list(frames)
    return formatted.format()


def _frames(trace: TracebackType | None) -> Iterator[traceback.FrameSummary]:
    return iter(traceback.extract_tb(trace))


def _leads(frame: traceback.FrameSummary) -> bool:
    return frame.filename in {__file__, importlib.__file__} or frame.filename.startswith("<frozen importlib")
