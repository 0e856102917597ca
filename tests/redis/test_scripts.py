"""The Lua files keep the rules that make them safe: declared keys, constant text, checks before writes."""

import re
from collections.abc import Mapping

import pytest

from tenure.drivers.redis.scripts import Script, Scripts, packaged

LISTED, STREAMED = Scripts(), Scripts(line="stream")
OWN = [f"stream/{name}" for name in STREAMED.names if name not in LISTED.names]
NAMES = [*LISTED.names, *OWN]
INCLUDES = sorted(set(packaged()) - set(NAMES))


def made(name: str) -> Script:
    return STREAMED[name.removeprefix("stream/")] if name in OWN else LISTED[name]


def keys_in_header(name: str) -> list[str]:
    [names] = re.findall(r"^-- KEYS: (.*)$", packaged()[name], re.MULTILINE)
    return [re.sub(":", "_", key) for key in str(names).split()]


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
    text = code(packaged()[name])
    taken = re.findall(r"KEYS\[(\d+)\]", text)
    assert [int(number) for number in taken] == list(range(1, len(made(name).keys) + 1))
    names = [local.strip() for line in re.findall(r"local ([\w, ]+)=\s*KEYS", text) for local in line.split(",")]
    assert [{"fence_key": "fence"}.get(local, local) for local in names] == keys_in_header(name)
    assert not re.search(r"\bKEYS\b(?!\[\d+\])", text)


@pytest.mark.parametrize("name", INCLUDES)
def test_an_include_takes_no_keys_of_its_own(name: str) -> None:
    assert "KEYS" not in code(packaged()[name])


# S16
@pytest.mark.parametrize("name", [*NAMES, *INCLUDES])
def test_a_script_calls_commands_on_declared_keys_only(name: str) -> None:
    text = code(packaged()[name])
    calls = re.findall(r"\bcall\('([A-Z]+)'((?:, '[A-Z]+')*)(?:, ([^()]*))?", text)
    assert len(calls) == len(re.findall(r"\bcall\(", text))
    keys = {*keys_in_header(name), "fence_key"} if name in NAMES else set()
    for command, _, arguments in calls:
        if command == "TIME":
            continue
        named = [argument.strip() for argument in arguments.split(",")]
        if command == "XREADGROUP":
            named = named[named.index("'STREAMS'") + 1 :]
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
    for scripts, folder in ((LISTED, "list"), (STREAMED, "stream")):
        if name not in OWN or scripts is STREAMED:
            expected = ""
            for line in sources[name].splitlines(keepends=True):
                include = re.fullmatch(r"-- include: (\w+)\n", line)
                own = include and sources.get(f"{folder}/{include[1]}")
                expected += own or (sources[f"include/{include[1]}"] if include else line)
            assert scripts[name.removeprefix("stream/")].source.decode() == expected


def test_what_one_line_needs_the_other_has_too() -> None:
    lists = {name.removeprefix("list/") for name in INCLUDES if name.startswith("list/")}
    assert lists == {name.removeprefix("stream/") for name in INCLUDES if name.startswith("stream/")}


def test_every_include_is_used() -> None:
    used = {include for name in NAMES for include in re.findall(r"-- include: (\w+)", packaged()[name])}
    assert used == {name.partition("/")[2] for name in INCLUDES}


def test_a_file_that_names_no_keys_is_no_script() -> None:
    with pytest.raises(ValueError, match=r"odd\.lua names no keys"):
        Script("odd", "return 1")
