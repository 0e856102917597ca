"""Random compositions: jobs that wait for others, gates between them, and callbacks behind a last gate."""

from collections.abc import Sequence

from hypothesis import strategies as st

from tenure.compositions import START, Gate, JobNode, Node, When, job_id
from tenure.queue import Push

END = -2
MOST_JOBS = 16
CALLBACKS = (-11, -12, -13, -14)

MOSTLY = st.sampled_from([True, True, True, False])
WHENS = st.sampled_from([*[When.SUCCESS] * 6, When.FAILURE, When.ANY])


@st.composite
def graphs(draw: st.DrawFn, of: str, queue: str) -> list[Node]:
    """Return the nodes of one composition, every one of which is told as often as it needs.

    Each job names jobs before it that it waits for. Who is waited for by one job may tell it without a gate; who by
    several tells a gate; who by nobody tells the last gate, or nobody.
    """
    count = draw(st.sampled_from([0, *range(2, MOST_JOBS + 1)]), "jobs")
    parents = [draw(_parents(number), f"what {number} waits for") for number in range(count)]
    children = {number: [one for one in range(count) if number in parents[one]] for number in range(count)}
    callbacks = draw(_some(CALLBACKS), "callbacks")
    gates: list[Node] = []
    tells: dict[int, int | None] = {}
    given: set[int] = set()
    sinks = 0
    for number in range(count):
        if len(children[number]) == 1 and draw(MOSTLY, "directly"):
            (only,) = children[number]
            tells[number] = only
            given |= {only} if len(parents[only]) == 1 else set()
        elif children[number]:
            tells[number] = -100 - number
            gates.append(Gate(number=-100 - number, next=tuple(children[number])))
        else:
            tells[number] = END
            sinks += 1
    jobs = [
        JobNode(
            number=number,
            push=_push(of, queue, number, draw),
            needs=len(parents[number]) or 1,
            when=draw(WHENS, "when") if parents[number] else When.SUCCESS,
            next=tells[number],
            takes=number in given and draw(MOSTLY, "takes"),
            gives=tells[number] in given and draw(MOSTLY, "gives"),
        )
        for number in range(count)
    ]
    roots = tuple(number for number in range(count) if not parents[number]) or (END,)
    behind = draw(_behind(callbacks), "callbacks behind callbacks")
    first = tuple(number for number in callbacks if number not in behind.values())
    return [
        Gate(number=START, next=roots),
        *gates,
        Gate(number=END, needs=sinks or 1, next=first),
        *jobs,
        *(
            JobNode(
                number=number,
                push=_push(of, queue, number, draw),
                when=draw(st.sampled_from(list(When)), "when"),
                next=behind.get(number),
            )
            for number in callbacks
        ),
    ]


def _parents(number: int) -> st.SearchStrategy[list[int]]:
    """Wait for nobody, for the one before as in a chain, or for any."""
    if not number:
        return st.just([])
    return st.one_of(st.just([]), st.just([number - 1]), st.just([number - 1]), _some(range(number)))


def _some(numbers: Sequence[int]) -> st.SearchStrategy[list[int]]:
    if not numbers:
        return st.just([])
    return st.lists(st.sampled_from(numbers), max_size=3, unique=True).map(lambda some: sorted(some, reverse=True))


def _behind(callbacks: Sequence[int]) -> st.SearchStrategy[dict[int, int]]:
    """Return which callback is told by which: a line of some of the last ones."""
    return st.integers(0, max(0, len(callbacks) - 1)).map(
        lambda length: dict(zip(callbacks[-length - 1 : -1], callbacks[-length:], strict=False)) if length else {}
    )


def _push(of: str, queue: str, number: int, draw: st.DrawFn) -> Push:
    return Push(
        queue=queue,
        id=job_id(of, number),
        envelope=f"{of} {number}".encode(),
        delay=draw(st.sampled_from([0.0] * 9 + [500.0]), "delay"),
        crash_limit=draw(st.sampled_from([None, None, 1, 2]), "crash limit"),
    )
