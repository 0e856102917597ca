"""How many inputs hostile bytes are tried with, and what they are made of."""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

LONG_RUN = int(os.environ.get("TENURE_TORTURE_SCALE") or 1) > 1
INPUTS = int(os.environ.get("TENURE_FUZZ_INPUTS") or (1_000_000 if LONG_RUN else 3_000))
"""Inputs of a whole run, shared by all targets."""


def inputs(share: float) -> settings:
    """Return settings with this share of all inputs."""
    return settings(
        max_examples=max(20, int(INPUTS * share)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
        database=None,
    )


DIGITS = st.sampled_from([b"0", b"1", b"2", b"30000", b"9223372036854775808", b"9" * 25, b"9" * 400, b"9" * 5000])
ODD = [b"-1", b"-0", b"", b"a", b"1e400", b"nan", b"inf", b"1.5", b"\xff", b"\x00", b" 1", b"+1", b"1_0", b"\xd9\xa1"]
FIELDS = DIGITS | st.sampled_from(
    [*ODD, *(bytes([letter]) for letter in b'spfecn"\\'), b"[]", b"{}", b"null", b"default"]
)
"""What stands between the bars of records, members and answers."""

BARRED = st.lists(FIELDS | st.binary(max_size=6), max_size=12).map(b"|".join)
LINES = st.lists(BARRED | st.binary(max_size=20), max_size=4).map(b"\n".join)

SIGNS = [bytes([sign]) for sign in b'{}[],:"\\10- ']
NAMES = [
    b'"v"',
    b'"id"',
    b'"name"',
    b'"queue"',
    b'"args"',
    b'"kwargs"',
    b'"meta"',
    b'"timeout":',
    b'"priority":',
    b'"$type"',
]
STARTS = [b'{"v":1,"id":"a","name":"n","queue":"q"', b'{"v":2,', b"[" * 200, b"{" * 60]
ODD_JSON = [b"null", b"true", b"NaN", b"1e999", b"9" * 5000, b"\\u0000", b"\\ud800", b"\xef\xbb\xbf", b"\xff"]
JSON_PIECES = st.sampled_from([*SIGNS, *NAMES, *STARTS, *ODD_JSON])
JSONISH = st.lists(JSON_PIECES | st.binary(max_size=4), max_size=24).map(b"".join)
HOSTILE = st.binary(max_size=64) | LINES | JSONISH
TEXT = st.text(max_size=40) | st.sampled_from(
    ["", "-", "--", "--json", "\ud800", "\x00", "a" * 200, "1e400", "nan", "-1", "%s", "{x}", "../x"]
)
