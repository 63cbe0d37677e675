"""What to expect, before anything is paid: the errors of counts, in words, and what a run takes.

What is measured first of a column has noise sigma in each cell, and an interval of an ordered column adds up several;
later measurements make the error smaller, drawing rows makes it larger. Pairs that matter are measured once more, with
what the first measurements leave of the budget. What no measurement tells is guessed, which puts a count off by a part
of itself, more so where columns have many values. The factor of columns is a quantile of normal noise; those of pairs
are from runs on eight tables, on each of which the bounds held for about 90 of 100 counts that are not hidden by the
noise itself, or more, and half of a bound for fewer. Where a column has few values and many later measurements, nearly
all counts are within; single counts of pairs that the model does not measure may be further off. All errors scale with
the noise of the budget, so that several stand side by side.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kamino.constraints import Constraints
from kamino.errors import InputError
from kamino.model.marginal.marginal_schedule import HISTOGRAMS
from kamino.pipeline.plan.hopeless import memory_of
from kamino.pipeline.plan.run_plan import Asked, RunPlan
from kamino.pipeline.settings import Backend, Settings
from kamino.privacy import Budget, gaussian_mu
from kamino.privacy.accounting.closed_forms import get_epsilon_gaussian
from kamino.schema import Attribute, Categorical, Date, Datetime, Schema

EPSILONS = (0.5, 1.0, 2.0, 4.0)
# Normal noise lies within so many sigmas 91 times in 100, and 90 times once rows are drawn: of a column that only its
# first histogram tells of. Later measurements bring more counts within: nearly all, where a column has few values or a
# table few rows.
_COLUMN = 1.7
# The same 98 times in 100.
_SURE = 2.33
# Of the noise of a pair, what most counts lie within; and by which part of a count a pair is guessed.
_PAIR = 1.95
_GUESSED = 0.1
# Pairs of so many cells are guessed as well as those of the factor above; the error grows with the third root of more.
_CELLS = 64
# A model measures about so many pairs for each column, from about this part of the budget.
_PAIRS_PER_COLUMN, _LEFT = 1.5, 0.8
#: Distances are measured in so many bins of a column at most.
BINS = 16
# A domain that is still to be found is taken for one of this size.
_CATEGORIES, _NUMBERS = 20, 100


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """The errors of one plan at its own noise: of counts of each column, and of a typical pair. Public.

    `columns` holds how many cells one of sixteen intervals adds up (one for categories), and the noise of a cell.
    `assumed` are the columns whose domains are still missing, and were taken for ones of a round size.
    """

    rows: int
    noise_multiplier: float
    columns: dict[str, tuple[float, float]]
    pair_cells: int
    pair_sigma: float
    assumed: tuple[str, ...] = ()

    def column_bound(self, name: str, *, noise: float | None = None) -> float:
        """Within how many rows a count of one value (or one of sixteen intervals) of a column comes out.

        Guarantees:
            No bound is beyond the rows there are.  [test_errors_grow_with_the_rows_of_a_unit]
        """
        together, sigma = self.columns[name]
        return min(float(self.rows), count_error(sigma, together) * self._scale(noise))

    def hidden_columns(self, *, part: float) -> tuple[str, ...]:
        """The columns of which noise hides a count of this part of all rows, whatever is measured of them."""
        return tuple(name for name in self.columns if self.noise_of(name) >= part * self.rows)

    def noise_of(self, name: str) -> float:
        """What noise makes of no rows at most, 98 times in 100, in a count of a column, whatever is measured of it.

        Beside its first count, a column is in pairs that are measured, and sums of their counts tell of it as well.
        """
        together, sigma = self.columns[name]
        pairs = 2 * min(_PAIRS_PER_COLUMN, (len(self.columns) - 1) / 2)
        by_pairs = pairs / (self.pair_sigma**2 * math.sqrt(self.pair_cells))
        return _SURE / math.sqrt(1 / (sigma**2 * together) + by_pairs)

    @property
    def shown(self) -> int:
        """The count whose error is told: one row in a hundred."""
        return max(10, round(self.rows / 100))

    def pair_bound(self, count: float | None = None, *, noise: float | None = None) -> float:
        """Within how many rows a count of two values of a typical pair of columns comes out; of `shown` by default."""
        guessed = _GUESSED * (self.shown if count is None else count)
        grown = math.cbrt(self.pair_cells / _CELLS)
        return min(float(self.rows), _PAIR * grown * math.hypot(self.pair_sigma * self._scale(noise), guessed))

    def pair_distance(self, *, noise: float | None = None) -> float:
        """The share of rows that noise puts out of place in a typical pair of columns."""
        sigma = self.pair_sigma * self._scale(noise)
        return min(1.0, self.pair_cells * sigma * math.sqrt(2 / math.pi) / 2 / max(1, self.rows))

    def _scale(self, noise: float | None) -> float:
        return 1.0 if noise is None or not self.noise_multiplier else noise / self.noise_multiplier

    def epsilon_for(self, distance: float, *, delta: float) -> float:
        """The epsilon at which a typical pair of columns is within a distance.

        Guarantees:
            A plan for that epsilon states the distance.  [test_accuracy_gives_the_epsilon_it_takes]
        """
        if not 0 < distance < 1:
            raise InputError(f"found accuracy {distance:g}; expected a share of rows between 0 and 1, such as 0.05")
        unit = self.pair_cells * self.pair_sigma / self.noise_multiplier * math.sqrt(2 / math.pi) / 2
        return get_epsilon_gaussian(distance * self.rows / unit, delta)

    def sentences(self) -> list[str]:
        """The errors in words, the column with the largest one first."""
        worst = sorted(self.columns, key=lambda name: -self.column_bound(name))
        said = [
            f"{name}: a count of {self.shown:,} rows comes out within ±{self.column_bound(name):,.0f}"
            + (" (if it has about as many values as assumed)" if name in self.assumed else "")
            for name in worst
        ]
        pair = f"a typical pair of columns: a count of {self.shown:,} rows comes out within ±{self.pair_bound():,.0f}"
        return [*said, pair]

    def to_json(self, budget: Budget) -> dict[str, Any]:
        """Plain data for machines, at several epsilons."""
        return {
            "rows": self.rows,
            "columns": {name: self.column_bound(name) for name in self.columns},
            "pair": self.pair_bound(),
            "pair_distance": self.pair_distance(),
            "assumed": list(self.assumed),
            "by_epsilon": {
                f"{epsilon:g}": {
                    "columns": {name: self.column_bound(name, noise=noise) for name in self.columns},
                    "pair": self.pair_bound(noise=noise),
                    "pair_distance": self.pair_distance(noise=noise),
                }
                for epsilon, noise in self.at_epsilons(budget)
            },
        }

    def at_epsilons(self, budget: Budget) -> list[tuple[float, float]]:
        """Several epsilons, that of the budget among them, each with the noise multiplier it allows."""
        epsilons = sorted({*EPSILONS, budget.epsilon} - {math.inf})
        return [(each, 1 / gaussian_mu(replace(budget, epsilon=each))) for each in epsilons]


def accuracy_of(plan: RunPlan) -> Accuracy | None:
    """The errors to expect of a plan with a number of rows; None without one, without noise, and for neural models.

    Guarantees:
        Of counts above the noise, 90 of 100 are within the bound, and fewer within half of it.
            [test_counts_lie_within_the_stated_errors]
    """
    if not plan.num_rows or plan.settings.backend is not Backend.MARGINAL or not plan.settings.budget.is_private:
        return None
    missing = plan.known.missing_domains if plan.schema is not None else ()
    if plan.schema is None:
        return None
    complete = plan
    if missing:
        from kamino.pipeline.program.programs import plan_program

        assumed = _assumed(plan.schema)
        asked = Asked(settings=plan.settings, given=Constraints(), num_rows=plan.num_rows)
        complete = plan_program(RunPlan(asked=asked, schema=assumed), done=plan.program)
    columns = {
        each.attribute: (cells_together(complete.known[each.attribute], each.cells), each.sigma)
        for each in complete.expected
    }
    if not columns:
        return None
    sizes = [each.cells for each in complete.expected]
    made = _accuracy(columns, sizes, rows=plan.num_rows, noise=plan.noise_multiplier, unit=_unit(complete))
    return replace(made, assumed=missing)


def accuracy_of_run(
    ledger: Mapping[str, Any], schema: Schema, settings: Settings, *, about_rows: float
) -> Accuracy | None:
    """The errors of a run that was made, from the first count of each column in its ledger."""
    if settings.backend is not Backend.MARGINAL or not settings.budget.is_private:
        return None
    columns: dict[str, tuple[float, float]] = {}
    sizes, unit = [], 1.0
    for entry in ledger["entries"]:
        names, shape = entry["attributes"], entry["shape"]
        is_histogram = entry["kind"] == "counts" and len(names) == len(shape) == 1 and names[0] in schema.data_names
        if is_histogram and names[0] not in columns and entry["sigma"] and entry["noise_multiplier"]:
            columns[names[0]] = (cells_together(schema[names[0]], shape[0]), entry["sigma"])
            sizes.append(shape[0])
            unit = entry["sigma"] / entry["noise_multiplier"]
    if not columns:
        return None
    noise = 1 / gaussian_mu(settings.budget)
    return _accuracy(columns, sizes, rows=max(1, round(about_rows)), noise=noise, unit=unit)


def _accuracy(
    columns: dict[str, tuple[float, float]], sizes: list[int], *, rows: int, noise: float, unit: float
) -> Accuracy:
    typical = sorted(min(BINS, size) for size in sizes)[len(sizes) // 2]
    pairs = max(1.0, min(_PAIRS_PER_COLUMN * len(columns), len(columns) * (len(columns) - 1) / 2))
    return Accuracy(
        rows=rows,
        noise_multiplier=noise,
        columns=columns,
        pair_cells=typical**2,
        pair_sigma=unit * noise * math.sqrt(pairs / _LEFT),
    )


def cells_together(attribute: Attribute, cells: int) -> float:
    """How many cells an interval of a column adds up, of sixteen intervals; a category is one cell."""
    return 1.0 if isinstance(attribute, Categorical) else max(1.0, cells / BINS)


def count_error(sigma: float, together: float) -> float:
    """Within how many rows most counts come out that add up so many cells with noise sigma."""
    return _COLUMN * sigma * math.sqrt(together)


def _unit(plan: RunPlan) -> float:
    """How far one privacy unit moves a histogram: what noise multipliers are multiplied by."""
    histograms = plan.schedule.part(HISTOGRAMS)
    first = next(each for each in histograms if each.sigma and each.noise_multiplier)
    return (first.sigma or 0.0) / (first.noise_multiplier or 1.0)


def _assumed(schema: Schema) -> Schema:
    """The schema with a domain of a round size for each attribute that has none yet."""
    for name in schema.missing_domains:
        attribute = schema[name]
        domain: dict[str, Any] = {"min": 0, "max": _NUMBERS - 1}
        if isinstance(attribute, Categorical):
            domain = {"values": [f"value {number}" for number in range(_CATEGORIES)]}
            if attribute.holds_integers:
                domain = {"values": list(range(_CATEGORIES))}
        elif isinstance(attribute, Date):
            domain = {"min": dt.date(2000, 1, 1), "max": dt.date(2000, 4, 9)}
        elif isinstance(attribute, Datetime):
            aware = dt.UTC if attribute.timezone is not None else None
            domain = {"min": dt.datetime(2000, 1, 1, tzinfo=aware), "max": dt.datetime(2000, 4, 9, tzinfo=aware)}
        schema = schema.with_domain(name, **domain)
    return schema


# Seconds of one core for each pair of columns and for each cell, from runs on tables of 20,000 to 40,000 rows.
_PER_PAIR = 0.08
_PER_CELL = 1.2e-5
_ROWS_SHOWN = 10_000


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What a run takes for a table of `rows` rows: so many as were asked for, or a round number to judge by."""

    rows: int
    passes: int
    memory: int
    seconds: float
    is_complete: bool

    def to_json(self) -> dict[str, Any]:
        """Plain data for machines."""
        return vars(self)

    def describe(self) -> str:
        """The effort in a sentence."""
        more = "" if self.is_complete else ", and those that follow once domains are found"
        return (
            f"at most {self.passes:,} passes over some columns of the table{more}; for {self.rows:,} rows about "
            f"{max(1, self.memory // 2**20):,} MiB of memory and, with the default model, about "
            f"{max(1.0, self.seconds):.0f} s of one core (wide columns take longer)"
        )


def effort_of(plan: RunPlan) -> Effort:
    """What a run by this plan takes. Says nothing of the private table, whose number of rows is private."""
    rows = plan.num_rows or _ROWS_SHOWN
    columns = len(plan.columns) if plan.schema is None else len(plan.schema)
    pairs = columns * (columns - 1) // 2
    return Effort(
        rows=rows,
        passes=sum(each.most for each in plan.schedule if each.kind != "aside"),
        memory=memory_of(rows, columns),
        seconds=_PER_PAIR * pairs + _PER_CELL * rows * columns,
        is_complete=plan.is_complete,
    )
