"""Heat maps of all pairs of columns as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from kamino.evaluate.report.svg import shorten_all, tag

LABEL = 100
# Wider than this a map scrolls by itself rather than shrink until nobody can read it.
FITS = 380


def heat_map(
    names: Sequence[str], matrix: Sequence[Sequence[float | None]], key: str, *, top: float, signed: bool
) -> Markup:
    """A square of cells; the stronger the colour, the larger the number, up to `top`. `key` is the matrix's."""
    cell = max(13.0, min(30.0, 250 / max(1, len(names))))
    side = cell * len(names)
    marks = []
    for i, (name, text) in enumerate(zip(names, shorten_all(names, 15), strict=True)):
        middle = LABEL + (i + 0.5) * cell
        label = tag("title", name)
        marks.append(tag("text", text, label, x=LABEL - 5, y=middle + 3.5, text_anchor="end", class_="axis"))
        turn = f"rotate(-90 {middle:.1f} {LABEL - 5})"
        marks.append(tag("text", text, label, x=middle, y=LABEL - 5, dy=3.5, transform=turn, class_="axis"))
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            place = {"x": LABEL + j * cell, "y": LABEL + i * cell, "width": cell - 1, "height": cell - 1}
            marks.append(_cell(f"{names[i]}, {names[j]}", value, f"{key}.{i}.{j}", top, signed, place))
    width = LABEL + side
    style = "chart" if width <= FITS else "chart wide"
    view = f"0 0 {width:.0f} {width:.0f}"
    return tag("svg", *marks, viewBox=view, width=round(width), height=round(width), role="img", class_=style)


def _cell(label: str, value: float | None, key: str, top: float, signed: bool, place: dict[str, float]) -> Markup:
    if value is None:
        return tag("rect", tag("title", f"{label}: not compared"), **place, class_="missing")
    shade = min(1.0, abs(value) / top) if top > 0 else 0.0
    style = "heat" if not signed else "plus" if value >= 0 else "minus"
    text = f"{label}: {value:+.3f}" if signed else f"{label}: {value:.3f}"
    opacity = f"{0.04 + 0.96 * shade:.2f}"
    return tag(
        "rect", tag("title", text), **place, class_=style, fill_opacity=opacity, data_key=key, data_value=repr(value)
    )


def worst_pairs(matrix: Sequence[Sequence[float | None]], count: int) -> list[tuple[int, int]]:
    """The places of the largest absolute numbers above the diagonal, the largest first."""
    cells = [
        (abs(value), i, j)
        for i, row in enumerate(matrix)
        for j, value in enumerate(row)
        if value is not None and i < j and value != 0
    ]
    return [(i, j) for _, i, j in sorted(cells, key=lambda c: (-c[0], c[1], c[2]))[:count]]
