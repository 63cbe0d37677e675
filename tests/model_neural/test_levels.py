"""Networks over levels: levels, gradients, and what they learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kamino.errors import ModelError
from kamino.model.neural.networks.layout import Layout
from kamino.model.neural.networks.levels import LevelDescent, find_levels, first_parameters, level_shares, log_shares
from kamino.model.neural.networks.training import SubModelDescent
from kamino.model.neural.neural_settings import Optimizer
from kamino.model.neural.sub_model import SubModel
from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import ModelAttribute
from kamino.privacy.mechanisms.factored_gradients import Lines, Outer, Plain


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=90).filter(lambda each: sum(each) > 0.01),
    st.integers(1, 20),
    st.booleans(),
    st.booleans(),
)
def test_levels_are_runs_of_cells(shares: list[float], most: int, ordered: bool, nullable: bool) -> None:
    distribution = np.array(shares) / sum(shares)
    null = len(shares) - 1 if nullable else None
    labels = find_levels(distribution, ordered=ordered, most=most, null=null)
    assert labels[0] == 0
    assert np.isin(np.diff(labels), (0, 1)).all()
    if not ordered or len(shares) <= 2 * most:
        assert labels.tolist() == list(range(len(shares)))
        return
    # Of two neighbours, one at least is fuller than half, but for those beside null.
    assert labels[-1] + 1 <= 2 * most + 3
    held, sizes = level_shares(distribution, labels), np.bincount(labels)
    assert (held[sizes > 1] <= 1 / most + 1e-9).all()
    if nullable and len(shares) > 1:
        assert labels[-1] > labels[-2]


def make_descent(seed: int = 0) -> LevelDescent:
    rng = np.random.default_rng(seed)
    first = first_parameters(None, [3, 5], 4, 6, rng)
    first["query"] = rng.normal(size=6).astype(np.float32)
    first["prior"] = rng.normal(size=2).astype(np.float32)
    layout = Layout.of(first)
    return LevelDescent(
        layout=layout,
        first=layout.pack(first),
        sections=(0, 3, 8),
        offset=log_shares(np.array([0.5, 0.3, 0.2, 0.0])),
        optimizer=Optimizer(),
        steps=10,
        batch_size=8,
    )


def make_rows(number: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return np.stack([rng.integers(0, 3, number), rng.integers(3, 8, number)], axis=1), rng.integers(0, 4, number)


def test_level_gradients_agree_with_finite_differences() -> None:
    descent, rows = make_descent(), make_rows()
    state = descent.start()
    found = np.zeros((12, descent.layout.size))
    for part in descent.gradients(state, rows):
        if isinstance(part, Outer):
            whole = np.einsum("is,id->isd", part.left, part.right).reshape(12, -1)
        elif isinstance(part, Lines):
            whole = np.zeros((12, 8, 6))
            for k in range(2):
                whole[np.arange(12), part.index[:, k]] += part.values[:, k]
            whole = whole.reshape(12, -1)
        else:
            assert isinstance(part, Plain)
            whole = part.values
        found[:, part.start : part.start + part.size] = whole
    for place in range(descent.layout.size):
        moved = []
        for sign in (1, -1):
            params = state[0].copy()
            params[place] += sign * 1e-5
            moved.append(descent.loss((params, *state[1:]), rows))
        assert np.allclose((moved[0] - moved[1]) / 2e-5, found[:, place], atol=1e-6)


def test_steps_are_those_of_the_printed_networks_optimizer() -> None:
    """Adam, its rate and the mean of the last parameters, with the same gradients in both."""
    pytest.importorskip("jax", reason="the neural extra is not installed")
    ours = replace(make_descent(), steps=40)
    only = Unit(attributes=(ModelAttribute(name="x", size=4),), kind=Kind.CATEGORICAL)
    theirs = SubModelDescent(
        unit=only, layout=ours.layout, first=ours.first, optimizer=ours.optimizer, steps=40, batch_size=ours.batch_size
    )
    rng = np.random.default_rng(4)
    states = [ours.start(), theirs.start()]
    for _ in range(40):
        gradient = rng.normal(size=ours.layout.size)
        states = [each.advance(state, gradient) for each, state in zip((ours, theirs), states, strict=True)]
    moved = np.abs(states[0][0] - ours.first)
    assert moved.min() > 1e-4
    assert np.allclose(states[0][0], np.asarray(states[1][0]), atol=1e-5)
    found, wanted = ours.result(states[0]), theirs.result(states[1])
    assert np.allclose(found["table"], wanted["table"], atol=1e-5)
    # Released shares are an offset while training, and in the bias afterwards.
    assert np.allclose(found["bias"], wanted["bias"] + ours.offset, atol=1e-5)


def test_before_training_a_network_says_what_was_released() -> None:
    """With output vectors of zero, levels have their released shares; the last, of share 0, is very rare."""
    descent = make_descent()
    place = descent.layout.places["out"]
    params = descent.start()[0].copy()
    params[place : place + 24] = 0
    target = np.arange(4)
    loss = descent.loss((params,), (make_rows(4)[0], target))
    assert np.exp(-loss) == pytest.approx([0.5, 0.3, 0.2, 1e-6], abs=1e-5)


def test_cells_within_a_level_have_their_released_shares() -> None:
    unit = Unit(attributes=(ModelAttribute(name="x", size=5, ordered=True),), kind=Kind.CATEGORICAL)
    labels = np.array([0, 0, 1, 2, 2])
    made = SubModel(unit=unit, probability=np.array([0.1, 0.3, 0.6, 0.0, 0.0]), labels=labels)
    assert np.exp(made.within_levels) == pytest.approx([0.25, 0.75, 1.0, 0.5, 0.5])
    assert made.num_levels == 3
    with pytest.raises(ModelError, match="a histogram has probabilities"):
        SubModel(unit=unit, context=(0,), params={}, labels=labels)
