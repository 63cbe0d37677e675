"""Records picked and grouped, and how their figures are written into a table of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bench.paper.spread import Spread, written
from bench.useful.cases import DEFAULT, MAIN_EPSILON, Mode, Record
from bench.useful.judging import LARGER_IS_BETTER, METRICS
from bench.useful.peers import digits_of
from bench.useful.printed import MOST_COST, WANTED

Records = Sequence[Record]


def at_main(records: Records) -> list[Record]:
    """Those of the main budget."""
    return [r for r in records if r.case.epsilon == MAIN_EPSILON]


def without_parts(records: Records) -> list[Record]:
    """Those of Kamino as it comes, whatever is done with constraints."""
    return [r for r in records if r.case.part == DEFAULT]


def of_mode(records: Records, mode: Mode) -> list[Record]:
    """Those of one mode."""
    return [r for r in records if r.case.mode is mode]


def shown_metrics(records: Records) -> list[str]:
    """The metrics that have a column: parity has a table of its own."""
    return [name for name in METRICS if name != "parity" and is_known(records, name)]


def is_known(records: Records, metric: str) -> bool:
    """Whether a record has the metric."""
    return any(r.metrics.get(metric) is not None for r in records)


def grouped(records: Records, key: Callable[[Record], str]) -> Iterable[tuple[str, list[Record]]]:
    """The records in groups, in the order in which these first come."""
    return [(name, [r for r in records if key(r) == name]) for name in dict.fromkeys(map(key, records))]


def kamino_label(runs: Records) -> str:
    """Who we are, and how many runs did not fail."""
    versions = dict.fromkeys(r.kamino for r in runs if r.kamino)
    return f"Kamino now ({', '.join(versions)}), runs: {sum(not r.problem for r in runs)}"


def cell(runs: Records, metric: str) -> str:
    """The mean of a metric and its deviation."""
    return spread_cell(Spread.of(r.metrics.get(metric) for r in runs), digits_of(metric))


def spread_cell(spread: Spread | None, digits: int) -> str:
    """A mean with its deviation, if there was more than one run; nothing without a run."""
    if spread is None:
        return ""
    return f"{spread.mean:.{digits}f}" if spread.count == 1 else written(spread, digits)


def plain_cell(value: float | None) -> str:
    """A figure as it was printed."""
    return "" if value is None else f"{value:g}"


def wanted_cell(table: str, metric: str, runs: Records) -> str:
    """The bound, and whether the mean misses it."""
    bound, found = WANTED.get(table, {}).get(metric), Spread.of(r.metrics.get(metric) for r in runs)
    if bound is None:
        return ""
    sign = "≥" if metric in LARGER_IS_BETTER else "≤"
    met = found is None or (found.mean >= bound if sign == "≥" else found.mean <= bound)
    return f"{sign} {bound:g}" if met else f"{sign} {bound:g}, **missed**"


def ratio_cell(value: float | None) -> str:
    """What constraints cost, bold if more than they may."""
    if value is None:
        return ""
    return f"**{value:.2f}**" if value > MOST_COST else f"{value:.2f}"


def count_cell(runs: Records) -> str:
    """The mean count of violations."""
    spread = Spread.of(r.violations for r in runs)
    return "" if spread is None else f"{spread.mean:,.0f}"
