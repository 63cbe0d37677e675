"""When a constraint is suggested: it must be far from chance for sure, and may hold nearly always. Public arithmetic.

Chance is how many rows would break it if the columns had nothing to do with each other: those that do not have the most
frequent value, for a dependency; for an order, all but the two most frequent values, of which no more can be in order
by chance; as many as of the pairs of any two rows, for a comparison within one. What has a column more on the left, or
is told within equal values of one, must also be far from what is broken without that column.

Two columns whose most frequent values take all rows together, as those of two values do, may be in order by chance: no
order of them is tried. Where one value takes half of the rows, few others are compared: a comparison must seem exact.
[test_columns_of_two_values_suggest_exact_comparisons_only]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kamino.constraints.language.printer import print_name
from kamino.engine.implied_rules import Dependency

# A constraint is suggested if it is broken, but for an error, in at most this part of what chance would break ...
MOST_OF_CHANCE = 0.05
# ... and, with errors allowed for, surely in less than this part.
_SURELY_LESS = 0.5
# A key is a promise about every row: this part of the rows repeats a value at most, with errors allowed for.
_REPEATS_OF_A_KEY = 0.25
# A left side that fewer rows share, and a right side of one value but for so few rows, tell nothing worth reading.
_LEAST_REPEATS = 0.1
_LEAST_CHANCE = 0.04
# Where most rows have their left side alone, a dependency must seem exact.
_MOSTLY_ALONE = 0.5
ERRORS = 2.0
# A group may be larger than the noisy count says.
_MARGIN = 1.1


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A constraint line, the part of rows that would have to go for it to hold, and the error of that part."""

    line: str
    rate: float
    error: float

    @property
    def is_exact(self) -> bool:
        """Whether nothing but noise speaks against it."""
        return self.rate <= ERRORS * self.error

    @property
    def may_be_exact(self) -> bool:
        """Whether noise, of which there is much among many suggestions, may be all that speaks against it."""
        return self.rate <= 3 * self.error

    def __str__(self) -> str:
        soft = "" if self.is_exact else "soft: "
        return f"{soft}{self.line}  # {max(self.rate, 0.0):.2%} ± {self.error:.2%}"


def bar_of(count: int) -> float:
    """About the largest of so many normal deviates, and two at least."""
    return max(ERRORS, math.sqrt(2 * math.log(max(count, 1))))


@dataclass(frozen=True, kw_only=True)
class Release:
    """Noisy statistics, each with the same deviation."""

    values: NDArray[np.float64]
    sigma: float
    # How many deviations noise may be trusted to stay below in all of the values.
    bar: float

    @property
    def noise(self) -> float:
        """As much as noise adds at most."""
        return self.bar * self.sigma

    def joined(self, earlier: Release) -> Release:
        """The mean of two releases of the same statistics, weighed by inverse variance: as good as one of both budgets.

        Who was let through by the earlier one is likelier to have had low noise there. The higher bar counts all that
        were tried, so noise stays below it in whatever part of them is left.
        """
        weight = earlier.sigma**2 / (self.sigma**2 + earlier.sigma**2)
        values = weight * self.values + (1 - weight) * earlier.values
        sigma = self.sigma * earlier.sigma / math.hypot(self.sigma, earlier.sigma)
        return Release(values=values, sigma=sigma, bar=max(self.bar, earlier.bar))

    def stands(self, broken: float, chance: float, *, sigma_of_chance: float) -> bool:
        """Whether so much broken is nearly nothing, and surely far from chance, both of which are noisy."""
        noise = self.bar * math.hypot(self.sigma, _SURELY_LESS * sigma_of_chance)
        return broken + noise <= _SURELY_LESS * chance and broken - self.sigma <= MOST_OF_CHANCE * chance


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the first release told of each column: rows that repeat a value, the part with another than the usual."""

    num_rows: float
    release: Release
    repeats: Mapping[str, float]
    chance: Mapping[str, float]
    strays: Mapping[Dependency, float] = field(default_factory=dict)

    def key(self, name: str) -> Suggestion | None:
        """Suggest a key if few rows repeat a value."""
        repeats = self.repeats[name]
        if repeats - self.release.sigma > MOST_OF_CHANCE * self.num_rows:
            return None
        if repeats + self.release.noise > _REPEATS_OF_A_KEY * self.num_rows:
            return None
        error = self.release.sigma / self.num_rows
        return Suggestion(line=f"key ({print_name(name)})", rate=repeats / self.num_rows, error=error)

    def shared(self, name: str) -> bool:
        """Whether enough rows share a value of a column, for all that is known."""
        return self.repeats[name] + self.release.noise >= _LEAST_REPEATS * self.num_rows

    def varies(self, name: str) -> bool:
        """Whether enough rows have another value than the usual one, for all that is known."""
        return self.chance[name] * self.num_rows + self.release.noise > _LEAST_CHANCE * self.num_rows

    def could_tell(self, left: str, right: str) -> bool:
        """Whether a dependency could hold, and say something if it did."""
        # What determines a column has at least as many values; both are known with errors.
        fewer = self.repeats[left] - 2 * self.release.noise <= self.repeats[right]
        return fewer and self.shared(left) and self.varies(right)

    def most_strays(self, right: str, repeats: float) -> float:
        """So many rows may break a dependency that is to be suggested."""
        return max(0.0, MOST_OF_CHANCE * self.chance[right] * min(repeats, self.num_rows))

    def dependency(
        self, which: Dependency, strays: float, made: Release, repeats: float, *, without: float = math.inf
    ) -> Suggestion | None:
        """Suggest a dependency if few rows break it, far fewer than chance does, and than `without` a column of it."""
        left, right = which
        if repeats < max(_LEAST_REPEATS * self.num_rows, made.noise):
            return None
        chance = min(self.chance[right] * repeats, without)
        if not made.stands(strays, chance, sigma_of_chance=self.release.sigma):
            return None
        if repeats < _MOSTLY_ALONE * self.num_rows and strays > ERRORS * made.sigma:
            return None
        line = f"{', '.join(map(print_name, left))} -> {print_name(right)}"
        return Suggestion(line=line, rate=strays / self.num_rows, error=made.sigma / self.num_rows)

    def by_chance_out_of_order(self, one: str, other: str) -> float:
        """So many rows at least would be out of order if the two columns had nothing to do with each other.

        Rows in order lie on a staircase in the grid of the values of both. With parts p and q of the rows, those of its
        cells in which the first column takes a new value weigh p_i q_j <= p_i max q each, max q together, and the
        others max p.

        Guarantees:
            Never more than the fewest of independent columns.  [test_chance_of_an_order_is_not_overstated]
        """
        return max(0.0, self.chance[one] + self.chance[other] - 1) * self.num_rows

    def could_be_out_of_order(self, one: str, other: str) -> bool:
        """Whether an order would say something, for all that is known."""
        return self.by_chance_out_of_order(one, other) + self.release.noise > _LEAST_CHANCE * self.num_rows

    def has_usual_value(self, name: str) -> bool:
        """Whether one value takes half of the rows, for all that is known."""
        return self.chance[name] * self.num_rows - self.release.noise <= self.num_rows / 2

    def largest_group(self, name: str) -> float:
        """About how many rows have the most frequent value, null aside."""
        return _MARGIN * (1 - self.chance[name]) * self.num_rows + self.release.noise
