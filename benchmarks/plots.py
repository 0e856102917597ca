"""Plots of runs as SVG, drawn by hand: dots with ranges on a logarithmic axis, and lines over a number of processes."""

import html
import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

WIDTH = 760
LEFT, RIGHT, TOP, BOTTOM = 150, 24, 58, 34
ROW = 24
TALL = 320
COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#b8860b", "#7b4fa3")
STYLE = "font-family='sans-serif' font-size='12' fill='#222'"

Series = Mapping[str, Sequence[float]]
"""The values of several runs, by what they are of."""


def dots(title: str, rows: Mapping[str, Series]) -> str:
    """Return one line a contender, and on it a dot for each series: its median, with a bar from least to most."""
    values = [value for series in rows.values() for runs in series.values() for value in runs if value > 0]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    high = max(high, low * 10)
    bottom = TOP + ROW * len(rows)

    def across(value: float) -> float:
        share = math.log10(value / low) / math.log10(high / low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    names = list(dict.fromkeys(name for series in rows.values() for name in series))
    parts = [*_legend(names), *_decades(low, high, across, bottom)]
    for place, (contender, series) in enumerate(rows.items()):
        middle = TOP + ROW * place + ROW / 2
        parts.append(_text(LEFT - 8, middle + 4, contender, anchor="end"))
        for name, runs in series.items():
            offset = middle + 5 * (names.index(name) - (len(names) - 1) / 2)
            colour, seen = COLOURS[names.index(name) % len(COLOURS)], [value for value in runs if value > 0]
            if seen:
                parts.append(_line((across(min(seen)), offset), (across(max(seen)), offset), colour, 2))
                parts.append(
                    f"<circle cx='{across(statistics.median(seen)):.1f}' cy='{offset:.1f}' r='4' fill='{colour}'/>"
                )
    return _drawing(title, bottom + BOTTOM, parts)


def lines(title: str, across: Sequence[int], rows: Mapping[str, Mapping[int, Sequence[float]]]) -> str:
    """Return one line a row over the given numbers, of medians; a name that ends in ``*`` is dashed."""
    medians = {name: {at: statistics.median(runs) for at, runs in points.items()} for name, points in rows.items()}
    highest = max(value for points in medians.values() for value in points.values()) or 1.0
    bottom = TOP + TALL
    plain = list(dict.fromkeys(name.removesuffix("*") for name in medians))

    def spot(at: int, value: float) -> tuple[float, float]:
        share = across.index(at) / max(1, len(across) - 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT - 20), bottom - value / highest * TALL

    parts = _legend(plain)
    for step in range(5):
        value = highest * step / 4
        height = spot(across[0], value)[1]
        parts += [_line((LEFT, height), (WIDTH - RIGHT, height), "#ddd", 1)]
        parts += [_text(LEFT - 8, height + 4, f"{value:,.0f}", anchor="end")]
    parts += [_text(spot(at, 0)[0], bottom + 18, str(at), anchor="middle") for at in across]
    for name, points in medians.items():
        colour = COLOURS[plain.index(name.removesuffix("*")) % len(COLOURS)]
        spots = [spot(at, value) for at, value in sorted(points.items())]
        dash = "6 4" if name.endswith("*") else ""
        parts += [_line(begin, end, colour, 2, dash) for begin, end in itertools.pairwise(spots)]
        parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{colour}'/>" for x, y in spots]
    return _drawing(title, bottom + BOTTOM, parts)


def missing(title: str, word: str) -> str:
    """Return what stands where a plot will be."""
    return _drawing(title, 120, [_text(WIDTH / 2, 80, word, anchor="middle")])


def _drawing(title: str, height: float, parts: Sequence[str]) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:.0f}' role='img'>"
    ground = f"<rect width='{WIDTH}' height='{height:.0f}' fill='#fff'/>"
    name = _text(12, 20, title, weight="bold")
    return "\n".join([head, f"<title>{html.escape(title)}</title>", ground, name, *parts, "</svg>", ""])


def _legend(names: Sequence[str]) -> list[str]:
    parts: list[str] = []
    step = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    for place, name in enumerate(names):
        left = LEFT + step * place
        parts.append(f"<circle cx='{left:.1f}' cy='38' r='4' fill='{COLOURS[place % len(COLOURS)]}'/>")
        parts.append(_text(left + 9, 42, name))
    return parts


def _decades(low: float, high: float, across: Callable[[float], float], bottom: float) -> list[str]:
    parts: list[str] = []
    value = low
    while value <= high * 1.001:
        parts.append(_line((across(value), TOP), (across(value), bottom), "#ddd", 1))
        parts.append(
            _text(across(value), bottom + 18, f"{value:,.0f}" if value >= 1 else f"{value:g}", anchor="middle")
        )
        value *= 10
    return parts


def _line(begin: tuple[float, float], end: tuple[float, float], colour: str, width: int, dash: str = "") -> str:
    ends = f"x1='{begin[0]:.1f}' y1='{begin[1]:.1f}' x2='{end[0]:.1f}' y2='{end[1]:.1f}'"
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    return f"<line {ends} stroke='{colour}' stroke-width='{width}'{dashes}/>"


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-weight='{weight}'"
    return f"<text {place} {STYLE}>{html.escape(text)}</text>"
