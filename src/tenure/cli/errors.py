"""How a command ends: one clear line on standard error, and an exit code that a script can rely on."""

import os
import sys
from collections.abc import Callable
from enum import IntEnum

import click

from tenure.cli.output import inert, inert_lines, note
from tenure.errors import (
    AppNotFound,
    ConfigurationError,
    ConnectionFailed,
    OutcomeUnknown,
    Refused,
    TenureError,
)


class ExitCode(IntEnum):
    """What every command ends with."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    """A wrong option or argument, or wrong configuration."""
    APP = 3
    """The application cannot be imported."""
    STORE = 4
    """The store is unreachable."""
    INTERRUPTED = 130
    """Ctrl-C, as shells expect it."""


class CommandFailed(TenureError):
    """A command did not do what it was asked to; the message says what, and the code is 1 unless given."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        self.code = code
        super().__init__(message)


class AppImportFailed(AppNotFound):
    """The application's own code raised while it was imported; ``traceback`` is its own."""

    def __init__(self, key: str, problem: str, traceback: str) -> None:
        self.traceback = traceback
        super().__init__(key, problem)


def code_of(error: TenureError) -> ExitCode:
    """Return the exit code for an error of tenure."""
    match error:
        case CommandFailed():
            return error.code
        case AppNotFound():
            return ExitCode.APP
        case ConfigurationError() | Refused():
            return ExitCode.USAGE
        case ConnectionFailed() | OutcomeUnknown():
            return ExitCode.STORE
        case _:
            return ExitCode.FAILED


def run(command: Callable[[], object]) -> int:
    """Run a command to its exit code, and tell on standard error why, when it is not 0.

    A bug of tenure's is the one thing that is let through: its traceback is what a report needs.
    """
    try:
        code = command()
    except click.UsageError as error:
        return _usage(error)
    except (click.Abort, KeyboardInterrupt):
        note("tenure: interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. What is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except TenureError as error:
        if isinstance(error, AppImportFailed):
            note(inert_lines(error.traceback.rstrip()))
        note(f"tenure: {inert(error)}")
        return code_of(error)
    return code if isinstance(code, int) else ExitCode.DONE


def _usage(error: click.UsageError) -> ExitCode:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        note(error.format_message())
        return ExitCode.USAGE
    message = inert(error.format_message().rstrip("."))
    if message[1:2].islower():
        message = message[:1].lower() + message[1:]
    if isinstance(error, click.BadParameter) and (key := _key_of(error)):
        message = f"{key}: {message}"
    path = error.ctx.command_path if error.ctx else "tenure"
    note(f"{path}: {message}; see {path} --help")
    return ExitCode.USAGE


def _key_of(error: click.BadParameter) -> str | None:
    """Return the environment variable that the wrong value came from, if it came from one."""
    if error.ctx is None or error.param is None or not error.param.name:
        return None
    source = error.ctx.get_parameter_source(error.param.name)
    key = error.param.envvar
    return key if source is click.core.ParameterSource.ENVIRONMENT and isinstance(key, str) else None
