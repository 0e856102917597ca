"""Child processes of tests do what the tests are told they do."""

import signal
import sys
from pathlib import Path

import pytest

from tests.support import processes


def test_a_child_is_paused_goes_on_and_dies() -> None:
    with processes.python("-c", "while True: pass") as child:
        child.pause()
        assert processes.state(child.pid) == "T"
        child.cont()
        assert processes.state(child.pid) != "T"
        child.kill9()
        assert child.exit_code == -signal.SIGKILL
        assert not processes.alive(child.pid)


def test_a_child_is_stopped_at_the_end_of_the_block_even_when_it_stands_still() -> None:
    with processes.python("-c", "print('up')\nwhile True: pass") as child:
        child.wait_for_output("up")
        child.pause()
    assert not processes.alive(child.pid)


def test_waiting_for_output_tells_when_the_child_ended_without_it() -> None:
    with processes.python("-c", "raise SystemExit('wrong')") as child:
        with pytest.raises(AssertionError, match="ended with 1 before writing 'right'"):
            child.wait_for_output("right")
        assert child.wait() == 1


def test_waiting_for_a_fact_ends() -> None:
    with pytest.raises(AssertionError, match=r"not in 0.05 s: a fact; the last answer was 0"):
        processes.eventually(int, 0.05, what="a fact")


async def test_waiting_for_an_asynchronous_fact() -> None:
    answers = [3, 0, 0]

    async def probe() -> int:
        return answers.pop()

    assert await processes.eventually_async(probe) == 3


@pytest.mark.skipif(not processes.dies_with_parent(), reason="this system has no setpriv")
def test_a_grandchild_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys\n"
        "from tests.support import processes\n"
        "with processes.python('-c', 'print(1)\\nwhile True: pass') as child:\n"
        "    child.wait_for_output('1')\n"
        "    print('child', child.pid, flush=True)\n"
        "    child.wait(60)\n"
    )
    with processes.spawn([sys.executable, script], env={"PYTHONPATH": str(Path(__file__).parents[2])}) as parent:
        parent.wait_for_output("\n")
        pid = int(parent.output.split()[1])
        parent.kill9()
        processes.eventually(lambda: not processes.alive(pid), what=f"process {pid} is gone")
