"""Small plots as SVG files: grouped bars and lines, with error bars of one standard deviation.

Legible at 900 pixels wide, on light and on dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench.paper.spread import Spread
from kamino.evaluate.report.svg import Attribute, tag, width_of

WIDTH, HEIGHT = 900, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 78, 66
COLOURS = ("#4c8bf5", "#e8833a", "#3fa66b", "#b65fcf", "#c9a227", "#8a8f98", "#d1495b", "#2a9d9d")
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#4a525b}.title{font-size:16px;font-weight:600}"
    ".grid{stroke:#8a8f98;stroke-opacity:.3}.axis{stroke:#8a8f98}.error{stroke:#4a525b;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#c6ccd3}.error{stroke:#c6ccd3}}"
)
Series = Mapping[str, Sequence[Spread | None]]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Values to heights, plain or by powers of ten."""

    low: float
    high: float
    log: bool = False

    def y(self, value: float) -> float:
        """The height of a value on the page; what lies outside is moved to the edge."""
        if self.log:
            span = math.log10(self.high) - math.log10(self.low)
            share = (math.log10(max(value, self.low)) - math.log10(self.low)) / span
        else:
            share = (value - self.low) / (self.high - self.low)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(share, 0.0), 1.0))

    @property
    def ticks(self) -> list[float]:
        """Round values between the ends."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1)]
        step = _round_step((self.high - self.low) / 5)
        count = math.floor((self.high - self.low) / step + 1e-9)
        return [self.low + step * k for k in range(count + 1)]


def bars(title: str, unit: str, groups: Sequence[str], series: Series, *, log: bool = False, low: float = 0.0) -> str:
    """One bar for each series in each group; what was not run leaves a gap."""
    scale = _scale(series, log=log, low=low)
    slot = (WIDTH - LEFT - RIGHT) / max(len(groups), 1)
    bar = slot * 0.8 / max(len(series), 1)
    drawn: list[Markup] = []
    for place, values in enumerate(series.values()):
        for group, value in enumerate(values):
            if value is not None:
                x = LEFT + slot * (group + 0.1) + bar * place
                drawn += _bar(x, bar, value, scale, COLOURS[place % len(COLOURS)])
    centres = [LEFT + slot * (group + 0.5) for group in range(len(groups))]
    return _page(title, unit, scale, list(series), [*drawn, *_labels(groups, centres, slot)])


def lines(title: str, unit: str, x_label: str, xs: Sequence[str], series: Series, *, low: float | None = None) -> str:
    """One line for each series over values of x that stand at equal distances."""
    scale = _scale(series, log=False, low=low)
    slot = (WIDTH - LEFT - RIGHT) / max(len(xs), 1)
    centres = [LEFT + slot * (place + 0.5) for place in range(len(xs))]
    drawn: list[Markup] = []
    for number, values in enumerate(series.values()):
        colour = COLOURS[number % len(COLOURS)]
        points = [(x, value) for x, value in zip(centres, values, strict=True) if value is not None]
        path = " ".join(f"{x:.1f},{scale.y(value.mean):.1f}" for x, value in points)
        drawn.append(tag("polyline", points=path, fill="none", stroke=colour, stroke_width=2.5))
        for x, value in points:
            drawn += _error(x, value, scale)
            drawn.append(tag("circle", cx=x, cy=scale.y(value.mean), r=4, fill=colour))
    middle = (LEFT + WIDTH - RIGHT) / 2
    drawn.append(tag("text", x_label, x=middle, y=HEIGHT - 12, text_anchor="middle"))
    return _page(title, unit, scale, list(series), [*drawn, *_labels(xs, centres, slot)])


def _scale(series: Series, *, log: bool, low: float | None) -> Scale:
    found = [value for values in series.values() for value in values if value is not None]
    top = max((value.mean + value.deviation for value in found), default=1.0)
    if log:
        least = min((value.mean for value in found if value.mean > 0), default=1.0)
        first = math.floor(math.log10(least))
        last = max(first + 1, math.ceil(math.log10(top))) if top > 0 else first + 1
        return Scale(low=10.0**first, high=10.0**last, log=True)
    least = min((value.mean - value.deviation for value in found), default=0.0) if low is None else low
    step = _round_step(max(top - least, 1e-9) / 5)
    begin = math.floor(least / step + 1e-9) * step
    return Scale(low=begin, high=begin + step * max(1, math.ceil((top - begin) / step - 1e-9)))


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * unit for unit in (1, 2, 2.5, 5, 10) if power * unit >= step - 1e-12)


def _bar(x: float, width: float, value: Spread, scale: Scale, colour: str) -> list[Markup]:
    top = scale.y(value.mean)
    # a zero is drawn as a sliver, so that it is told from what was not run
    height = max(HEIGHT - BOTTOM - top, 1.5)
    tip = tag("title", f"{value.mean:.4g} ± {value.deviation:.2g}, {value.count} runs")
    rectangle = tag("rect", tip, x=x, y=HEIGHT - BOTTOM - height, width=max(width - 1, 1), height=height, fill=colour)
    return [rectangle, *(_error(x + width / 2, value, scale) if value.mean else [])]


def _error(x: float, value: Spread, scale: Scale) -> list[Markup]:
    if value.count < 2 or not value.deviation:
        return []
    low, high = scale.y(value.mean - value.deviation), scale.y(value.mean + value.deviation)
    return [
        tag("line", x1=x, x2=x, y1=low, y2=high, class_="error"),
        *(tag("line", x1=x - 4, x2=x + 4, y1=y, y2=y, class_="error") for y in (low, high)),
    ]


def _labels(texts: Sequence[str], centres: Sequence[float], slot: float) -> list[Markup]:
    """Names below the axis, turned where they would run into each other."""
    turned = any(8 * width_of(text) > slot for text in texts)
    result = []
    for text, x in zip(texts, centres, strict=True):
        y = HEIGHT - BOTTOM + 18
        how: dict[str, Attribute] = {"text_anchor": "middle"}
        if turned:
            how = {"text_anchor": "end", "transform": f"rotate(-30 {x:.1f} {y})"}
        result.append(tag("text", text, x=x, y=y, **how))
    return result


def _page(title: str, unit: str, scale: Scale, names: Sequence[str], drawn: Sequence[Markup]) -> str:
    grid: list[Markup] = []
    for tick in scale.ticks:
        y = scale.y(tick)
        grid.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        grid.append(tag("text", f"{tick:,.10g}", x=LEFT - 8, y=y + 4, text_anchor="end"))
    axis = tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM, class_="axis")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    side = tag("text", unit, x=16, y=middle, text_anchor="middle", transform=f"rotate(-90 16 {middle:.0f})")
    heading = tag("text", title, x=LEFT, y=24, class_="title")
    picture = tag(
        "svg",
        tag("style", Markup(STYLE)),
        heading,
        *_legend(names),
        *grid,
        *drawn,
        axis,
        side,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
        role="img",
    )
    return f"{picture}\n"


def _legend(names: Sequence[str]) -> list[Markup]:
    drawn, x, y = [], float(LEFT), 46.0
    for place, name in enumerate(names):
        length = 26 + 7.4 * width_of(name)
        if x + length > WIDTH - RIGHT and x > LEFT:
            x, y = float(LEFT), y + 18
        drawn.append(tag("rect", x=x, y=y - 10, width=12, height=12, rx=2, fill=COLOURS[place % len(COLOURS)]))
        drawn.append(tag("text", name, x=x + 18, y=y))
        x += length + 8
    return drawn
