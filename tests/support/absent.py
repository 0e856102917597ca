"""What a test says when what it needs is not there."""

import os
from typing import NoReturn

import pytest

PREFIX = "NOT PROVEN"


def not_proven(what: str, remedy: str) -> NoReturn:
    """Skip the test as loudly as the place asks: in CI nothing may be missing."""
    message = f"{PREFIX}: there is no {what} here ({remedy})"
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
