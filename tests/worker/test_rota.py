"""Which queues are asked next: all together, and apart while some of them fail."""

from tenure.errors import ConnectionFailed, StoreRefused
from tenure.worker.rota import Rota

QUEUES = ("high", "default", "low")
BROKEN = StoreRefused("WRONGTYPE", "another type")
AWAY = ConnectionFailed("away")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rounds(rota: Rota, number: int, broken: set[str]) -> list[tuple[str, ...]]:
    """Ask so many times a store where these queues fail; return what was asked."""
    asked = []
    for _ in range(number):
        queues = rota.next(1.0).queues
        asked.append(queues)
        if broken & set(queues):
            rota.failed(queues, BROKEN)
        else:
            rota.answered(queues)
    return asked


def test_all_queues_are_asked_together_as_long_as_none_fails() -> None:
    rota = Rota(QUEUES, Clock())
    assert rounds(rota, 3, set()) == [QUEUES] * 3
    assert rota.next(1.0).whole


def test_one_that_fails_alone_is_left_out_and_the_others_go_on() -> None:
    clock = Clock()
    rota = Rota(QUEUES, clock)
    asked = rounds(rota, 8, {"high"})
    assert asked[0] == QUEUES
    assert sorted(asked[1:4]) == [("default",), ("high",), ("low",)]
    assert asked[4:] == [("default", "low")] * 4
    assert not rota.failing
    well = rota.next(1.0)
    assert 0 < well.wait <= 0.1, "it waits no longer than until the sick one is due"
    assert not well.whole
    clock.now = 1.0
    assert rota.next(1.0) == (("high",), 0.0, False)


def test_one_that_works_again_is_asked_with_the_others_in_their_order() -> None:
    clock = Clock()
    rota = Rota(QUEUES, clock)
    rounds(rota, 6, {"default"})
    clock.now = 10.0
    assert rounds(rota, 2, set()) == [("default",), QUEUES]


def test_a_store_that_is_away_costs_one_call_a_try_and_a_growing_wait() -> None:
    rota = Rota(QUEUES, Clock())
    asked, waits = [], []
    for _ in range(9):
        asked.append(rota.next(1.0).queues)
        waits.append(rota.failed(asked[-1], AWAY))
        assert rota.failing
    assert [len(queues) for queues in asked] == [3] + [1] * 8
    assert all(wait > 0 for wait in waits)
    assert waits[-1] >= 1.0
    assert rounds(rota, 4, set())[-1] == QUEUES
    assert not rota.failing


def test_when_the_last_that_worked_fails_too_the_wait_grows_as_for_a_store_that_is_away() -> None:
    rota = Rota(QUEUES, Clock())
    rounds(rota, 8, {"high", "low"})
    assert rota.next(1.0).queues == ("default",)
    assert rota.failed(("default",), AWAY) > 0
    assert rota.failing
    assert rounds(rota, 12, {"high"})[-1] != QUEUES
    assert not rota.failing


def test_a_single_queue_is_always_asked_as_a_whole() -> None:
    rota = Rota(("default",), Clock())
    assert rota.failed(("default",), BROKEN) > 0
    assert rota.failing
    assert rota.next(1.0) == (("default",), 1.0, True)
    rota.answered(("default",))
    assert not rota.failing
