"""Weighted queues: each gets its share, and a lone job does not wait behind a busy queue (OB-13)."""

import asyncio
import math
from collections import Counter
from collections.abc import Mapping

import pytest

from tenure import Tenure
from tenure.errors import InvalidOption
from tenure.naming import new_token
from tenure.queue import Lease
from tenure.worker import WorkerOptions
from tenure.worker.shares import Shares, ordering
from tests.worker.support import drain, until, working

started: list[str] = []


async def notes(label: str) -> None:
    started.append(label)


async def notes_slowly(label: str) -> None:
    started.append(label)
    await asyncio.sleep(0.01)  # handler


@pytest.fixture(autouse=True)
def _nothing_started() -> None:
    started.clear()


def lease(queue: str) -> Lease:
    return Lease(
        queue=queue, id="x", incarnation=1, token=new_token(), fence=1, deliveries=1, free=0, crashes=0,
        length=60.0, deadline=math.inf, envelope=b"",
    )  # fmt: skip


def serve(shares: Shares, backlog: dict[str, float], room: int, claims: int) -> list[str]:
    """Serve claims as a store would, each of them of so much room at most; return whose jobs they brought, in order."""
    brought: list[str] = []
    for _ in range(claims):
        queues = shares.order(list(backlog))
        most = shares.most(queues, room)
        assert 1 <= most <= room
        taken: list[str] = []
        for queue in queues:
            number = int(min(backlog[queue], most - len(taken)))
            backlog[queue] -= number
            taken += [queue] * number
        shares.took(queues, most, [lease(queue) for queue in taken])
        brought += taken
    return brought


@pytest.mark.parametrize("room", [1, 7, 50])
@pytest.mark.parametrize("weights", [{"a": 1, "b": 1}, {"a": 3, "b": 1}, {"a": 7, "b": 3, "c": 2}])
def test_queues_that_all_have_jobs_are_served_by_their_weights(weights: Mapping[str, int], room: int) -> None:
    served = Counter(serve(Shares(weights), dict.fromkeys(weights, math.inf), room, 3000))
    for queue, weight in weights.items():
        share = weight / sum(weights.values())
        assert abs(served[queue] - share * served.total()) <= room


def test_an_empty_queue_keeps_no_credit_and_takes_nothing_of_the_others_shares() -> None:
    shares = Shares({"a": 1, "b": 1, "empty": 8})
    backlog = {"a": math.inf, "b": math.inf, "empty": 0.0}
    assert Counter(serve(shares, backlog, 1, 1000)) == {"a": 500, "b": 500}
    backlog["empty"] = math.inf
    served = Counter(serve(shares, backlog, 1, 100))
    assert served["empty"] == 80, "what it gets from now on is its share, and not what it missed"


def test_one_that_was_left_out_for_a_while_makes_up_for_nothing() -> None:
    shares = Shares({"sick": 1, "well": 1})
    serve(shares, {"well": math.inf}, 1, 1000)
    assert Counter(serve(shares, {"sick": math.inf, "well": math.inf}, 1, 100))["sick"] in {50, 51}


def test_a_queue_without_rivals_fills_the_room_of_every_claim() -> None:
    shares = Shares(dict.fromkeys([*"abcdefgh", "busy"], 1))
    backlog = {**dict.fromkeys("abcdefgh", 0.0), "busy": math.inf}
    serve(shares, backlog, 50, 2)
    assert len(serve(shares, backlog, 50, 10)) == 500


def test_a_claim_of_two_busy_queues_leaves_room_for_the_second() -> None:
    backlog = {"a": math.inf, "b": math.inf}
    shares = Shares({"a": 3, "b": 1})
    assert Counter(serve(shares, backlog, 48, 1)) == {"a": 36}
    assert Counter(serve(shares, backlog, 12, 1)) == {"b": 12}


def test_in_strict_order_the_first_one_gets_everything() -> None:
    strict = ordering(None)
    assert (strict.order(["a", "b"]), strict.most(["a", "b"], 50)) == (("a", "b"), 50)


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ({"a": 1}, "one for each of queues"),
        ({"a": 1, "b": 2, "c": 3}, "one for each of queues"),
        *(({"a": 1, "b": wrong}, "the weight of queue b must be ") for wrong in (0, 1001, 1.5, True)),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(weights: dict[str, int], problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        WorkerOptions(queues=("a", "b"), weights=weights)
    with pytest.raises(InvalidOption):
        WorkerOptions(weights=weights)


# -------------------------------------------------------------------------------------------------------- a real worker


def arrangements() -> list[list[str]]:
    empty = [f"empty-{number}" for number in range(50)]
    return [["D", "E", *empty], ["E", "D", *empty], ["D", *empty, "E"], [*empty[:25], "E", *empty[25:], "D"]]


@pytest.mark.parametrize("queues", arrangements(), ids=["D E", "E D", "D far E", "E far D"])
async def test_the_lone_job_behind_a_busy_queue_is_among_the_first_three(app: Tenure, queues: list[str]) -> None:
    busy, lone = app.job(queue="D", name="busy")(notes), app.job(queue="E", name="lone")(notes_slowly)
    await app.push_many(busy.bind("D") for _ in range(1_000))
    await lone.push("E")
    options = {"queues": tuple(queues), "weights": dict.fromkeys(queues, 1)}
    async with working(app, concurrency=1, sleep=0.05, **options):
        await until(lambda: "E" in started, 20)
        assert started.index("E") < 3
        # And so is one that comes later: only what was claimed already starts before it.
        await lone.push("later E")
        mark = len(started)
        await until(lambda: "later E" in started, 20)
        assert started.index("later E") - mark <= 3


async def test_a_job_of_little_weight_starts_under_a_stream_that_never_ends(app: Tenure) -> None:
    high, low = app.job(queue="high", name="high")(notes), app.job(queue="low", name="low")(notes)
    await app.push_many(high.bind("high") for _ in range(1_000))
    await app.push_many(low.bind("low") for _ in range(5))
    options = {"queues": ("high", "low"), "weights": {"high": 10, "low": 1}}
    async with working(app, concurrency=1, sleep=0.05, **options):
        await until(lambda: started.count("low") == 5, 20)
        assert (await app.counts("high")).ready > 0
    positions = [index for index, label in enumerate(started) if label == "low"]
    assert all(position <= 11 * number + 3 for number, position in enumerate(positions))


async def test_in_strict_order_the_same_job_starves(quick: Tenure) -> None:
    high, low = quick.job(queue="high", name="high")(notes), quick.job(queue="low", name="low")(notes)
    await low.push("low")
    await quick.push_many(high.bind("high") for _ in range(300))
    await drain(quick, queues=("high", "low"), concurrency=4)
    assert started == ["high"] * 300 + ["low"]
