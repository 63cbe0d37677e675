"""What a tuple model is, and the two sides it stands between: private counts in, public probabilities out.

A backend is fitted through a `Measurer`, the only thing here that touches private rows; whatever it returns is noisy
and public. The fitted `TupleModel` holds public facts only.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias, assert_never, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import FloatArray as FloatArray
from kamino.arrays import IntArray as IntArray
from kamino.errors import ModelError
from kamino.model.phase import Phase, PhaseWeights

# No table that was ever fitted has so many rows: a file that says so is refused.
MOST_ROWS = 1e12


@dataclass(frozen=True, kw_only=True)
class ModelAttribute:
    """What the model knows of an attribute: how many codes, whether neighbours are alike, which code is null.

    `phase` says which cycles may be measured beside the histogram; it is no part of the domain.
    """

    name: str
    size: int
    ordered: bool = False
    null_code: int | None = None
    phase: Phase | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ModelError(f"attribute {self.name!r} has {self.size} values; a domain needs at least one.")
        if self.null_code is not None and not 0 <= self.null_code < self.size:
            raise ModelError(f"attribute {self.name!r}: null code {self.null_code} is outside 0..{self.size - 1}.")


#: So many codes are read from a table of the whole domain, where that is not larger than this.
_MANY_CODES, _MOST_TABLED = 2**12, 2**21


@dataclass(frozen=True, kw_only=True, eq=False)
class CodeMap:
    """A public map from codes to bins, kept as runs so that a domain of a billion codes stays small.

    Codes `starts[i]` up to the next start go to bin `labels[i]`.
    """

    size: int
    bins: int
    starts: IntArray
    labels: IntArray

    def __post_init__(self) -> None:
        if len(self.starts) != len(self.labels) or len(self.starts) == 0 or self.starts[0] != 0:
            raise ModelError("a code map needs one label for each run, and a first run that starts at code 0.")
        if np.any(np.diff(self.starts) <= 0) or self.starts[-1] >= self.size:
            raise ModelError("the runs of a code map must ascend and stay inside the domain.")
        if self.labels.min() < 0 or self.labels.max() >= self.bins:
            raise ModelError("a code map has a label outside its bins.")

    def __call__(self, codes: IntArray) -> IntArray:
        """Return the bin of each code.

        Guarantees:
            Many codes are read from a table, which says the same.  [test_code_maps_read_many_codes_as_few]
        """
        if len(self.starts) == self.size:
            return self.labels[codes]
        if np.size(codes) >= _MANY_CODES and self.size <= _MOST_TABLED:
            return self._table[codes].astype(np.int64)
        return self.labels[np.searchsorted(self.starts, codes, side="right") - 1]

    @cached_property
    def _table(self) -> NDArray[Any]:
        """The bin of every code, in the smallest type."""
        labels = self.labels.astype(np.min_scalar_type(self.bins))
        return np.repeat(labels, np.diff(self.starts, append=self.size))

    @property
    def key(self) -> Hashable:
        """What tells it from other maps, by content.

        Guarantees:
            Maps that read codes in another way have other keys.  [test_maps_of_endings_have_keys_of_their_own]
        """
        return self.size, self.bins, self.starts.tobytes(), self.labels.tobytes()

    @staticmethod
    def identity(size: int) -> CodeMap:
        """Give every code its own bin."""
        codes = np.arange(size, dtype=np.int64)
        return CodeMap(size=size, bins=size, starts=codes, labels=codes)

    def merged(self, group: IntArray) -> CodeMap:
        """Return the map to groups of bins; `group` names the group of each bin."""
        return replace(self, labels=group[self.labels], bins=int(group.max()) + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalMap:
    """A public map to bins that reads an attribute relative to another, its base.

    Codes go to fine bins first (`own` and `over`, the base's), and `labels[fine bin of the base, fine bin]` is the bin.
    """

    base: str
    over: CodeMap
    own: CodeMap
    labels: IntArray
    bins: int

    def __post_init__(self) -> None:
        if self.labels.shape != (self.over.bins, self.own.bins):
            raise ModelError("a conditional map needs a label for each fine bin of the base and of the attribute.")
        if self.labels.min() < 0 or self.labels.max() >= self.bins:
            raise ModelError("a conditional map has a label outside its bins.")

    def __call__(self, codes: IntArray, base: IntArray) -> IntArray:
        """Return the bin of each code, given the code of the base."""
        return self.labels[self.over(base), self.own(codes)]

    def merged(self, group: IntArray) -> ConditionalMap:
        """Return the map to groups of bins; `group` names the group of each bin."""
        return replace(self, labels=group[self.labels], bins=int(group.max()) + 1)


#: How an attribute is read: by its own code, or relative to that of another attribute.
View: TypeAlias = CodeMap | ConditionalMap


def read(view: View, name: str, columns: Mapping[str, IntArray]) -> IntArray:
    """Return the bins of a column as `view` reads it; `columns` holds codes."""
    match view:
        case CodeMap():
            return view(columns[name])
        case ConditionalMap():
            return view(columns[name], columns[view.base])
        case _:
            assert_never(view)


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A marginal that may be measured: its attributes, each read through a view where one is given."""

    attributes: tuple[str, ...]
    binning: Mapping[str, View]


class Measurer(Protocol):
    """The private side: noisy counts and noisy distances of one private table, each release paid for.

    The noise is Gaussian with standard deviation `noise_multiplier` times the L2 sensitivity, so that a release costs
    `1 / noise_multiplier**2` and costs add up. A multiplier of 0 asks for the exact answer (no privacy).
    """

    def expect(self, candidates: Sequence[Candidate]) -> None:
        """Say which marginals or interactions will be asked for next, so that they can be counted in one pass."""
        ...

    def marginal(
        self, attributes: tuple[str, ...], binning: Mapping[str, View] | None, *, noise_multiplier: float
    ) -> NDArray[Any]:
        """Return noisy counts of the flattened (C order) contingency table; adding a row moves one cell by 1."""
        ...

    def interaction(
        self, attributes: tuple[str, ...], binning: Mapping[str, View], *, noise_multiplier: float
    ) -> NDArray[Any]:
        """Return the flattened table without what its lower marginals say, times its number of cells, noisy.

        One row moves it by the root of the product of a * (a - 1) over its axes of a bins: less than it moves the
        table, scaled alike, so that the same cost buys less noise (ResidualPlanner, arXiv 2305.08175).
        """
        ...

    def scores(
        self,
        candidates: Sequence[Candidate],
        model_answers: Sequence[FloatArray],
        *,
        noise_multiplier: float,
        against: str = "the model",
    ) -> FloatArray:
        """Return noisy L1 distances between each candidate's true counts and the expected counts of `against`.

        Adding a row moves each distance by at most 1, so the vector of k has L2 sensitivity sqrt(k).
        """
        ...

    def settle(self, what: str, choice: list[Any]) -> list[Any]:
        """Return a choice that follows from releases, in whole numbers and texts; in a run that goes on, as it was."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """How the codes of an attribute are spread inside its bins: runs of codes, and inside a run by phase or evenly.

    P(code | bin) = share[i] / width[i] for the run i that holds the code, and sum of `share` over a bin's runs is 1.
    With `weights`, it is share[i] * weight(code) / (sum of the weights of the run's codes).

    Guarantees:
        The probabilities of the codes of a bin sum to 1.  [test_codes_of_a_run_sum_to_one]
    """

    map: CodeMap
    width: IntArray
    share: FloatArray
    weights: PhaseWeights | None = None

    def log_share(self, codes: IntArray) -> FloatArray:
        """Return log P(code | its bin) for each code."""
        run = np.searchsorted(self.map.starts, codes, side="right") - 1
        mass = self.width if self.weights is None else self.weights.mass(self.map.starts, self.width)
        with np.errstate(divide="ignore"):
            log: FloatArray = np.log(self.share / mass)
        return log[run] if self.weights is None else log[run] + np.log(self.weights(codes))


@dataclass(frozen=True, kw_only=True, eq=False)
class Conditional:
    """P(attribute | context) for many rows: one row of the table for each distinct context.

    P(code v | row i) = exp(log_prob[context[i], bin of v]) * P(v | bin of v); the second factor is in `cells`.
    """

    attribute: str
    context: IntArray
    log_prob: FloatArray
    cells: Cells

    def of(self, codes: IntArray) -> FloatArray:
        """Return log P(codes[i] | context of row i)."""
        result: FloatArray = self.log_prob[self.context, self.cells.map(codes)] + self.cells.log_share(codes)
        return result

    def dense(self) -> FloatArray:
        """Return log P for every distinct context (rows) and every code (columns)."""
        codes = np.arange(self.cells.map.size, dtype=np.int64)
        result: FloatArray = self.log_prob[:, self.cells.map(codes)] + self.cells.log_share(codes)[None, :]
        return result


@runtime_checkable
class TupleModel(Protocol):
    """The public side: a distribution of one row, split along a sequence of attributes."""

    @property
    def sequence(self) -> tuple[str, ...]:
        """The attributes, in the order in which a row is filled."""
        ...

    @property
    def num_rows(self) -> float:
        """The noisy number of rows of the table it was fitted on."""
        ...

    @property
    def reads_codes(self) -> frozenset[str]:
        """The attributes of which other attributes' distributions read more than the bin."""
        ...

    def parents(self, attribute: str) -> tuple[str, ...]:
        """Return the earlier attributes that `attribute` depends on."""
        ...

    def conditional(self, attribute: str, context: Mapping[str, IntArray], num_rows: int) -> Conditional:
        """Return P(attribute | earlier attributes) for rows whose parents' codes are in `context`."""
        ...

    def marginal(self, attributes: tuple[str, ...]) -> FloatArray:
        """Return the joint probabilities of the codes of `attributes`, one axis each."""
        ...

    def sample(self, num_rows: int, rng: np.random.Generator) -> dict[str, IntArray]:
        """Draw rows; each row follows the model, and together they follow it more closely than independent ones."""
        ...


@runtime_checkable
class FrequencyModel(TupleModel, Protocol):
    """A tuple model that knows how often each bin of an attribute occurs."""

    def frequencies(self, attribute: str) -> FloatArray:
        """Return the probability of each bin of `attribute`, the bins of its conditionals."""
        ...


@runtime_checkable
class ConditionableModel(TupleModel, Protocol):
    """A tuple model that knows the distribution of rows that meet a condition."""

    def given(self, allowed: Mapping[str, IntArray]) -> TupleModel | None:
        """Return the model of rows whose named attributes have one of these codes; None if that is too large."""
        ...


@runtime_checkable
class SavedModel(TupleModel, Protocol):
    """A tuple model that can be written as plain data and read again by `load_model`."""

    @property
    def attributes(self) -> tuple[ModelAttribute, ...]:
        """What the model knows of each attribute, along the sequence."""
        ...

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return a JSON-able description, with its format, and the arrays that it names."""
        ...
