"""What the documentation of the wire form says is so."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tenure import envelope
from tenure.envelope import Envelope
from tenure.wire.form import MAX_DIGITS
from tests.support.codecs import there_and_back, wire_of
from tests.support.examples import Circle, Colour, Person, Square

DOCUMENT = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<hint>[^`]+)` \| `(?P<value>[^`]+)` \| `(?P<wire>[^`]+)` \|$", re.MULTILINE)
NAMES = {
    "UTC": UTC,
    "date": date,
    "datetime": datetime,
    "timedelta": timedelta,
    "Decimal": Decimal,
    "Circle": Circle,
    "Colour": Colour,
    "Person": Person,
    "Square": Square,
}
EXAMPLES = [tuple(cell.replace("\\|", "|") for cell in row.groups()) for row in ROW.finditer(DOCUMENT)]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 14


@pytest.mark.parametrize(("hint", "value", "wire"), EXAMPLES)
def test_an_example_is_written_as_the_document_says(hint: str, value: str, wire: str) -> None:
    annotation: Any = eval(hint, NAMES)
    given: Any = eval(value, NAMES)
    assert wire_of(annotation, given) == wire
    assert there_and_back(annotation, given) == given


def test_the_documents_envelope_is_one() -> None:
    block = re.search(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    assert block is not None
    assert envelope.decode(block[1].encode()).name == "shop.mail.send_welcome"


def test_the_document_lists_the_fields_of_an_envelope() -> None:
    table = DOCUMENT[DOCUMENT.index("| field |") : DOCUMENT.index("A field that is left out")]
    assert tuple(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == Envelope.__struct_fields__


def test_the_document_names_the_limits() -> None:
    assert f"{envelope.MAX_BYTES:,} encoded bytes" in DOCUMENT
    assert f"{envelope.MAX_DEPTH}\nlevels" in DOCUMENT
    assert f"{MAX_DIGITS:,} characters" in DOCUMENT
