"""The house rules that a machine can judge: each takes a file's path and text and returns its findings.

Forbidden words are put together from pieces here, so that this file keeps its own rules.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

Rule = Callable[[PurePosixPath, str], list[str]]

CODE = {".py", ".lua", ".sh", ".toml", ".yml", ".yaml", ""}
LONGEST_FILE = 399
WHOLE_DATABASE = re.compile(
    r"\bflush" r"(?:db|all)\b|['\"]ke" r"ys(?:['\"]\s*[,)]| +\S*\*)|\.ke" r"ys\(\s*(?:pattern\s*=|[rbf]*['\"])",
    re.IGNORECASE,
)
BROAD_KILL = re.compile(r"\b(?:p" r"kill|kill" r"all)\b")
REGISTRY = re.compile(
    r"\bpy"
    r"pi\.(?:org|io)\b|python"
    r"hosted\.org|registry\.np"
    r"mjs\.org|registry\.yarn"
    r"pkg\.com|proxy\.go"
    r"lang\.org"
)
MACHINE_PATH = re.compile(
    r"(?<![\w./}~-])/(?:wo" r"rk|ro" r"ot|tmp/de" r"v|opt/whe" r"els|opt/py" r"pi|home/\w+)(?![\w-])"
)
FAKES = {"mock", "unittest.mock", "pytest_mock", "fakeredis"}
SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep", "sleep"}
ALLOWED_SLEEP = "# handler"
CATCHES_ALL = {"Exception", "BaseException"}


def lines_matching(pattern: re.Pattern[str], text: str) -> list[str]:
    return [f"{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


def nodes(path: PurePosixPath, text: str) -> Iterator[ast.AST]:
    if path.suffix == ".py":
        yield from ast.walk(ast.parse(text))


def short_files(path: PurePosixPath, text: str) -> list[str]:
    """A Python or Lua file has one role and fewer than 400 lines."""
    length = len(text.splitlines())
    return [f"{length} lines"] if path.suffix in {".py", ".lua"} and length > LONGEST_FILE else []


def no_whole_database(path: PurePosixPath, text: str) -> list[str]:
    """No command that reads or empties a whole database: others may live in it."""
    return lines_matching(WHOLE_DATABASE, text) if path.suffix in CODE else []


def no_broad_kill(path: PurePosixPath, text: str) -> list[str]:
    """Processes are ended by their id, never by their name."""
    return lines_matching(BROAD_KILL, text) if path.suffix in CODE else []


def no_registry(path: PurePosixPath, text: str) -> list[str]:
    """No file names a package registry: where packages come from is the reader's configuration."""
    return lines_matching(REGISTRY, text)


def no_machine_path(path: PurePosixPath, text: str) -> list[str]:
    """No file names a place on the machine where it was written."""
    return lines_matching(MACHINE_PATH, text)


def no_fakes(path: PurePosixPath, text: str) -> list[str]:
    """Tests run against the real thing."""
    found: list[str] = []
    for node in nodes(path, text):
        if isinstance(node, ast.Import):
            found += [f"{node.lineno}: import {alias.name}" for alias in node.names if alias.name in FAKES]
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
            found += [f"{node.lineno}: from {node.module}"] * bool(names & FAKES)
    return found


def no_sleeping_tests(path: PurePosixPath, text: str) -> list[str]:
    """A test waits for a fact, not for time; the work of a job in a test may be to sleep, and says so."""
    if path.parts[0] != "tests" or path.is_relative_to("tests/support"):
        return []
    lines = text.splitlines()
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in nodes(path, text)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in SLEEPS
        and ast.unparse(node.args[0] if node.args else node) != "0"
        and ALLOWED_SLEEP not in lines[node.lineno - 1]
    ]


def no_swallowed_errors(path: PurePosixPath, text: str) -> list[str]:
    """Nothing catches everything and goes on in silence."""
    found: list[str] = []
    for node in nodes(path, text):
        if isinstance(node, ast.ExceptHandler):
            silent = all(isinstance(step, ast.Pass | ast.Continue) or _is_ellipsis(step) for step in node.body)
            if silent and (node.type is None or ast.unparse(node.type) in CATCHES_ALL):
                found.append(f"{node.lineno}: {ast.unparse(node).splitlines()[0]}")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            broad = any(ast.unparse(argument) in CATCHES_ALL for argument in node.args)
            found += [f"{node.lineno}: {ast.unparse(node)}"] * broad
    return found


def _is_ellipsis(step: ast.stmt) -> bool:
    return isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant) and step.value.value is ...


RULES: list[Rule] = [
    short_files,
    no_whole_database,
    no_broad_kill,
    no_registry,
    no_machine_path,
    no_fakes,
    no_sleeping_tests,
    no_swallowed_errors,
]
