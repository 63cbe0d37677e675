"""Inference against mbi, an independent implementation, on the same noisy measurements."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.model.tables import project

from kamino.model.marginal.graph.inference import Measurement, infer
from kamino.model.marginal.graph.junction import build_tree

SIZES = (3, 2, 4, 2)
CLIQUES = ((0, 1), (1, 2), (2, 3), (0,))
NUM_ROWS = 500.0


def noisy_measurements(seed):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(int(np.prod(SIZES)))).reshape(SIZES)
    found = []
    for clique in CLIQUES:
        counts = project(truth, range(4), clique) * NUM_ROWS
        found.append(
            Measurement(
                attributes=clique,
                counts=counts + rng.normal(0, 5.0, counts.shape),
                sigma=np.full(counts.shape, 5.0),
            )
        )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_inference_agrees_with_mbi(seed):
    with warnings.catch_warnings():
        # mbi and jax warn about precision and caches at import; neither matters here.
        warnings.simplefilter("ignore")
        import jax
        import mbi

        names = "abcd"
        measurements = noisy_measurements(seed)
        with jax.enable_x64(True):
            theirs = mbi.estimation.MirrorDescent().estimate(
                mbi.Domain(names, SIZES),
                [
                    mbi.LinearMeasurement(m.counts.ravel(), tuple(names[a] for a in m.attributes), stddev=5.0)
                    for m in measurements
                ],
                known_total=NUM_ROWS,
                iters=20_000,
            )
            expected = [
                np.asarray(theirs.project(tuple(names[a] for a in clique)).datavector()) / NUM_ROWS
                for clique in CLIQUES
            ]
    tree = build_tree(SIZES, CLIQUES, (0, 1, 2, 3))
    # mbi has no pull to the even distribution, so ours is all but switched off.
    ours = infer(tree, measurements, num_rows=NUM_ROWS, tau=1e-3, iterations=50_000, enough=1e-13)
    for clique, table in zip(CLIQUES, expected, strict=True):
        home = tree.home(clique)
        found = project(ours.beliefs[home], tree.cliques[home], clique).ravel()
        np.testing.assert_allclose(found, table, atol=1e-4)
