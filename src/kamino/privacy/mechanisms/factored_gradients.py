"""Sums of clipped gradients whose rows are given in factors, as those of a small network are. Needs numpy alone.

A row's gradient is made of parts that lie in different places of the parameter vector: a matrix `left right^T` (a
layer), vectors in some lines of a table (embeddings), and plain numbers. Its norm follows from the factors, so that no
row's whole gradient is ever written down. A row is clipped to norm 1 (in units of the clip norm C), and the factors are
cut, towards 0, to whole numbers of small steps: products and sums of whole numbers below 2^53 are exact in double
precision, in whatever order they are taken. So one row moves the sum by at most C, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError

if TYPE_CHECKING:
    from kamino.privacy.mechanisms.gradients import DescentPlan

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
State: TypeAlias = tuple[NDArray[Any], ...]
Rows: TypeAlias = tuple[NDArray[Any], ...]
# The clip norm is 2^25 steps of the grid; the factors of a product are cut to 2^-13 and 2^-12.
BITS = 25
_LEFT, _RIGHT = 2.0**13, 2.0**12
# A sum of N squares in double precision is too small by at most N ulps: the target is below 1 by more.
_TARGET = 1 - 2.0**-30


@dataclass(frozen=True, kw_only=True, eq=False)
class Outer:
    """Rows' gradients of a matrix: `left` of one row times `right` of the same row. `start`: its first parameter."""

    start: int
    left: Floats
    right: Floats

    @property
    def size(self) -> int:
        """The number of parameters."""
        return int(self.left.shape[1] * self.right.shape[1])

    def squares(self) -> Floats:
        """The squared norm of each row's part."""
        left, right = (np.einsum("ij,ij->i", each, each) for each in (self.left, self.right))
        return np.asarray(left * right)

    def total(self, scale: Floats) -> Floats:
        """The sum of all rows' parts, in steps of the grid: whole numbers."""
        # Of the two factors, the right one gets norm 1: neither is then cut to nothing where the other is large.
        size = np.sqrt(np.einsum("ij,ij->i", self.right, self.right))
        left = np.trunc(self.left * (scale * size * _LEFT)[:, None])
        right = np.trunc(self.right * (_RIGHT / np.maximum(size, 1e-300))[:, None])
        return np.asarray((left.T @ right).ravel())


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """Rows' gradients of a table: a vector for one line in each of its sections, which are cut at `sections`.

    A row has one line in each section, so that no two of its vectors meet; a line outside is moved into its section.
    """

    start: int
    index: NDArray[np.int64]
    values: Floats
    sections: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of parameters."""
        return int(self.sections[-1] * self.values.shape[2])

    def squares(self) -> Floats:
        """The squared norm of each row's part."""
        return np.asarray(np.einsum("ikd,ikd->i", self.values, self.values))

    def total(self, scale: Floats) -> Floats:
        """The sum of all rows' parts, in steps of the grid: whole numbers."""
        from scipy.sparse import csr_matrix  # slow to import: only where networks are trained

        rows, num, dim = self.values.shape
        bounds = np.asarray(self.sections)
        lines = np.clip(self.index, bounds[:-1], bounds[1:] - 1).ravel()
        flat = np.trunc(self.values * (scale * 2.0**BITS)[:, None, None]).reshape(rows * num, dim)
        places = csr_matrix((np.ones(rows * num), (lines, np.arange(rows * num))), shape=(self.sections[-1], len(flat)))
        return np.asarray(places @ flat).ravel()


@dataclass(frozen=True, kw_only=True, eq=False)
class Plain:
    """Rows' gradients of some parameters, written down."""

    start: int
    values: Floats

    @property
    def size(self) -> int:
        """The number of parameters."""
        return int(self.values.shape[1])

    def squares(self) -> Floats:
        """The squared norm of each row's part."""
        return np.asarray(np.einsum("ij,ij->i", self.values, self.values))

    def total(self, scale: Floats) -> Floats:
        """The sum of all rows' parts, in steps of the grid: whole numbers."""
        return np.asarray(np.trunc(self.values * (scale * 2.0**BITS)[:, None]).sum(axis=0))


Part: TypeAlias = Outer | Lines | Plain


class FactoredDescent(Protocol):
    """What a model tells the mechanism: public functions. Private rows reach `gradients` alone."""

    def start(self) -> State:
        """Return the first state of the optimizer."""
        ...

    def gradients(self, state: State, rows: Rows) -> Sequence[Part]:
        """Return the gradients of the loss of each row, in parts."""
        ...

    def advance(self, state: State, gradient: Floats) -> State:
        """Return the next state from the noisy sum of gradients."""
        ...


def factored_sum(parts: Sequence[Part], num_parameters: int, present: Mask) -> NDArray[np.int64]:
    """Return the sum of clipped gradients in steps of the grid; rows that are not `present` add 0.

    Guarantees:
        One row moves it by at most the clip norm.  [test_one_row_moves_a_factored_sum_by_at_most_the_norm]
        It is the sum of the clipped gradients.  [test_a_factored_sum_is_the_sum_of_clipped_gradients]
    """
    _check_places(parts, num_parameters)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(sum((part.squares() for part in parts), np.zeros(len(present))))
    usable = np.isfinite(norms) & present
    total = np.zeros(num_parameters)
    if not usable.all():
        parts = [_masked(part, usable) for part in parts]
    scale = np.where(usable, np.minimum(1.0, _TARGET / np.maximum(norms, 1e-300)), 0.0)
    for part in parts:
        total[part.start : part.start + part.size] = part.total(scale)
    return total.astype(np.int64)


def block_total(
    descent: FactoredDescent, plan: DescentPlan, state: State, rows: Rows, places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the sum over sampled rows, which are taken in blocks of one size whatever the sample.

    Matrix products may round otherwise for other sizes. So no size follows from the sample: whoever else is in it, a
    row adds the same.

    Guarantees:
        Another row in the sample moves no row's part.  [test_no_row_moves_the_factored_part_of_another]
    """
    width = -(-plan.block_rows // 64) * 64
    total = np.zeros(plan.num_parameters, dtype=np.int64)
    for first in range(0, max(len(places), 1), width):
        chosen = places[first : first + width]
        filled = np.concatenate([chosen, np.zeros(width - len(chosen), dtype=np.int64)])
        if len(rows[0]) == 0:
            break
        # Gradients in units of the clip norm.
        parts = [_in_units(part, plan.clip_norm) for part in descent.gradients(state, tuple(a[filled] for a in rows))]
        total += factored_sum(parts, plan.num_parameters, np.arange(width) < len(chosen))
    return total


def _in_units(part: Part, clip_norm: float) -> Part:
    if isinstance(part, Outer):
        return Outer(start=part.start, left=part.left / clip_norm, right=part.right)
    if isinstance(part, Lines):
        return Lines(start=part.start, index=part.index, values=part.values / clip_norm, sections=part.sections)
    return Plain(start=part.start, values=part.values / clip_norm)


def _masked(part: Part, usable: Mask) -> Part:
    """The part with zeros for rows that are not used: infinite numbers times 0 would not be 0."""
    if isinstance(part, Outer):
        left, right = (np.where(usable[:, None], each, 0.0) for each in (part.left, part.right))
        return Outer(start=part.start, left=left, right=right)
    if isinstance(part, Lines):
        values = np.where(usable[:, None, None], part.values, 0.0)
        return Lines(start=part.start, index=part.index, values=values, sections=part.sections)
    return Plain(start=part.start, values=np.where(usable[:, None], part.values, 0.0))


def _check_places(parts: Sequence[Part], num_parameters: int) -> None:
    """Refuse parts that meet: their norms would not add up."""
    end = 0
    for part in sorted(parts, key=lambda each: each.start):
        if part.start < end:
            raise PrivacyError("two parts of a gradient lie in the same place; expected each parameter in one part.")
        end = part.start + part.size
    if end > num_parameters:
        raise PrivacyError(f"a gradient has {end} numbers; expected at most {num_parameters}, as planned.")
