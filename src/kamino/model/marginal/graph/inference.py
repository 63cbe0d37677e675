"""The distribution that explains the noisy marginals: a convex problem solved in its dual.

    minimise over distributions p:   tau * KL(p || prior) + sum_i |N M_i p - y_i|^2 / (2 sigma_i^2)

The prior is a product of weights of the attributes' values, even if none are given, over the cells that are allowed.
N is the number of rows, M_i p the i-th marginal (in groups of its cells, if it was measured so; without what lower
marginals say, if its interactions were measured), y_i its noisy counts. `tau` counts pseudo-rows that hold the model to
the prior; it decides what no measurement decides and keeps noise from being fitted where counts are
few.
With one multiplier for each measured cell the dual is smooth and unconstrained,

    minimise over lambda:   tau * log Z(theta) + <lambda, y> + sum_i sigma_i^2 |lambda_i|^2 / 2,
    theta = log prior - (N / tau) * sum_i M_i^T lambda_i,

its gradient needs one propagation, and log potentials `theta` on the measured cells are all the model has to keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kamino.model.marginal.graph.curvature import InverseCurvature
from kamino.model.marginal.graph.descent import minimise
from kamino.model.marginal.graph.factor import FloatArray, IntArray, Projection, SharedSums, with_both
from kamino.model.marginal.graph.junction import Clique, JunctionTree
from kamino.model.marginal.graph.measurement import LEAST_SIGMA as LEAST_SIGMA
from kamino.model.marginal.graph.measurement import Key as Key
from kamino.model.marginal.graph.measurement import Measurement as Measurement
from kamino.model.marginal.graph.measurement import combine as combine
from kamino.model.marginal.graph.measurement import interactions_of as interactions_of
from kamino.model.marginal.graph.propagation import Propagator

#: Inference is done when no multipliers can gain more than this for each measured cell (chi-square has 1/2 a cell).
ENOUGH = 0.01
#: Types of clique tables, from fast to exact, and which part of the objective their rounding blurs.
RESOLUTION: Mapping[Any, float] = {np.float32: 1e-8, np.float64: 1e-15}


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """A calibrated model: the tree, the marginal of each clique, and the multipliers to start the next fit from."""

    tree: JunctionTree
    beliefs: tuple[FloatArray, ...]
    multipliers: Mapping[Key, FloatArray]
    iterations: int

    def joint(self, variables: Clique) -> FloatArray:
        """Return the probabilities of variables, sorted, that share a clique; also of one beside its own groups."""
        home = self.tree.home(variables)
        assert home is not None, "the variables share no clique"
        return with_both(self.beliefs[home], self.tree.cliques[home], variables, self.tree.sizes, self.tree.groups)


def potentials_of(
    tree: JunctionTree, zeros: Mapping[Clique, FloatArray], prior: Mapping[int, FloatArray]
) -> list[FloatArray]:
    """Return the log potentials of cliques before anything is measured: what is forbidden, and the prior's weights."""
    base = [np.zeros(tuple(tree.sizes[a] for a in clique)) for clique in tree.cliques]
    weights: list[tuple[Clique, FloatArray]] = [((a,), weight) for a, weight in prior.items()]
    for attributes, factor in (*zeros.items(), *weights):
        home = tree.home(attributes)
        assert home is not None, "a mask or a weight is outside the tree"
        with np.errstate(divide="ignore"):
            log = np.log(factor.astype(float))
        base[home] += Projection(tree.cliques[home], attributes, tree.sizes, tree.groups).spread(log)
    return base


class _Dual:
    """The dual objective on one tree.

    `kind` is the floating point type of the tables of cliques; what is measured is always in double precision.
    """

    def __init__(
        self,
        tree: JunctionTree,
        measurements: Sequence[Measurement],
        zeros: Mapping[Clique, FloatArray],
        *,
        num_rows: float,
        tau: float,
        prior: Mapping[int, FloatArray] | None = None,
    ) -> None:
        self.propagate = Propagator(tree)
        self.measurements = measurements
        self.num_rows, self.tau = num_rows, tau
        self.shared = [SharedSums(clique, tree.sizes, tree.groups) for clique in tree.cliques]
        for i, m in enumerate(measurements):
            home = tree.home(m.attributes)
            assert home is not None, "a measured marginal is outside the tree"
            self.shared[home].add(i, m.attributes)
        base = potentials_of(tree, zeros, prior or {})
        self.base: dict[Any, list[FloatArray]] = {
            kind: [table.astype(kind) for table in base] for kind in (np.float32, np.float64)
        }
        self.kind: Any = np.float64
        self.counts = np.concatenate([m.counts.ravel() for m in measurements])
        self.sigma2 = np.concatenate([m.sigma.ravel() ** 2 for m in measurements])
        ends = np.cumsum([m.counts.size for m in measurements]).tolist()
        self.lines = [slice(end - m.counts.size, end) for end, m in zip(ends, measurements, strict=True)]

    def beliefs(self, multipliers: FloatArray) -> tuple[list[FloatArray], float]:
        scaled = multipliers * (-self.num_rows / self.tau)
        spread = [m.spread(scaled[own]).astype(self.kind) for m, own in zip(self.measurements, self.lines, strict=True)]
        base = self.base[self.kind]
        return self.propagate([table + s.spread(spread) for table, s in zip(base, self.shared, strict=True)])

    def tables(self, beliefs: Sequence[FloatArray]) -> dict[int, FloatArray]:
        """Return the measured marginals, flattened, by the number of the measurement."""
        tables: dict[int, FloatArray] = {}
        for belief, shared in zip(beliefs, self.shared, strict=True):
            tables.update((i, table.astype(np.float64).ravel()) for i, table in shared.project(belief).items())
        return tables

    def __call__(self, multipliers: FloatArray) -> tuple[float, FloatArray]:
        beliefs, log_total = self.beliefs(multipliers)
        value = self.tau * log_total + multipliers @ self.counts + 0.5 * (self.sigma2 * multipliers) @ multipliers
        tables = self.tables(beliefs)
        answers = np.concatenate([m.answer(tables[i]) for i, m in enumerate(self.measurements)]) * self.num_rows
        return float(value), self.counts - answers + self.sigma2 * multipliers

    def most_gain(self, slope: FloatArray) -> float:
        """Return a bound of how much lower the objective can get: it is at least as convex as sigma² |lambda|² / 2."""
        return 0.5 * float(slope @ (slope / self.sigma2))


def infer(
    tree: JunctionTree,
    measurements: Sequence[Measurement],
    *,
    num_rows: float,
    tau: float,
    prior: Mapping[int, FloatArray] | None = None,
    zeros: Mapping[Clique, FloatArray] | None = None,
    start: Mapping[Key, FloatArray] | None = None,
    iterations: int = 200,
    enough: float = ENOUGH,
) -> Fit:
    """Solve the problem in the module's docstring on `tree`, starting from earlier multipliers if given.

    It ends when a bound says that no more than `enough` for each measured cell can be gained, or when the iterations
    are used up. Tables of cliques are in single precision as long as steps in it gain something.

    Guarantees:
        Equals minimising over the whole joint table.  [test_inference_matches_brute_force]
        Cells that `zeros` marks with 0 have no mass.  [test_structural_zeros_have_no_mass]
        The gain that is left is within its bound.  [test_inference_ends_when_little_is_left]
    """
    merged = combine(measurements)
    dual = _Dual(tree, merged, zeros or {}, num_rows=num_rows, tau=tau, prior=prior)
    point = np.concatenate([(start or {}).get(m.key, np.zeros(m.counts.size)) for m in merged])
    start_beliefs = dual.beliefs(point)[0]
    tables = dual.tables(start_beliefs)
    inverse = InverseCurvature(
        merged, tables, tree.sizes, num_rows=num_rows, tau=tau, within=_within(tree, start_beliefs)
    )
    limit = enough * len(point)
    used, done = 0, False
    for dual.kind, resolution in RESOLUTION.items():
        if done or used >= iterations:
            break
        found = minimise(
            dual,
            point,
            inverse_curvature=inverse,
            enough=lambda _, slope: dual.most_gain(slope) <= limit,
            iterations=iterations - used,
            resolution=resolution,
        )
        point, used, done = found.point, used + found.iterations, found.done
    dual.kind = np.float64
    beliefs, _ = dual.beliefs(point)
    return Fit(
        tree=tree,
        beliefs=tuple(beliefs),
        multipliers={m.key: point[own] for m, own in zip(merged, dual.lines, strict=True)},
        iterations=used,
    )


def _within(tree: JunctionTree, beliefs: Sequence[FloatArray]) -> dict[int, tuple[IntArray, FloatArray]]:
    """Return, for each variable that is the groups of another's values, the group and the probability of each value."""
    found = {}
    for v, group in tree.groups.items():
        home = tree.home((v - 1,))
        assert home is not None, "a variable is outside the tree"
        found[v] = group, Projection(tree.cliques[home], (v - 1,), tree.sizes, tree.groups).sum(beliefs[home])
    return found
