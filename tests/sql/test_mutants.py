"""Take one protection out of a statement, and the suite notices.

Each mutant is one statement with one exact replacement: a behaviour that passes on the statements as they are must
fail with it.
"""

import pathlib

import pytest

from tenure.drivers.sql.sqlite import statements
from tests.contract import stores
from tests.contract.mutants import Mutant, notices
from tests.sql.mutations import MUTANTS, TOKENS


def named(mutant: Mutant) -> str:
    return f"{mutant.text} {mutant.name}"


def test_every_statement_that_acts_under_a_lease_has_a_mutant_without_tokens() -> None:
    fenced = {name for name, text in vars(statements).items() if isinstance(text, str) and "token = ? AND" in text}
    assert fenced == {mutant.text for mutant in TOKENS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=named)
async def test_a_behaviour_notices(mutant: Mutant, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stores.sqlite_store(tmp_path, "sound") as sound:
        assert not await notices(mutant.noticed_by, sound), "it fails on the statements as they are"
    monkeypatch.setattr(statements, mutant.text, mutant.of(getattr(statements, mutant.text)))
    async with stores.sqlite_store(tmp_path, "mutated") as store:
        assert await notices(mutant.noticed_by, store), "nobody noticed"
