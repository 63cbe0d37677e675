"""What the model is held to where nothing says otherwise: attributes that are independent, but for what is forbidden.

The prior is a product of weights, one for each value of each attribute, over the combinations that checks allow. Its
1-way marginals are those that were measured. An even prior instead would pull every skewed column towards an even one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.factor import FloatArray, Projection
from kamino.model.marginal.graph.inference import Measurement, combine, potentials_of
from kamino.model.marginal.graph.junction import build_tree
from kamino.model.marginal.graph.propagation import Propagator
from kamino.model.marginal.maps.relative import onto_simplex

#: A value keeps at least this part of the standard deviation of its count: no value that was not seen is impossible.
LEAST_DEVIATIONS = 0.25
#: Proportional fitting ends when the marginals of all attributes are as near as this in L1, or after so many rounds.
_NEAR, _ROUNDS = 1e-3, 200
#: No weight moves by more than this factor in a round, nor falls below the second number.
_STEP, _LEAST = 10.0, 1e-12


def independent_prior(frame: Frame, measured: Sequence[Measurement]) -> list[FloatArray]:
    """Return the weights of each attribute's values, from what was measured of the attributes one by one.

    An attribute of which nothing was measured alone (one that is read relative to another) is even.

    Guarantees:
        Where nothing is forbidden, weights are the measured shares.  [test_the_prior_has_the_measured_margins]
        Where something is, the allowed combinations have them.  [test_the_prior_has_the_measured_margins_under_checks]
    """
    margins = margins_of(frame, measured)
    return _fit_weights(frame, margins) if frame.allowed else margins


def margins_of(frame: Frame, measured: Sequence[Measurement]) -> list[FloatArray]:
    """Return the share of each value of each attribute, as it was measured alone; even where it was not."""
    margins: list[FloatArray] = [np.full(size, 1.0 / size) for size in frame.sizes]
    for each in combine([m for m in measured if len(m.attributes) == 1]):
        counts = onto_simplex(each.counts[None, :], np.array([frame.num_rows]))[0]
        counts = np.maximum(counts, LEAST_DEVIATIONS * each.sigma)
        margins[each.attributes[0]] = counts / counts.sum()
    return margins


def _fit_weights(frame: Frame, margins: Sequence[FloatArray]) -> list[FloatArray]:
    """Scale weights until their product over the allowed combinations has the margins (proportional fitting)."""
    weights = [margin.copy() for margin in margins]
    # Attributes that no check speaks of are independent of the others.
    tied = sorted({a for clique in frame.allowed for a in clique})
    place = {a: i for i, a in enumerate(tied)}
    sizes = [frame.sizes[a] for a in tied]
    masks = {tuple(place[a] for a in clique): mask for clique, mask in frame.allowed.items()}
    tree = build_tree(sizes, [*((i,) for i in range(len(tied))), *masks])
    propagate, closed = Propagator(tree), potentials_of(tree, masks, {})
    homes = [home for i in range(len(tied)) if (home := tree.home((i,))) is not None]
    alone = [Projection(tree.cliques[home], (i,), sizes, {}) for i, home in enumerate(homes)]
    for _ in range(_ROUNDS):
        far = 0.0
        for i, a in enumerate(tied):
            potentials = list(closed)
            for j, home in enumerate(homes):
                potentials[home] = potentials[home] + alone[j].spread(np.log(weights[tied[j]]))
            beliefs, _ = propagate(potentials)
            held = alone[i].sum(beliefs[homes[i]])
            far = max(far, float(np.abs(held - margins[a]).sum()))
            step = np.clip(margins[a] / np.maximum(held, _LEAST), 1 / _STEP, _STEP)
            scaled = np.maximum(weights[a] * step, _LEAST)
            weights[a] = scaled / scaled.sum()
        if far < _NEAR:
            break
    return weights
