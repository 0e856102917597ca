"""The work of the demo's jobs, as a plain function that knows nothing of jobs."""

import ast
from pathlib import Path
from typing import Self

import msgspec


class Counts(msgspec.Struct, frozen=True):
    """What is in one source file, or in many."""

    lines: int = 0
    functions: int = 0
    classes: int = 0
    imports: int = 0

    def __add__(self, other: Self) -> "Counts":
        return Counts(
            self.lines + other.lines,
            self.functions + other.functions,
            self.classes + other.classes,
            self.imports + other.imports,
        )


def count(path: str) -> Counts:
    """Parse a file and count what is in it. Raises what the parser raises, mostly ``SyntaxError``."""
    source = Path(path).read_bytes()
    functions = classes = imports = 0
    for node in ast.walk(ast.parse(source, path)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions += 1
            case ast.ClassDef():
                classes += 1
            case ast.Import() | ast.ImportFrom():
                imports += len(node.names)
    return Counts(source.count(b"\n"), functions, classes, imports)
