"""The gate: the one narrow way from private data to public values.

>>> import numpy as np
>>> from kamino.privacy import Budget, Gate, multiplier_for
>>> gate = Gate(Budget(epsilon=1.0, delta=1e-6))
>>> z = multiplier_for(gate.gaussian_left() / 2)
>>> ages = np.array([120, 340, 90])
>>> noisy = gate.release_counts(ages, what="1-way marginal", attributes=("age",), noise_multiplier=z)
>>> noisy.shape, round(gate.counts_sigma(z), 2)
((3,), 5.99)
>>> gate.ledger.to_rows()[0]["attributes"]
['age']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.accounting.budget import Budget
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.ledger import Entry, Ledger
from kamino.privacy.mechanisms import bounds, categories, counts, factored_gradients, gradients, samples, vectors
from kamino.privacy.noise import NOT_PRIVATE, ExactNoise, Noise, SecureNoise, SeededNoise
from kamino.privacy.private import RemoteParts
from kamino.privacy.sensitivity import Sensitivity
from kamino.privacy.tape import COINS, ROW_COINS, Choice, Keeper, LiveTape, S, StoredTape, T, Tape, is_live
from kamino.privacy.unit import PrivacyUnit, choose_rows, hash_rows, select_parts, select_remote
from kamino.schema.table_parts import TableParts


class Gate:
    """A ledger and a source of noise, bound together: nothing leaves that was not charged first.

    Without `noise`, it comes from the operating system. With epsilon=inf there is none, whatever multiplier
    is asked for, and the ledger is marked "not private". The gate holds no private data.

    Guarantees:
        A release over the budget draws nothing. [test_charge_over_budget_raises_and_draws_nothing]
        No message and no repr holds a private value. [test_no_private_value_in_any_message]
        What comes out depends on the releases only. [test_replay_passes_on_the_clean_path]
    """

    def __init__(
        self,
        budget: Budget,
        *,
        unit: PrivacyUnit | None = None,
        noise: Noise | None = None,
        tape: Tape | None = None,
    ) -> None:
        self.budget = budget
        self.unit = unit or PrivacyUnit()
        self.noise: Noise = noise or SecureNoise()
        if not budget.is_private:
            self.noise = ExactNoise(noise)
        elif self.noise.mark == NOT_PRIVATE:
            raise PrivacyError(
                f"a source without noise was given for epsilon={budget.epsilon:g}; leave `noise` out, "
                "or give epsilon=inf."
            )
        self.ledger = Ledger(budget, unit=self.unit, mark=self.noise.mark)
        self._tape: Tape = tape or LiveTape()
        self._rows_selected = self.unit.column is None and self.unit.family is None

    def __repr__(self) -> str:
        return f"Gate({self.ledger!r})"

    def gaussian_left(self) -> float:
        """Return how much mu² is left: a release with multiplier z costs 1 / z² of it."""
        return self.ledger.gaussian_left()

    def counts_sigma(self, noise_multiplier: float) -> float:
        """Return the sigma that `release_counts` adds to a histogram at this multiplier; 0 if epsilon is inf."""
        deviation = self.deviation(noise_multiplier, self.sensitivity(Sensitivity.of_histogram()))
        return scale_for(deviation) if deviation else 0.0

    def select_rows(self, table: Any) -> Any:
        """Keep at most `max_rows` rows of each privacy unit; the table itself if the unit is a row.

        A table that is read in parts stays one. Must come before any release when the unit has a column: later releases
        count on it.
        """
        if self.unit.family is not None:
            raise PrivacyError("the privacy unit is a family, whose rows are chosen by `family_coins`.")
        if self.unit.column is None:
            return table
        names = tuple(table.schema.names)
        if self.unit.column not in names:
            raise PrivacyError(
                f"the unit column {self.unit.column!r} is not in the table; its columns: {', '.join(names)}."
            )
        streamed = table if isinstance(table, TableParts) else None
        remote = table if isinstance(table, RemoteParts) else None
        if streamed is not None and remote is None and not streamed.is_ordered:
            raise PrivacyError("rows of a unit are counted off by their places, which this source does not keep.")
        coins = self._coins()
        if remote is not None:
            return select_remote(remote, self.unit.column, self.unit.max_rows, coins)
        if streamed is not None:
            return select_parts(streamed, self.unit.column, self.unit.max_rows, coins)
        return table.take(choose_rows([hash_rows(table, self.unit.column, coins)], self.unit.max_rows))

    def family_coins(self) -> bytes:
        """Return the secret bytes by which rows of a family are chosen, at most `max_rows` for each.

        Must come before any release when the unit is a family; whoever calls this keeps to it.
        """
        if self.unit.family is None:
            raise PrivacyError(f"the privacy unit is {self.unit.describe()}, not a family.")
        return self._coins()

    def _coins(self) -> bytes:
        """The secret bytes that choose rows; later releases count on their being chosen."""
        entry = Entry(kind=COINS, what=ROW_COINS, attributes=(), events=())
        self._rows_selected = True
        return self._tape.play(entry, lambda: None, lambda _: self.noise.coins())

    def release_counts(
        self,
        values: NDArray[np.int64],
        *,
        what: str,
        attributes: tuple[str, ...],
        noise_multiplier: float,
        sensitivity: float | Sensitivity | None = None,
    ) -> NDArray[np.int64]:
        """Release whole numbers with discrete Gaussian noise, in the same shape.

        By default `values` is a histogram: a row counts in at most one cell. Otherwise give the L2 `sensitivity` to one
        row (a number is meant under the run's relation): `Sensitivity.of_histogram(3)` for three stacked histograms.
        The unit's `max_rows` is multiplied in here. It costs 1 / noise_multiplier² of mu².
        """
        return counts.release_counts(
            self,
            values,
            what=what,
            attributes=attributes,
            noise_multiplier=noise_multiplier,
            sensitivity=sensitivity,
        )

    def release_row_count(self, num_rows: int, *, noise_multiplier: float) -> int:
        """Release the number of rows, at least 0."""
        noisy = self.release_counts(
            np.asarray([num_rows], dtype=np.int64),
            what="number of rows",
            attributes=(),
            noise_multiplier=noise_multiplier,
            sensitivity=Sensitivity(add_remove=1.0, replace=1.0),
        )
        return max(0, int(noisy[0]))

    def release_vector(
        self,
        values: NDArray[np.float64],
        *,
        what: str,
        attributes: tuple[str, ...],
        noise_multiplier: float,
        sensitivity: float | Sensitivity,
        lower: float = -math.inf,
        upper: float = math.inf,
        grid: float | None = None,
    ) -> NDArray[np.float64]:
        """Release real numbers (rates, scores) with noise on a grid.

        The values are clipped to [lower, upper] and rounded to the grid first.
        `sensitivity` is the L2 sensitivity of the whole vector to one row; a plain number is meant under the run's
        relation. The step is the largest power of two that is at most `grid`; by default it is so small that rounding
        adds at most 0.1% to the noise. NaN is taken as 0. It costs 1 / noise_multiplier² of mu².
        """
        return vectors.release_vector(
            self,
            values,
            what=what,
            attributes=attributes,
            noise_multiplier=noise_multiplier,
            sensitivity=sensitivity,
            lower=lower,
            upper=upper,
            grid=grid,
        )

    def release_categories(
        self,
        columns: Mapping[str, Iterable[Any]],
        *,
        noise_multiplier: float,
        delta: float,
        set_aside: bool = False,
    ) -> dict[str, categories.NoisyCategories]:
        """Release the categories of one or more attributes that enough rows have, sorted, each with its noisy count.

        `columns` holds strings or whole numbers: one a row (a list, a numpy or a pyarrow array), or a mapping to
        counts. Anything else, such as null, is no category. Together it costs 1 / noise_multiplier² of mu² and `delta`
        of delta, which is new, or with `set_aside` a part of what `ledger.set_aside` paid for.

        Guarantees:
            Categories of one unit appear with probability at most `delta`, in all attributes together.
            [test_rare_category_appears_at_most_delta, test_rare_categories_of_all_columns_appear_at_most_delta]
            One with many rows appears. [test_frequent_category_appears]
        """
        return categories.release_categories(
            self, columns, noise_multiplier=noise_multiplier, delta=delta, set_aside=set_aside
        )

    def release_bounds(
        self,
        columns: bounds.Values,
        cells: Mapping[str, bounds.Cells],
        *,
        noise_multiplier: float,
        about_rows: float,
    ) -> dict[str, bounds.NoisyBounds]:
        """Release ranges that hold nearly all values of each attribute, at edges of public cells: never the extremes.

        Give dates and times as whole days or other steps, with `time_cells`. `about_rows` is a noisy number of rows. A
        table in parts is given as a function that reads them once more.
        NaN and infinity stop nothing. Together it costs 1 / noise_multiplier² of mu², in one release or two.
        """
        return bounds.release_bounds(self, columns, cells, noise_multiplier=noise_multiplier, about_rows=about_rows)

    def release_descent(
        self,
        rows: tuple[NDArray[Any], ...],
        descent: gradients.Descent | factored_gradients.FactoredDescent,
        plan: gradients.DescentPlan,
    ) -> Any:
        """Train by DP-SGD on private `rows` (arrays with one item a row) and return the optimizer's last state.

        It costs `plan.steps` sampled Gaussian events, charged before the first step. Needs jax, unless the plan
        says that gradients come in factors.
        """
        return gradients.release_descent(self, rows, descent, plan)

    def release_sample(
        self, rows: NDArray[np.int64], measure: samples.Measure, plan: samples.SamplePlan
    ) -> NDArray[np.int64]:
        """Release what `measure` says of a small random sample of the rows, a line for each, with Gaussian noise.

        `rows` are codes, one line a row. `measure` is given the places of the sampled rows, and returns a matrix of
        whole numbers with a line for each. The result has `plan.sample_rows` lines, in random order. It costs one
        sampled Gaussian event.
        """
        return samples.release_sample(self, rows, measure, plan)

    def sensitivity(self, row: float | Sensitivity) -> Sensitivity:
        """Return the sensitivity to one privacy unit, from that to one row."""
        return Sensitivity.of(row, self.budget.neighbours).for_rows(self.unit.max_rows)

    def deviation(self, noise_multiplier: float, sensitivity: Sensitivity) -> float:
        """Return the standard deviation to charge for: 0, no noise, if epsilon is inf."""
        if not self.budget.is_private:
            return 0.0
        if not 0 < noise_multiplier < math.inf:
            raise PrivacyError(
                f"a release has noise multiplier {noise_multiplier}; expected a positive finite number "
                "(epsilon=inf for no noise)."
            )
        distance = sensitivity.under(self.budget.neighbours)
        if not math.isfinite(distance):
            raise PrivacyError(
                "a release has no bound on its sensitivity under the relation of the run; declare one, or clip."
            )
        return noise_multiplier * distance

    def publish(self, entry: Entry, *, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        """Charge, then compute the truth, then draw. For mechanisms only."""
        self.charge(entry)
        return self.play(entry, truth=truth, answer=answer)

    def charge(self, entry: Entry) -> None:
        """Charge for a release that is drawn in parts, before the first of them. For mechanisms only."""
        if not self._rows_selected:
            raise PrivacyError(
                f"the privacy unit is {self.unit.describe()}, but select_rows was not called; "
                "call it on the table first."
            )
        self.ledger.charge(entry)

    def play(self, entry: Entry, *, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        """Draw a part of what was charged. For mechanisms only."""
        return self._tape.play(entry, truth, answer)

    def store(self, keeper: Keeper, *, on_charge: Callable[[Entry], None]) -> None:
        """Let every charge be entered elsewhere before it counts, and every release be stored before it is handed out.

        Releases that are stored already are handed out as they were. Must come before the first charge.
        """
        if self.ledger.entries:
            raise PrivacyError("a gate was used before its releases were to be stored; open another one.")
        self.ledger.on_charge = on_charge
        self._tape = StoredTape(self._tape, keeper, self._renew)

    def settle(self, what: str, choice: Choice) -> Choice:
        """Return a choice that follows from releases alone, as it was made first if releases are stored.

        It is kept with them, as public as they are.
        """
        return self._tape.settle(what, choice) if isinstance(self._tape, StoredTape) else choice

    def _renew(self, number: int) -> None:
        """Let the noise of a test follow from the number of the release, so that releases that are not drawn take none.

        Noise of the operating system is new every time.
        """
        if isinstance(self.noise, SeededNoise):
            self.noise.begin(number)

    @property
    def is_live(self) -> bool:
        """Whether no test records or plays back, so that steps of a mechanism may run in one go."""
        return is_live(self._tape)
