"""Draw how costs grow: a line for each law, both axes by powers of ten, sizes in parts of each law's smallest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

_WIDTH, _HEIGHT, _LEFT, _TOP, _LABELS = 520, 420, 60, 20, 230
_COLOURS = (
    "#1f77b4",
    "#d62728",
    "#2ca02c",
    "#9467bd",
    "#8c564b",
    "#e377c2",
    "#7f7f7f",
    "#bcbd22",
    "#17becf",
    "#ff7f0e",
)


def plot(curves: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return an SVG picture of costs by sizes.

    >>> plot({"a law": [(10, 1.0), (100, 20.0)]}).count("<polyline")
    1
    """
    drawn = {name: [(x / points[0][0], y) for x, y in points] for name, points in curves.items() if len(points) > 1}
    most = max((x for points in drawn.values() for x, _ in points), default=10)
    costs = [y for points in drawn.values() for _, y in points] or [1.0]
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
    decades = max(1, math.ceil(math.log10(most)))

    def at(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + _WIDTH * math.log10(x) / decades
        return across, _TOP + _HEIGHT * (1 - (math.log10(y) - low) / max(1, high - low))

    parts = [*_grid(decades, low, high, at(10**decades, 10**high), at(1, 10**low))]
    below = -math.inf
    ends = sorted(drawn, key=lambda name: at(*drawn[name][-1])[1])
    for name in ends:
        colour = _COLOURS[ends.index(name) % len(_COLOURS)]
        places = [at(x, y) for x, y in drawn[name]]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        below = max(places[-1][1], below + 13)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        label = _LEFT + _WIDTH + 14
        parts.append(f'<line x1="{places[-1][0]:.1f}" y1="{places[-1][1]:.1f}" x2="{label - 3}" y2="{below:.1f}" '
                     f'stroke="{colour}" stroke-width=".4"/>')  # fmt: skip
        parts.append(f'<text x="{label}" y="{below + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    size = f"{_LEFT + _WIDTH + _LABELS} {max(_TOP + _HEIGHT + 50, int(max(below, 0)) + 20)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif" font-size="11">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _grid(decades: int, low: int, high: int, top: tuple[float, float], bottom: tuple[float, float]) -> list[str]:
    """Lines at powers of ten, with their numbers, and what the axes mean."""
    (right, upper), (left, lower) = top, bottom
    found = []
    for power in range(decades + 1):
        x = left + (right - left) * power / decades
        found.append(f'<line x1="{x:.1f}" y1="{upper:.1f}" x2="{x:.1f}" y2="{lower:.1f}" stroke="#ddd"/>')
        found.append(f'<text x="{x:.1f}" y="{lower + 16:.1f}" text-anchor="middle">{10**power:,}</text>')
    for power, _ in pairwise(range(low, high + 2)):
        y = lower + (upper - lower) * (power - low) / max(1, high - low)
        found.append(f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        found.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    found.append(f'<text x="{left:.1f}" y="{lower + 34:.1f}">size, in parts of the smallest measured</text>')
    found.append(f'<text x="14" y="{lower:.1f}" transform="rotate(-90 14 {lower:.1f})">processor seconds</text>')
    return found
