"""Whatever is shown cannot do more than be seen."""

import json

import pytest

from tenure.cli import output


@pytest.mark.parametrize(
    "harmful",
    [
        "\x1b[2J\x1b]0;title\x07",  # clears the screen, sets the window's title
        "\x9b31m",  # the one-character form of an escape
        "a\r\nforged line",
        "a\u202egpj.exe",  # turns the text around
        "a\u2066b\u2069",
        "a\u200bb",
        "a\u2028b",
        "\x7f",
        "\ud800",
    ],
)
def test_control_and_direction_characters_are_escaped(harmful: str) -> None:
    shown = output.inert(harmful)
    assert shown.isprintable()
    assert "\\" in shown
    assert output.table(("name",), [(harmful,)]).split("\n")[1].isprintable()
    encoded = output.as_json({"name": harmful})
    assert encoded.isascii()
    assert encoded.isprintable()
    assert json.loads(encoded) == {"name": harmful}


def test_ordinary_text_of_any_language_is_left_as_it_is() -> None:
    for text in ("plain", "naïve café", "日本語", "emoji 🙂", "back\\slash"):
        assert output.inert(text) == text


def test_lines_keep_their_ends_and_nothing_else() -> None:
    assert output.inert_lines("one\n\x1b[1mtwo\r") == "one\n\\x1b[1mtwo\\r"


def test_a_table_aligns_its_columns_and_numbers_to_the_right() -> None:
    shown = output.table(("queue", "ready"), [("emails", 5), ("b", 12345), ("c", None)])
    assert shown.split("\n") == ["queue    ready", "emails       5", "b       12,345", "c            -"]


def test_a_table_without_rows_has_its_head() -> None:
    assert output.table(("queue", "ready"), []) == "queue  ready"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, None),
        (-1.0, "0.0s"),
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (10.0, "10s"),
        (192.0, "3m12s"),
        (3600.0, "1h0m"),
        (190_000.0, "2d4h"),
    ],
)
def test_an_age_is_told_in_its_two_largest_units(seconds: float | None, shown: str | None) -> None:
    assert output.age(seconds) == shown


def test_a_time_is_told_in_utc_and_an_impossible_one_as_it_is() -> None:
    assert output.utc(0) == "1970-01-01T00:00:00Z"
    assert output.utc(1e300) == "1e+300"
    assert output.utc(float("nan")) == "nan"
