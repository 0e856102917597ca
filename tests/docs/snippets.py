"""Finds the examples in a Markdown text and the commands in an example."""

import dataclasses
import re

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[A-Za-z]*)[^\n`]*$")
REMARK = re.compile(r"^ *<!-- *(?P<key>not run|with): *(?P<value>.+?) *-->$")
FILE_NAME = re.compile(r"^# (?P<name>[\w/]+\.py)$")
RUN = ("tenure", "python", "make")


@dataclasses.dataclass(frozen=True)
class Snippet:
    """One fenced block, with what the comments directly above it say."""

    line: int
    language: str
    text: str
    not_run: str | None = None
    server: str | None = None

    @property
    def file_name(self) -> str | None:
        """The name that a Python example gives itself in its first line, for the examples after it."""
        found = FILE_NAME.match(self.text.partition("\n")[0])
        return found["name"] if found else None


def snippets(markdown: str) -> list[Snippet]:
    """Return the fenced blocks in order; an unclosed one is an error."""
    found: list[Snippet] = []
    remarks: dict[str, str] = {}
    block: list[str] | None = None
    opening: re.Match[str] | None = None
    begun = 0
    for number, line in enumerate(markdown.splitlines(), 1):
        if block is None:
            opening = FENCE.match(line)
            if opening:
                block, begun = [], number
            elif remark := REMARK.match(line):
                remarks[remark["key"]] = remark["value"]
            elif line.strip():
                remarks = {}
        elif opening is not None and line.strip() == opening["fence"]:
            text = "\n".join(row.removeprefix(opening["indent"]) for row in block) + "\n"
            found.append(Snippet(begun, opening["language"], text, remarks.get("not run"), remarks.get("with")))
            block, remarks = None, {}
        else:
            block.append(line)
    if block is not None:
        raise ValueError(f"the block that begins in line {begun} does not end")
    return found


def commands(snippet: Snippet) -> list[str]:
    """Return the commands of a shell example that can be judged; of a console example, those after a prompt."""
    text = snippet.text.replace("\\\n", " ")
    rows = [row.strip() for row in text.splitlines()]
    if snippet.language == "console":
        rows = [row[2:].strip() for row in rows if row.startswith("$ ")]
    return [row for row in rows if row.split(maxsplit=1)[:1] and row.split(maxsplit=1)[0] in RUN]
