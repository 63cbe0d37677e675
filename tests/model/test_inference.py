from __future__ import annotations

import numpy as np
import pytest
from tests.model.tables import project

from kamino.model.marginal.graph import curvature
from kamino.model.marginal.graph.curvature import InverseCurvature
from kamino.model.marginal.graph.descent import minimise
from kamino.model.marginal.graph.inference import Measurement, _Dual, combine, infer
from kamino.model.marginal.graph.junction import build_tree

SIZES = (3, 2, 4, 2)
CLIQUES = ((0, 1), (1, 2), (2, 3), (0,))


def noisy_measurements(rng, num_rows=500.0, sigma=8.0):
    truth = rng.dirichlet(np.full(int(np.prod(SIZES)), 0.4)).reshape(SIZES)
    found = []
    for clique in CLIQUES:
        counts = project(truth, range(4), clique) * num_rows
        noise = sigma * (1 + 0.5 * len(clique))
        noisy = counts + rng.normal(0, noise, counts.shape)
        found.append(Measurement(attributes=clique, counts=noisy, sigma=np.full(counts.shape, noise)))
    return found


def brute_force(measurements, num_rows, tau, mask=None, steps=4000):
    """Minimise over the whole joint table by damped Newton steps on the log probabilities' multipliers."""
    allowed = (np.ones(SIZES) if mask is None else mask).ravel() > 0
    rows = []
    targets, sigma = [], []
    for m in measurements:
        index = np.ravel_multi_index(
            [np.indices(SIZES)[a].ravel() for a in m.attributes], [SIZES[a] for a in m.attributes]
        )
        matrix = np.zeros((m.counts.size, int(np.prod(SIZES))))
        matrix[index, np.arange(matrix.shape[1])] = num_rows
        rows.append(matrix)
        targets.append(m.counts.ravel())
        sigma.append(m.sigma.ravel())
    a, y, s = np.concatenate(rows), np.concatenate(targets), np.concatenate(sigma)
    multipliers = np.zeros(len(y))

    def value(lam):
        theta = np.where(allowed, -(a.T @ lam) / tau, -np.inf)
        peak = theta.max()
        return tau * (peak + np.log(np.exp(theta - peak).sum())) + lam @ y + 0.5 * (s**2 * lam) @ lam, theta

    for _ in range(steps):
        now, theta = value(multipliers)
        p = np.exp(theta - theta.max())
        p /= p.sum()
        slope = y - a @ p + s**2 * multipliers
        if np.abs(slope).max() < 1e-9:
            break
        cov = (a * p) @ a.T - np.outer(a @ p, a @ p)
        step = np.linalg.solve(cov / tau + np.diag(s**2), slope)
        size = 1.0
        while value(multipliers - size * step)[0] > now and size > 1e-12:
            size /= 2
        multipliers = multipliers - size * step
    return p.reshape(SIZES)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tau", [5.0, 100.0])
def test_inference_matches_brute_force(seed, tau):
    measurements = noisy_measurements(np.random.default_rng(seed))
    tree = build_tree(SIZES, CLIQUES, (3, 0, 2, 1))
    fit = infer(tree, measurements, num_rows=500.0, tau=tau, iterations=5000, enough=1e-13)
    joint = brute_force(measurements, 500.0, tau)
    for clique, belief in zip(tree.cliques, fit.beliefs, strict=True):
        np.testing.assert_allclose(belief, project(joint, range(4), clique), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_structural_zeros_have_no_mass(seed):
    measurements = noisy_measurements(np.random.default_rng(seed))
    tree = build_tree(SIZES, CLIQUES, (0, 1, 2, 3))
    allowed = np.ones((2, 4))
    allowed[0, 1:3] = 0
    fit = infer(tree, measurements, num_rows=500.0, tau=20.0, zeros={(1, 2): allowed}, iterations=5000, enough=1e-13)
    mask = np.broadcast_to(allowed[None, :, :, None], SIZES)
    joint = brute_force(measurements, 500.0, 20.0, mask)
    for clique, belief in zip(tree.cliques, fit.beliefs, strict=True):
        np.testing.assert_allclose(belief, project(joint, range(4), clique), atol=1e-6)
    home = tree.home((1, 2))
    assert project(fit.beliefs[home], tree.cliques[home], (1, 2))[0, 1:3].sum() == 0


def test_starting_from_the_solution_stays_there():
    measurements = noisy_measurements(np.random.default_rng(1))
    tree = build_tree(SIZES, CLIQUES)
    first = infer(tree, measurements, num_rows=500.0, tau=20.0, iterations=5000, enough=1e-13)
    again = infer(tree, measurements, num_rows=500.0, tau=20.0, start=first.multipliers, iterations=5000, enough=1e-13)
    assert again.iterations < first.iterations / 4
    for a, b in zip(first.beliefs, again.beliefs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_repeated_measurements_combine_by_inverse_variance():
    one = Measurement(attributes=(0,), counts=np.array([10.0]), sigma=np.array([1.0]))
    two = Measurement(attributes=(0,), counts=np.array([20.0]), sigma=np.array([3.0]))
    (both,) = combine([one, two])
    assert both.counts[0] == pytest.approx(11.0)
    assert both.sigma[0] == pytest.approx(np.sqrt(0.9))


@pytest.mark.parametrize("enough", [1.0, 0.1, 0.01])
def test_inference_ends_when_little_is_left(enough):
    measurements = noisy_measurements(np.random.default_rng(4))
    tree = build_tree(SIZES, CLIQUES)

    def left(fit):
        dual = _Dual(tree, combine(measurements), {}, num_rows=500.0, tau=20.0)
        point = np.concatenate([fit.multipliers[m.key] for m in dual.measurements])
        return dual(point)[0], len(point)

    short = infer(tree, measurements, num_rows=500.0, tau=20.0, iterations=5000, enough=enough)
    best = infer(tree, measurements, num_rows=500.0, tau=20.0, iterations=5000, enough=1e-13)
    assert left(short)[0] - left(best)[0] <= enough * left(short)[1]
    assert 0 < short.iterations < best.iterations


def test_single_precision_is_harmless():
    """What single precision blurs is far below what noise does: 0.001 of a standard deviation."""
    rng = np.random.default_rng(8)
    sizes, cliques = (12, 9, 15, 8), ((0, 1, 2), (2, 3))
    truth = rng.dirichlet(np.full(int(np.prod(sizes)), 0.2)).reshape(sizes) * 30_000
    measurements = [
        Measurement(attributes=c, counts=counts + rng.normal(0, 20, counts.shape), sigma=np.full(counts.shape, 20.0))
        for c in ((0, 1), (1, 2), (0, 2), (2, 3))
        for counts in [project(truth, range(4), c)]
    ]
    tree = build_tree(sizes, cliques)
    dual = _Dual(tree, combine(measurements), {}, num_rows=30_000.0, tau=150.0)
    point = rng.normal(0, 0.02, len(dual.counts))
    exact = dual(point)[1]
    dual.kind = np.float32
    assert np.abs(dual(point)[1] - exact).max() < 0.001 * 20


def test_descent_finds_the_minimum():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(30, 30))
    curvature, target = root @ root.T + np.eye(30), rng.normal(size=30)

    def objective(point):
        slope = curvature @ (point - target)
        return 0.5 * float((point - target) @ slope), slope

    for inverse in (lambda v: v / np.diag(curvature), lambda v: np.linalg.solve(curvature, v)):
        found = minimise(
            objective,
            np.zeros(30),
            inverse_curvature=inverse,
            enough=lambda _, slope: bool(np.abs(slope).max() < 1e-8),
            iterations=500,
        )
        assert found.done
        np.testing.assert_allclose(found.point, target, atol=1e-6)
    assert found.iterations == 1


@pytest.mark.parametrize("dense", [0, 10_000])
@pytest.mark.parametrize("few", [0, 10_000])
@pytest.mark.parametrize("is_interaction", [False, True])
def test_curvature_is_inverted(is_interaction, few, dense, monkeypatch):
    monkeypatch.setattr(curvature, "DENSE_NUMBERS", dense)
    monkeypatch.setattr(curvature, "FEW_VALUES", few)
    rng = np.random.default_rng(6)
    group = np.array([0, 0, 1, 2, 2, 3], dtype=np.int64)
    measurements = [
        Measurement(attributes=(0,), counts=rng.normal(50, 9, 3), sigma=np.full(3, 4.0)),
        Measurement(
            attributes=(0, 1),
            counts=rng.normal(9, 9, (3, 2)),
            sigma=np.full((3, 2), 5.0),
            is_interaction=is_interaction,
        ),
        Measurement(attributes=(0, 1), counts=rng.normal(9, 9, (2, 2)), sigma=np.full((2, 2), 5.0), group=group),
    ]
    joint = rng.dirichlet(np.ones(6))
    tables = {0: joint.reshape(3, 2).sum(axis=1), 1: joint, 2: joint}
    inverse = InverseCurvature(measurements, tables, (3, 2), num_rows=200.0, tau=10.0)
    wanted = np.diag(inverse.diagonal)
    for one in inverse.shared:
        for two in inverse.shared:
            line, column = np.zeros((len(wanted), 5)), np.zeros((len(wanted), 5))
            line[one.lines, one.columns], column[two.lines, two.columns] = one.dense(), two.dense()
            wanted += line @ column.T
    np.testing.assert_allclose(np.stack([inverse(v) for v in np.eye(13)]), np.linalg.inv(wanted), atol=1e-12)
