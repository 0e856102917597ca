"""The Lua files keep the rules that make them safe: declared keys, constant text, checks before writes."""

import re
from collections.abc import Mapping

import pytest

from tenure.drivers.redis.scripts import Script, Scripts, packaged

NAMES = sorted(name for name in packaged() if not name.startswith("include/"))
INCLUDES = sorted(name for name in packaged() if name.startswith("include/"))
SCRIPTS = Scripts()


def code(source: str) -> str:
    """The text without its comments."""
    return re.sub(r"--[^\n]*", "", source)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_begins_with_its_purpose_keys_arguments_and_reply(name: str) -> None:
    lines = packaged()[name].splitlines()
    head = lines[: next(place for place, line in enumerate(lines) if not line.startswith("--"))]
    starts = [line.split()[1] for line in head if re.match(r"-- (KEYS|ARGV|Reply):", line)]
    assert starts == ["KEYS:", "ARGV:", "Reply:"]
    assert re.match(r"-- [A-Z].*", head[0])
    assert not head[0].startswith("-- KEYS")


@pytest.mark.parametrize("name", NAMES)
def test_a_script_takes_exactly_the_keys_that_its_header_names(name: str) -> None:
    script = SCRIPTS[name]
    text = code(packaged()[name])
    taken = re.findall(r"KEYS\[(\d+)\]", text)
    assert [int(number) for number in taken] == list(range(1, len(script.keys) + 1))
    names = [local.strip() for line in re.findall(r"local ([\w, ]+)=\s*KEYS", text) for local in line.split(",")]
    assert [{"fence_key": "fence"}.get(local, local) for local in names] == [
        re.sub(":", "_", key) for key in script.keys
    ]
    assert not re.search(r"\bKEYS\b(?!\[\d+\])", text)
    for include in re.findall(r"^-- include: (\w+)$", packaged()[name], re.MULTILINE):
        assert "KEYS" not in code(packaged()[f"include/{include}"])


# S16
@pytest.mark.parametrize("name", [*NAMES, *INCLUDES])
def test_a_script_calls_commands_on_declared_keys_only(name: str) -> None:
    text = code(packaged()[name])
    calls = re.findall(r"\bcall\('([A-Z]+)'(?:, ([^()]*))?", text)
    assert len(calls) == len(re.findall(r"\bcall\(", text))
    keys = {re.sub(":", "_", key) for key in SCRIPTS[name].keys} | {"fence_key"} if name in NAMES else set()
    for command, arguments in calls:
        if command == "TIME":
            continue
        named = [argument.strip() for argument in arguments.split(",")]
        several = {"UNLINK": len(named), "DEL": len(named), "EXISTS": len(named), "RENAME": 2}.get(command, 1)
        for key in named[:several]:
            # A name, never a text put together on the spot; of a key, or of a function's parameter.
            assert re.fullmatch(r"[a-z_]+", key), (command, key)
            assert name not in NAMES or key in keys or re.search(rf"function \w*\([^)]*\b{key}\b", text), (command, key)


# S16
@pytest.mark.parametrize("name", [*NAMES, *INCLUDES])
def test_a_script_neither_catches_errors_nor_carries_flags_nor_builds_code(name: str) -> None:
    source = packaged()[name]
    assert not source.startswith("#!")
    assert not re.search(r"\b(pcall|xpcall|loadstring|load|dofile|cjson|error)\b", code(source))


@pytest.mark.parametrize("name", NAMES)
def test_a_script_refuses_before_its_first_write_or_not_at_all(name: str) -> None:
    text = code(packaged()[name])
    writes = [text.find(f"call('{command}'") for command in ("DEL", "INCRBY", "HSET", "SET", "ZADD", "RPUSH", "HDEL")]
    first = min((place for place in writes if place >= 0), default=len(text))
    assert text.rfind("error_reply") < first


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_its_file_with_whole_includes_in_place_of_their_lines(name: str) -> None:
    sources: Mapping[str, str] = packaged()
    expected = ""
    for line in sources[name].splitlines(keepends=True):
        include = re.fullmatch(r"-- include: (\w+)\n", line)
        expected += sources[f"include/{include[1]}"] if include else line
    assert SCRIPTS[name].source.decode() == expected


def test_every_include_is_used() -> None:
    used = {f"include/{include}" for name in NAMES for include in re.findall(r"-- include: (\w+)", packaged()[name])}
    assert used == set(INCLUDES)


def test_a_file_that_names_no_keys_is_no_script() -> None:
    with pytest.raises(ValueError, match=r"odd\.lua names no keys"):
        Script("odd", "return 1")
