"""Take one protection out of a statement, and the suite notices.

Each mutant is one statement with one exact replacement: a behaviour that passes on the statements as they are must
fail with it.
"""

import pathlib
from types import ModuleType

import pytest

from tenure.drivers.sql.sqlite import compositions, statements
from tests.contract import stores
from tests.contract.mutants import Mutant, notices
from tests.sql.mutations import MUTANTS, TOKENS
from tests.sql.mutations_beside import COMPOSITIONS, MEMBERS, UNIQUE

MUTATED = [
    *((statements, mutant) for mutant in (*MUTANTS, *UNIQUE, *MEMBERS)),
    *((compositions, mutant) for mutant in COMPOSITIONS),
]


def named(given: object) -> str | None:
    return f"{given.text} {given.name}" if isinstance(given, Mutant) else ""


def test_every_statement_that_acts_under_a_lease_has_a_mutant_without_tokens() -> None:
    def fenced(module: ModuleType) -> set[str]:
        return {name for name, text in vars(module).items() if isinstance(text, str) and "token = ? AND" in text}

    assert fenced(statements) == {mutant.text for mutant in TOKENS}
    assert fenced(compositions) == {"FIND_MEMBER"} < {mutant.text for mutant in COMPOSITIONS}


@pytest.mark.parametrize(("module", "mutant"), MUTATED, ids=named)
async def test_a_behaviour_notices(
    module: ModuleType, mutant: Mutant, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stores.sqlite_store(tmp_path, "sound") as sound:
        assert not await notices(mutant.noticed_by, sound), "it fails on the statements as they are"
    monkeypatch.setattr(module, mutant.text, mutant.of(getattr(module, mutant.text)))
    async with stores.sqlite_store(tmp_path, "mutated") as store:
        assert await notices(mutant.noticed_by, store), "nobody noticed"
