"""The distribution that explains the noisy marginals: a convex problem solved in its dual.

    minimise over distributions p:   tau * KL(p || uniform) + sum_i |N M_i p - y_i|^2 / (2 sigma_i^2)

N is the number of rows, M_i p the i-th marginal, y_i its noisy counts. `tau` counts pseudo-rows that hold the model to
the most even distribution; it decides what no measurement decides and keeps noise from being fitted where counts are
few.
With one multiplier for each measured cell the dual is smooth and unconstrained,

    minimise over lambda:   tau * log Z(theta) + <lambda, y> + sum_i sigma_i^2 |lambda_i|^2 / 2,
    theta = -(N / tau) * sum_i M_i^T lambda_i,

its gradient needs one propagation, and log potentials `theta` on the measured cells are all the model has to keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.model.marginal.factor import FloatArray, drop_axes, spread_shape
from kamino.model.marginal.junction import Clique, JunctionTree
from kamino.model.marginal.propagation import Propagator

#: Standard deviations below this (exact counts) are treated as this: half a row.
LEAST_SIGMA = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Noisy counts of one marginal, with a standard deviation for each cell; axes follow `attributes`, sorted."""

    attributes: Clique
    counts: FloatArray
    sigma: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """A calibrated model: the tree, the marginal of each clique, and the multipliers to start the next fit from."""

    tree: JunctionTree
    beliefs: tuple[FloatArray, ...]
    multipliers: Mapping[Clique, FloatArray]
    iterations: int


def combine(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Merge repeated measurements of one marginal by inverse variance."""
    merged: dict[Clique, Measurement] = {}
    for new in measurements:
        old = merged.get(new.attributes)
        sigma = np.maximum(new.sigma, LEAST_SIGMA)
        if old is None:
            merged[new.attributes] = Measurement(attributes=new.attributes, counts=new.counts, sigma=sigma)
            continue
        weight = old.sigma**-2 + sigma**-2
        counts = (old.counts / old.sigma**2 + new.counts / sigma**2) / weight
        merged[new.attributes] = Measurement(attributes=new.attributes, counts=counts, sigma=weight**-0.5)
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
        self.homes: list[int] = []
        self.spread: list[tuple[int, ...]] = []
        self.axes: list[tuple[int, ...]] = []
        for m in measurements:
            home = tree.home(m.attributes)
            assert home is not None, "a measured marginal is outside the tree"
            self.homes.append(home)
            self.spread.append(spread_shape(tree.cliques[home], m.attributes, tree.sizes))
            self.axes.append(drop_axes(tree.cliques[home], m.attributes))
        self.base = [np.zeros(shape) for shape in self.propagate.shapes]
        for attributes, allowed in zeros.items():
            home = tree.home(attributes)
            assert home is not None, "a mask of allowed cells is outside the tree"
            with np.errstate(divide="ignore"):
                log = np.log(allowed.astype(float))
            self.base[home] += log.reshape(spread_shape(tree.cliques[home], attributes, tree.sizes))
        self.counts = np.concatenate([m.counts.ravel() for m in measurements])
        self.sigma2 = np.concatenate([m.sigma.ravel() ** 2 for m in measurements])
        expected = np.clip(self.counts, np.sqrt(self.sigma2), num_rows)
        self.scale = 1.0 / np.sqrt(num_rows * expected / tau + self.sigma2)
        self.bounds = np.cumsum([m.counts.size for m in measurements])[:-1]

    def beliefs(self, multipliers: FloatArray) -> tuple[list[FloatArray], float]:
        potentials = [table.copy() for table in self.base]
        parts = np.split(multipliers * (-self.num_rows / self.tau), self.bounds)
        for part, home, shape in zip(parts, self.homes, self.spread, strict=True):
            potentials[home] += part.reshape(shape)
        return self.propagate(potentials)

    def answers(self, beliefs: Sequence[FloatArray]) -> FloatArray:
        tables = [
            (beliefs[home].sum(axis=axes) if axes else beliefs[home]).ravel()
            for home, axes in zip(self.homes, self.axes, strict=True)
        ]
        return np.concatenate(tables) * self.num_rows

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
    start: Mapping[Clique, FloatArray] | None = None,
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
    first = [(start or {}).get(m.attributes, np.zeros(m.counts.size)) for m in merged]
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
        multipliers={m.attributes: part for m, part in zip(merged, parts, strict=True)},
        iterations=int(result.nit),
    )
