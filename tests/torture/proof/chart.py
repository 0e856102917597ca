"""Draws a recorded run: ``python -m tests.torture.proof.chart DIRECTORY FILE.svg``, of what ``running --keep`` left.

Settled jobs a second over time, and a band for each fault.
"""

import pathlib
import sys
from collections import Counter
from collections.abc import Sequence
from xml.sax.saxutils import escape

from tenure.testing.history import Call, Fault, read

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 1000, 420, 50, 20, 190
SLOT = 0.5
"""Seconds of each point."""


def main() -> None:
    directory, target = map(pathlib.Path, sys.argv[1:])
    faults = [event for event in read(directory / "faults.jsonl") if isinstance(event, Fault)]
    taken = [
        (call.at, sum(one.outcome in {"done", "repeated"} for one in call.subjects))
        for log in sorted((directory / "logs").glob("work-*.jsonl"))
        for call in read(log)
        if isinstance(call, Call) and call.operation == "settle" and call.phase == "ok"
    ]
    target.write_text(drawn(faults, taken), encoding="utf-8")


def drawn(faults: Sequence[Fault], taken: Sequence[tuple[int, int]]) -> str:
    """Return the picture."""
    begin, end = min(at for at, _ in taken), max(at for at, _ in taken)
    slots: Counter[int] = Counter()
    for at, number in taken:
        slots[int((at - begin) / 1e6 / SLOT)] += number
    last = int((end - begin) / 1e6 / SLOT)
    rates = [slots[slot] / SLOT for slot in range(last + 1)]
    most = max(rates)
    seconds = (end - begin) / 1e6

    def x(at: float) -> float:
        return LEFT + (at - begin) / (end - begin) * (WIDTH - LEFT - 10)

    def y(rate: float) -> float:
        return HEIGHT - BOTTOM - rate / most * (HEIGHT - BOTTOM - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="9">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for fault in faults:
        left, right = x(fault.began), x(fault.ended)
        parts.append(
            f'<rect x="{left:.1f}" y="{TOP}" width="{max(1.0, right - left):.1f}" height="{HEIGHT - BOTTOM - TOP}" '
            'fill="#f4b6a6" fill-opacity="0.6"/>'
        )
        parts.append(
            f'<text transform="translate({(left + right) / 2 + 3:.1f},{HEIGHT - BOTTOM + 8}) rotate(90)" '
            f'fill="#444">{escape(fault.name)}</text>'
        )
    points = " ".join(f"{x(begin + (slot + 0.5) * SLOT * 1e6):.1f},{y(rate):.1f}" for slot, rate in enumerate(rates))
    parts.append(f'<polyline points="{points}" fill="none" stroke="#1f5f8b" stroke-width="1.2"/>')
    parts += [
        f'<text x="{LEFT - 6}" y="{y(rate) + 3:.1f}" text-anchor="end">{rate:.0f}</text>'
        for rate in (0, most / 2, most)
    ]
    parts.append(f'<text x="{LEFT}" y="{TOP - 7}">settled jobs a second, over {seconds:.0f} s</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    main()
