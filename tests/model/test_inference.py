from __future__ import annotations

import numpy as np
import pytest

from kamino.model.marginal.graph.factor import project
from kamino.model.marginal.graph.inference import Measurement, combine, infer
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
    fit = infer(tree, measurements, num_rows=500.0, tau=tau, iterations=5000, tolerance=1e-12)
    joint = brute_force(measurements, 500.0, tau)
    for clique, belief in zip(tree.cliques, fit.beliefs, strict=True):
        np.testing.assert_allclose(belief, project(joint, range(4), clique), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_structural_zeros_have_no_mass(seed):
    measurements = noisy_measurements(np.random.default_rng(seed))
    tree = build_tree(SIZES, CLIQUES, (0, 1, 2, 3))
    allowed = np.ones((2, 4))
    allowed[0, 1:3] = 0
    fit = infer(tree, measurements, num_rows=500.0, tau=20.0, zeros={(1, 2): allowed}, iterations=5000, tolerance=1e-12)
    mask = np.broadcast_to(allowed[None, :, :, None], SIZES)
    joint = brute_force(measurements, 500.0, 20.0, mask)
    for clique, belief in zip(tree.cliques, fit.beliefs, strict=True):
        np.testing.assert_allclose(belief, project(joint, range(4), clique), atol=1e-6)
    home = tree.home((1, 2))
    assert project(fit.beliefs[home], tree.cliques[home], (1, 2))[0, 1:3].sum() == 0


def test_starting_from_the_solution_stays_there():
    measurements = noisy_measurements(np.random.default_rng(1))
    tree = build_tree(SIZES, CLIQUES)
    first = infer(tree, measurements, num_rows=500.0, tau=20.0, iterations=5000, tolerance=1e-10)
    again = infer(tree, measurements, num_rows=500.0, tau=20.0, start=first.multipliers, iterations=5000)
    assert again.iterations < first.iterations / 4
    for a, b in zip(first.beliefs, again.beliefs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_repeated_measurements_combine_by_inverse_variance():
    one = Measurement(attributes=(0,), counts=np.array([10.0]), sigma=np.array([1.0]))
    two = Measurement(attributes=(0,), counts=np.array([20.0]), sigma=np.array([3.0]))
    (both,) = combine([one, two])
    assert both.counts[0] == pytest.approx(11.0)
    assert both.sigma[0] == pytest.approx(np.sqrt(0.9))
