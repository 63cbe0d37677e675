"""Histograms as inline SVG: upright bars for numbers and times, lying ones for categories.

The reference is a broad pale bar, the synthetic table a line or a narrow bar on top of it. Every mark carries the key
and the value of its number in the report.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from kamino.evaluate.report.svg import shorten, shorten_all, tag, width_of

WIDTH = 340
TICK_COLUMN = 6.2
"""Width of a character of an axis label."""


def percent(share: float) -> str:
    """A share in percent, short; never 0% for something that is there.

    >>> percent(0.123), percent(0.0123), percent(0.00012), percent(0.0)
    ('12%', '1.2%', '0.012%', '0%')
    """
    value = 100 * share
    if value == 0:
        return "0%"
    if value >= 0.1:
        return f"{value:.0f}%" if value >= 10 else f"{value:.1f}%"
    return f"{value:.2g}%".replace("e-0", "e-")


def histogram_chart(row: dict[str, Any], key: str, names: tuple[str, str]) -> Markup:
    """The chart of a column of the report, which is found there under `key`; `names` are those of the two tables."""
    bars = [(bar, f"{key}.scale.{i}") for i, bar in enumerate(row["scale"])]
    rest = [(bar, f"{key}.rest.{i}") for i, bar in enumerate(row["rest"])]
    if not bars and not rest:
        return tag("p", "No values.", class_="note")
    if row["kind"] == "category":
        return lying_bars(bars + rest, names, top=max(_largest(bars) or _largest(rest), 1e-9), quiet=len(rest))
    return _upright_bars(bars, rest, names)


Keyed = list[tuple[dict[str, Any], str]]


def _largest(bars: Keyed) -> float:
    return max((max(bar["true"] or 0.0, bar["synthetic"]) for bar, _ in bars), default=0.0)


def lying_bars(bars: Keyed, names: tuple[str, str], *, top: float, quiet: int = 0, low: float = 0.0) -> Markup:
    """A row for each bar, from `low` to `top`; the last `quiet` labels are set apart: they are no values.

    What goes beyond `top` (all the other values of a wide column) is written, not drawn: else nothing else were seen.
    """
    row, left, right = 17, 122, WIDTH - 14
    bottom = row * len(bars)
    scale = (right - left) / (top - low)
    marks = [*_percent_axis(left, right, bottom, low, top)]
    labels = shorten_all([bar["label"] for bar, _ in bars], 18)
    for i, (bar, key) in enumerate(bars):
        y = i * row
        style = "axis quiet" if i >= len(bars) - quiet else "axis"
        marks.append(
            tag("text", labels[i], tag("title", bar["label"]), x=left - 6, y=y + 12, text_anchor="end", class_=style)
        )
        if max(bar["true"], bar["synthetic"]) > top:
            marks.append(_written(bar, key, names, x=left + 4, y=y + 12))
            continue
        wide, narrow = (max(0.0, (bar[side] or 0.0) - low) * scale for side in ("true", "synthetic"))
        marks.append(_rect(bar, key, "true", names, x=left, y=y + 2, width=wide, height=13))
        marks.append(_rect(bar, key, "synthetic", names, x=left, y=y + 6, width=narrow, height=5))
        if bar.get("error"):
            ends = [
                min(right, left + max(0.0, (bar["true"] or 0.0) + way * bar["error"] - low) * scale) for way in (-1, 1)
            ]
            marks.append(tag("line", x1=ends[0], y1=y + 3.5, x2=ends[1], y2=y + 3.5, class_="noise"))
    return _svg(marks, bottom + 18)


def _written(bar: dict[str, Any], key: str, names: tuple[str, str], *, x: float, y: float) -> Markup:
    """A bar in words."""
    parts: list[str | Markup] = []
    for side, name in zip(("true", "synthetic"), names, strict=True):
        number = tag("tspan", percent(bar[side]), data_key=f"{key}.{side}", data_value=repr(bar[side]))
        parts += [f"{', ' if parts else ''}{name} ", number]
    return tag("text", *parts, x=x, y=y, class_="axis")


def _percent_axis(left: float, right: float, bottom: float, low: float, top: float) -> list[Markup]:
    marks = []
    for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = left + part * (right - left)
        marks.append(tag("line", x1=x, y1=0, x2=x, y2=bottom + 2, class_="grid"))
        place = x if part < 1 else right + 14
        text = percent(low + part * (top - low))
        marks.append(tag("text", text, x=place, y=bottom + 14, text_anchor=anchor, class_="axis"))
    return marks


def _upright_bars(bars: Keyed, rest: Keyed, names: tuple[str, str]) -> Markup:
    left, height, slot = 40, 120, 38
    right = WIDTH - 2 - slot * len(rest)
    top = max(_largest(bars + rest), 1e-9)
    # one bar that towers over many would hide the others: a square root keeps them visible
    root = len(bars) > 4 and top > 0.5
    step = (right - left) / max(1, len(bars))
    marks = _share_axis(left, height, top, root)
    outline = []
    for i, (bar, key) in enumerate(bars):
        x = left + i * step
        one, two = (_height(bar[side] or 0.0, top, height, root) for side in ("true", "synthetic"))
        gap = min(1.0, step / 6)
        marks.append(_rect(bar, key, "true", names, x=x, y=8 + height - one, width=step - gap, height=one))
        marks.append(_rect(bar, key, "synthetic", names, x=x, y=6.8 + height - two, width=step - gap, height=2.4))
        outline.append((x, 8 + height - two))
        if bar.get("error"):
            shares = [min(top, max(0.0, (bar["true"] or 0.0) + way * bar["error"])) for way in (-1, 1)]
            ends = [8 + height - _height(share, top, height, root) for share in shares]
            marks.append(tag("line", x1=x + step / 2, y1=ends[0], x2=x + step / 2, y2=ends[1], class_="noise"))
    marks += _ticks([bar["label"] for bar, _ in bars], left, step, height)
    for i, (bar, key) in enumerate(rest):
        x = right + i * slot + 10
        one, two = (_height(bar[side] or 0.0, top, height, root) for side in ("true", "synthetic"))
        marks.append(_rect(bar, key, "true", names, x=x, y=8 + height - one, width=22, height=one))
        marks.append(_rect(bar, key, "synthetic", names, x=x, y=6.8 + height - two, width=22, height=2.4))
        marks.append(tag("text", bar["label"], x=x + 11, y=height + 23, text_anchor="middle", class_="axis quiet"))
    return _svg([*marks, _step_line(outline, step)], height + 30)


def _height(share: float, top: float, height: int, root: bool) -> float:
    part = share / top
    return height * (part**0.5 if root else part)


def _step_line(points: list[tuple[float, float]], step: float) -> Markup:
    """A line along the tops of the synthetic bars."""
    path = " ".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}H{x + step:.1f}" for i, (x, y) in enumerate(points))
    return tag("path", d=path, class_="outline") if path else Markup("")


def _share_axis(left: int, height: int, top: float, root: bool) -> list[Markup]:
    marks = []
    for part in (0.0, 0.25, 1.0) if root else (0.0, 0.5, 1.0):
        y = 8 + height - _height(part * top, top, height, root)
        marks.append(tag("line", x1=left, y1=y, x2=WIDTH - 2, y2=y, class_="grid"))
        marks.append(tag("text", percent(part * top), x=left - 5, y=y + 3.5, text_anchor="end", class_="axis"))
    if root:
        marks.append(tag("text", "square-root scale", x=WIDTH - 4, y=18, text_anchor="end", class_="axis quiet"))
    return marks


def _ticks(labels: list[str], left: int, step: float, height: int) -> list[Markup]:
    """As many labels of the value axis as fit side by side, the first and the last among them."""
    if not labels:
        return []
    starts = [label.split(" to ")[0] for label in labels]
    last = labels[-1].split(" to ")[-1]
    room = step * len(labels)
    most = max(1, int(room / (TICK_COLUMN * max(width_of(t) for t in (*starts, last)) + 14)))
    marks = []
    every = max(1, -(-len(labels) // most)) if most > 1 else len(labels)
    for i in range(0, len(labels), every):
        # the last label stands at the end of the axis: one too near to it is left out
        if i and room - (i + 0.5) * step < TICK_COLUMN * (width_of(last) + width_of(starts[i]) / 2) + 10:
            continue
        anchor, x = ("start", left) if i == 0 and len(labels) > 1 else ("middle", left + (i + 0.5) * step)
        marks.append(tag("text", shorten(starts[i], 19), x=x, y=height + 23, text_anchor=anchor, class_="axis"))
    if len(labels) > 1 and room > TICK_COLUMN * (width_of(starts[0]) + width_of(last)) + 14:
        marks.append(tag("text", last, x=left + room, y=height + 23, text_anchor="end", class_="axis"))
    return marks


def _rect(bar: dict[str, Any], key: str, side: str, names: tuple[str, str], **place: float) -> Markup:
    value = bar[side]
    if value is None:
        return Markup("")
    name = names[0] if side == "true" else names[1]
    title = tag("title", f"{bar['label']}: {name} {percent(value)}")
    return tag("rect", title, **place, class_=side, data_key=f"{key}.{side}", data_value=repr(value))


def _svg(marks: list[Markup], height: int) -> Markup:
    view = f"0 0 {WIDTH} {height}"
    return tag("svg", *marks, viewBox=view, width=WIDTH, height=height, role="img", class_="chart")
