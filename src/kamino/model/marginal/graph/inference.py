"""The distribution that explains the noisy marginals: a convex problem solved in its dual.

    minimise over distributions p:   tau * KL(p || uniform) + sum_i |N M_i p - y_i|^2 / (2 sigma_i^2)

N is the number of rows, M_i p the i-th marginal (in groups of its cells, if it was measured so; without what lower
marginals say, if its interactions were measured), y_i its noisy counts. `tau` counts pseudo-rows that hold the model to
the most even distribution; it decides what no measurement decides and keeps noise from being fitted where counts are
few.
With one multiplier for each measured cell the dual is smooth and unconstrained,

    minimise over lambda:   tau * log Z(theta) + <lambda, y> + sum_i sigma_i^2 |lambda_i|^2 / 2,
    theta = -(N / tau) * sum_i M_i^T lambda_i,

its gradient needs one propagation, and log potentials `theta` on the measured cells are all the model has to keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, SharedSums, spread_shape, sum_groups
from kamino.model.marginal.graph.junction import Clique, JunctionTree
from kamino.model.marginal.graph.propagation import Propagator
from kamino.model.protocol import IntArray

#: Standard deviations below this (exact counts) are treated as this: half a row.
LEAST_SIGMA = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Noisy counts of one marginal, with a standard deviation for each cell; axes follow `attributes`, sorted.

    `group` names the measured cell of each cell of the marginal, where it was measured at a lower resolution.
    `is_interaction`: the counts are the table's interactions, see `interactions_of`.
    """

    attributes: Clique
    counts: FloatArray
    sigma: FloatArray
    group: IntArray | None = None
    is_interaction: bool = False

    @property
    def key(self) -> Key:
        """Equal for two measurements of the same."""
        group = None if self.group is None else self.group.tobytes()
        return self.attributes, self.counts.shape, self.is_interaction, group

    def answer(self, table: FloatArray) -> FloatArray:
        """Return what would be measured, without noise, of a marginal with these (flattened) counts."""
        if self.group is not None:
            table = sum_groups(self.group, table, self.counts.size)
        return interactions_of(table.reshape(self.counts.shape)).ravel() if self.is_interaction else table

    def spread(self, multipliers: FloatArray) -> FloatArray:
        """Return the transpose of `answer`: a number for each cell of the marginal."""
        if self.is_interaction:
            multipliers = interactions_of(multipliers.reshape(self.counts.shape)).ravel()
        return multipliers if self.group is None else multipliers[self.group]


#: What tells measurements of different things apart.
Key: TypeAlias = tuple[Clique, tuple[int, ...], bool, bytes | None]


def interactions_of(table: FloatArray) -> FloatArray:
    """Return a table minus the means along each of its axes: what its lower marginals do not say."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """A calibrated model: the tree, the marginal of each clique, and the multipliers to start the next fit from."""

    tree: JunctionTree
    beliefs: tuple[FloatArray, ...]
    multipliers: Mapping[Key, FloatArray]
    iterations: int


def combine(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Merge repeated measurements of one marginal by inverse variance."""
    merged: dict[Key, Measurement] = {}
    for new in measurements:
        old = merged.get(new.key)
        sigma = np.maximum(new.sigma, LEAST_SIGMA)
        if old is None:
            merged[new.key] = replace(new, sigma=sigma)
            continue
        weight = old.sigma**-2 + sigma**-2
        counts = (old.counts / old.sigma**2 + new.counts / sigma**2) / weight
        merged[new.key] = replace(new, counts=counts, sigma=weight**-0.5)
    return list(merged.values())


class _Dual:
    """The dual objective on one tree, with multipliers scaled by the expected curvature of each cell."""

    def __init__(
        self,
        tree: JunctionTree,
        measurements: Sequence[Measurement],
        zeros: Mapping[Clique, FloatArray],
        *,
        num_rows: float,
        tau: float,
    ) -> None:
        self.propagate = Propagator(tree)
        self.measurements = measurements
        self.num_rows, self.tau = num_rows, tau
        self.shared = [SharedSums(clique, tree.sizes) for clique in tree.cliques]
        for i, m in enumerate(measurements):
            home = tree.home(m.attributes)
            assert home is not None, "a measured marginal is outside the tree"
            self.shared[home].add(i, m.attributes)
        self.base = [np.zeros(shape) for shape in self.propagate.shapes]
        for attributes, allowed in zeros.items():
            home = tree.home(attributes)
            assert home is not None, "a mask of allowed cells is outside the tree"
            with np.errstate(divide="ignore"):
                log = np.log(allowed.astype(float))
            self.base[home] += log.reshape(spread_shape(tree.cliques[home], attributes, tree.sizes))
        self.counts = np.concatenate([m.counts.ravel() for m in measurements])
        self.sigma2 = np.concatenate([m.sigma.ravel() ** 2 for m in measurements])
        expected = np.clip(np.abs(self.counts), np.sqrt(self.sigma2), num_rows)
        self.scale = 1.0 / np.sqrt(num_rows * expected / tau + self.sigma2)
        self.bounds = np.cumsum([m.counts.size for m in measurements])[:-1]

    def beliefs(self, multipliers: FloatArray) -> tuple[list[FloatArray], float]:
        parts = np.split(multipliers * (-self.num_rows / self.tau), self.bounds)
        spread = [m.spread(part) for m, part in zip(self.measurements, parts, strict=True)]
        return self.propagate([base + s.spread(spread) for base, s in zip(self.base, self.shared, strict=True)])

    def answers(self, beliefs: Sequence[FloatArray]) -> FloatArray:
        tables: dict[int, FloatArray] = {}
        for belief, shared in zip(beliefs, self.shared, strict=True):
            tables.update(shared.project(belief))
        answers = [m.answer(tables[i].ravel()) for i, m in enumerate(self.measurements)]
        return np.concatenate(answers) * self.num_rows

    def __call__(self, scaled: FloatArray) -> tuple[float, FloatArray]:
        multipliers = scaled * self.scale
        beliefs, log_total = self.beliefs(multipliers)
        value = self.tau * log_total + multipliers @ self.counts + 0.5 * (self.sigma2 * multipliers) @ multipliers
        slope = self.counts - self.answers(beliefs) + self.sigma2 * multipliers
        return float(value), slope * self.scale


def infer(
    tree: JunctionTree,
    measurements: Sequence[Measurement],
    *,
    num_rows: float,
    tau: float,
    zeros: Mapping[Clique, FloatArray] | None = None,
    start: Mapping[Key, FloatArray] | None = None,
    iterations: int = 200,
    tolerance: float = 1e-9,
) -> Fit:
    """Solve the problem in the module's docstring on `tree`, starting from earlier multipliers if given.

    Guarantees:
        Equals minimising over the whole joint table.  [test_inference_matches_brute_force]
        Cells that `zeros` marks with 0 have no mass.  [test_structural_zeros_have_no_mass]
    """
    from scipy.optimize import minimize  # slow to import: only when a model is fitted

    merged = combine(measurements)
    dual = _Dual(tree, merged, zeros or {}, num_rows=num_rows, tau=tau)
    first = [(start or {}).get(m.key, np.zeros(m.counts.size)) for m in merged]
    result = minimize(
        dual,
        np.concatenate(first) / dual.scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "maxcor": 20, "ftol": tolerance * 1e-3, "gtol": tolerance},
    )
    multipliers = result.x * dual.scale
    beliefs, _ = dual.beliefs(multipliers)
    parts = np.split(multipliers, dual.bounds)
    return Fit(
        tree=tree,
        beliefs=tuple(beliefs),
        multipliers={m.key: part for m, part in zip(merged, parts, strict=True)},
        iterations=int(result.nit),
    )
