"""A line of jobs: sorted, removable, and no longer than it must be."""

import random

import pytest

from tenure.drivers.memory.line import Job, Key, Line


def job(name: str) -> Job:
    return Job(id=name, incarnation=1, envelope=b"", priority=0, crash_limit=None, expires=None, keep=0.0)


def names(line: Line) -> list[str]:
    """Empty the line, from its head."""
    order = []
    while head := line.first():
        order.append(head[1].id)
        line.remove(head[1])
    return order


def test_the_head_is_the_lowest_key() -> None:
    line = Line()
    for name, key in {"c": (2.0, 1), "a": (0.0, 9), "b": (0.0, 10)}.items():
        line.add(job(name), key)
    assert len(line) == 3
    assert names(line) == ["a", "b", "c"]
    assert line.first() is None


def test_a_removed_job_is_passed_over_wherever_it_stood() -> None:
    line = Line()
    jobs = [job(str(number)) for number in range(10)]
    for number, one in enumerate(jobs):
        line.add(one, (0.0, number))
    for number in (0, 5, 9):
        line.remove(jobs[number])
        assert jobs[number] not in line
    assert names(line) == ["1", "2", "3", "4", "6", "7", "8"]


def test_a_job_stands_in_one_place_only_though_it_moves_and_comes_back() -> None:
    line = Line()
    one, other = job("one"), job("other")
    line.add(one, (1.0, 1))
    line.add(other, (2.0, 2))
    line.add(one, (3.0, 1))
    line.add(one, (1.0, 1))
    line.add(one, (3.0, 1))
    assert len(line) == 2
    assert [line.count_until(rank) for rank in (1, 2, 3)] == [0, 1, 2]
    assert names(line) == ["other", "one"]


def test_counting_agrees_with_looking_at_each() -> None:
    dice = random.Random(7)
    line = Line()
    ranks: dict[str, int] = {}
    for number in range(500):
        one = job(f"j{dice.randint(0, 99)}")
        if one.id in ranks and dice.random() < 0.4:
            line.remove(one)
            del ranks[one.id]
        else:
            ranks[one.id] = dice.randint(0, 20)
            line.add(one, (ranks[one.id], number))
        limit = dice.randint(0, 20)
        assert line.count_until(limit) == sum(rank <= limit for rank in ranks.values())


def test_a_line_keeps_nothing_of_the_gone() -> None:
    line = Line()
    stays = job("stays")
    line.add(stays, (0.0, 0))
    for number in range(10_000):
        line.add(job("comes and goes"), (1e9, number))
        line.remove(job("comes and goes"))
    assert len(line) == 1
    assert line.behind(None, 10) == [((0.0, 0), stays)]
    assert line.count_until(1e9) == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_a_long_line_is_read_from_any_place_as_if_it_were_sorted_each_time(seed: int) -> None:
    dice = random.Random(seed)
    line = Line()
    places: dict[str, Key] = {}
    for number in range(6000):
        one = job(f"j{dice.randint(0, 3500)}")
        if one.id in places and dice.random() < 0.3:
            line.remove(one)
            del places[one.id]
        else:
            places[one.id] = float(dice.randint(0, 500)), number
            line.add(one, places[one.id])
        if number % 200 == 199:
            order = sorted(places.values())
            assert [key for key, _ in line.behind(None, 10_000)] == order
            limit, skipped = dice.randint(1, 1500), dice.randint(0, 4000)
            assert [key for key, _ in line.beyond(skipped, limit)] == order[skipped : skipped + limit]
            place = dice.choice([*order, (250.0, -1), (-1.0, 0), (501.0, 0)])
            behind = [key for key in order if key > place]
            assert [key for key, _ in line.behind(place, limit)] == behind[:limit]
            assert line.count_until(250) == sum(rank <= 250 for rank, _ in order)
    assert len(names(line)) == len(places)
    assert line.behind(None, 5) == line.beyond(0, 5) == []
