"""The prior of the model: independent attributes with the measured marginals, over what checks allow."""

from dataclasses import replace

import numpy as np
import pytest
from tests.model.tables import project

from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import Measurement, infer, potentials_of
from kamino.model.marginal.graph.junction import build_tree
from kamino.model.marginal.graph.propagation import Propagator
from kamino.model.marginal.pairs.prior import LEAST_DEVIATIONS, independent_prior
from kamino.model.protocol import Cells, CodeMap, ModelAttribute

SIZES = (4, 5, 3)
ROWS = 1000.0


def _frame(**changes):
    maps = [CodeMap.identity(size) for size in SIZES]
    frame = Frame(
        attributes=tuple(ModelAttribute(name=f"a{i}", size=size, ordered=True) for i, size in enumerate(SIZES)),
        cells=tuple(Cells(map=m, width=np.ones(m.size, dtype=np.int64), share=np.ones(m.size)) for m in maps),
        num_rows=ROWS,
        sequence=None,
        chains=(),
        allowed={},
    )
    return replace(frame, **changes)


def _measured(shares, sigma=1.0):
    return [
        Measurement(attributes=(a,), counts=np.array(share) * ROWS, sigma=np.full(len(share), sigma))
        for a, share in enumerate(shares)
    ]


SHARES = ([0.9, 0.05, 0.03, 0.02], [0.1, 0.1, 0.2, 0.3, 0.3], [0.5, 0.3, 0.2])


def test_the_prior_has_the_measured_margins():
    for weight, share in zip(independent_prior(_frame(), _measured(SHARES)), SHARES, strict=True):
        assert weight == pytest.approx(share)


def test_no_value_is_impossible_because_it_was_not_seen():
    shares = ([1.2, -0.1, -0.05, -0.05], *SHARES[1:])
    weight = independent_prior(_frame(), _measured(shares, sigma=20.0))[0]
    assert weight[1:] == pytest.approx(LEAST_DEVIATIONS * 20.0 / (ROWS + 3 * LEAST_DEVIATIONS * 20.0))


def test_what_nothing_was_measured_of_is_even():
    assert independent_prior(_frame(), _measured(SHARES)[:2])[2] == pytest.approx(np.full(3, 1 / 3))


def test_the_prior_has_the_measured_margins_under_checks():
    # a0 <= a1, a check that margins can meet; a product of the shares over what is allowed would not have them
    allowed = (np.arange(4)[:, None] <= np.arange(5)[None, :]).astype(float)
    frame = _frame(allowed={(0, 1): allowed})
    weights = independent_prior(frame, _measured(SHARES))
    tree = build_tree(SIZES, [(0, 1), (2,)])
    beliefs, _ = Propagator(tree)(potentials_of(tree, frame.allowed, dict(enumerate(weights))))
    for a, share in enumerate(SHARES):
        home = tree.home((a,))
        assert project(beliefs[home], tree.cliques[home], (a,)) == pytest.approx(share, abs=2e-3)


def test_margins_that_checks_rule_out_end_in_finite_weights():
    allowed = np.zeros((4, 5))
    allowed[3, 0] = allowed[0, 1] = 1.0
    weights = independent_prior(_frame(allowed={(0, 1): allowed}), _measured(SHARES))
    assert all(np.isfinite(weight).all() and (weight > 0).all() for weight in weights)


def test_a_skewed_column_stays_skewed_under_a_strong_prior():
    # Held to even columns, the share of the rare values would rise with tau.
    measured = _measured(SHARES, sigma=30.0)
    tree = build_tree(SIZES, [(0,), (1,), (2,)])
    prior = independent_prior(_frame(), measured)
    fit = infer(tree, measured, num_rows=ROWS, tau=500.0, prior=dict(enumerate(prior)))
    held = project(fit.beliefs[tree.home((0,))], tree.cliques[tree.home((0,))], (0,))
    even = infer(tree, measured, num_rows=ROWS, tau=500.0)
    assert held == pytest.approx(SHARES[0], abs=1e-3)
    assert even.beliefs[tree.home((0,))][0] < 0.8
