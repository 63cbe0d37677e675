from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the neural extra is not installed")

from kamino.engine.neural_rows import release_histogram
from kamino.model.neural.label_histograms import numeric_cells, to_distribution
from kamino.model.neural.model import NeuralModel, SubModel
from kamino.model.neural.networks.layers import log_softmax, loss, normal_cells, normal_of, outputs
from kamino.model.neural.networks.layout import Layout, context_arrays, empty_embeddings, head, with_unit
from kamino.model.neural.networks.training import target_arrays
from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import ModelAttribute
from kamino.privacy import Budget, Gate, Neighbours, SeededNoise

JOB = Unit(attributes=(ModelAttribute(name="job", size=4),), kind=Kind.CATEGORICAL)
AGE = Unit(attributes=(ModelAttribute(name="age", size=51, ordered=True, null_code=50),), kind=Kind.NUMERIC)
TARGETS = {
    "categorical": Unit(attributes=(ModelAttribute(name="y", size=3),), kind=Kind.CATEGORICAL),
    "numeric": Unit(attributes=(ModelAttribute(name="y", size=101, ordered=True, null_code=100),), kind=Kind.NUMERIC),
}


def in_64_bits() -> Any:
    """JAX with numbers of 64 bits; the oldest one that is allowed has it elsewhere."""
    import jax
    import jax.experimental

    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


def make_params(target: Unit, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    embeddings = with_unit(with_unit(empty_embeddings(4, 3), JOB, rng), AGE, rng)
    params = {**embeddings, **head(target, 4, rng)}
    return {name: array + 0.3 * rng.standard_normal(array.shape) for name, array in params.items()}


def make_rows(target: Unit, codes: list[int]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    columns = {"job": rng.integers(0, 4, len(codes)), "age": rng.integers(0, 51, len(codes))}
    columns["age"][-1] = 50
    return (*context_arrays([JOB, AGE], columns, len(codes)), *target_arrays(target, np.array(codes)))


@pytest.mark.parametrize("kind", TARGETS)
def test_gradients_agree_with_finite_differences(kind: str) -> None:
    import jax

    target = TARGETS[kind]
    params = make_params(target)
    layout = Layout.of(params)
    nullable = target.attributes[0].null_code is not None
    rows = make_rows(target, [0, 1, 2] if kind == "categorical" else [0, 1, 37, 99, 100])
    flat = layout.pack(params)

    def value(point: object, row: tuple[object, ...]) -> object:
        return loss(target.kind, target.num_values, nullable, layout.unpack(point), row, balanced=False)

    with in_64_bits():
        gradient = jax.jit(jax.grad(value))
        valued = jax.jit(value)
        for number in range(len(rows[0])):
            row = tuple(each[number] for each in rows)
            point = flat.astype(np.float64)
            exact = np.asarray(gradient(point, row))
            for place in range(0, layout.size, 5):
                step = np.zeros_like(point)
                step[place] = 1e-5
                slope = float(valued(point + step, row) - valued(point - step, row)) / 2e-5
                assert slope == pytest.approx(exact[place], abs=1e-6)
        assert np.abs(exact).max() > 1e-3


def test_balancing_changes_the_length_of_a_gradient_only() -> None:
    import jax

    target = TARGETS["numeric"]
    params = make_params(target)
    row = tuple(each[1] for each in make_rows(target, [0, 37, 99]))
    _, deviation = normal_of(np, outputs(np, params, *row[:3]), target.num_values)

    def along_mean(balanced: bool) -> tuple[float, float]:
        def value(bias: object) -> object:
            return loss(target.kind, target.num_values, True, {**params, "bias": bias}, row, balanced=balanced)

        found, slope = jax.jit(jax.value_and_grad(value))(params["bias"].astype(np.float32))
        return float(found), float(slope[0])

    (first, slope), (second, plain) = along_mean(True), along_mean(False)
    assert first == pytest.approx(second, rel=1e-5)
    assert slope == pytest.approx(plain * deviation, rel=1e-3)


def test_numpy_and_jax_compute_the_same() -> None:
    import jax.numpy as jnp

    target = TARGETS["categorical"]
    params, rows = make_params(target), make_rows(target, [0, 1, 2, 1])
    plain = outputs(np, params, *rows[:3])
    traced = outputs(jnp, {name: jnp.asarray(a) for name, a in params.items()}, *rows[:3])
    assert np.allclose(plain, traced, atol=1e-5)


def test_loss_is_the_likelihood_that_is_sampled() -> None:
    """Codes of a numeric target: P of the sampler is the loss's, up to the constant width of a code."""

    target = TARGETS["numeric"]
    params = make_params(target)
    codes = [0, 99, 100]
    rows = make_rows(target, codes)
    out = outputs(np, params, *rows[:3])
    cells = normal_cells(out, target.num_values, np.arange(100))
    for number, code in enumerate(codes):
        row = tuple(each[number] for each in rows)
        with in_64_bits():
            found = -float(loss(target.kind, target.num_values, True, params, row))
        null = -np.logaddexp(0.0, -out[number, 2])
        present = -np.logaddexp(0.0, out[number, 2])
        expected = null if code == 100 else present + cells[number, code]
        assert found == pytest.approx(expected, abs=1e-4)


def test_cells_hold_all_of_the_normal_distribution() -> None:
    out = np.array([[0.0, 0.0, 0.0], [3.0, -2.0, 0.0], [-9.0, -9.0, 0.0], [0.3, -1.0, 0.0]])
    for starts in (np.arange(100), np.array([0, 1, 50, 99])):
        log = normal_cells(out, 100, starts)
        assert np.allclose(np.exp(log).sum(axis=1), 1.0)
    mean, deviation = normal_of(np, out, 100)
    middle = np.exp(normal_cells(out, 100, np.arange(100)))[3]
    scale = np.linspace(-1, 1, 100)
    assert middle @ scale == pytest.approx(mean[3], abs=0.06)
    assert deviation[3] == pytest.approx(np.exp(-2.0))


def test_softmax_survives_large_logits() -> None:
    assert np.exp(log_softmax(np, np.array([[1e4, 0.0, -1e4]])))[0].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("size", [20, 67, 1_000, 5_000_001])
def test_numeric_cells_cover_the_domain(size: int) -> None:
    unit = Unit(attributes=(ModelAttribute(name="x", size=size, ordered=True, null_code=size - 1),), kind=Kind.NUMERIC)
    cells = numeric_cells(unit, 64)
    assert cells.width.sum() == size
    assert cells.width.min() >= 1
    assert cells.width[[0, -2, -1]].tolist() == [1, 1, 1]


def test_projection_keeps_the_total() -> None:
    noisy = np.array([50.0, -20.0, 30.0, 2.0, -1.0])
    found = to_distribution(noisy)
    # Of 50 and 30 half of the surplus of 19 over the total of 61 is taken off; the rest would fall below 0.
    assert found * 61 == pytest.approx([40.5, 0, 20.5, 0, 0])
    assert to_distribution(np.array([-3.0, -4.0])).sum() == 1.0


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_wide_histogram_is_not_made_of_noise(neighbours: Neighbours) -> None:
    rng = np.random.default_rng(0)
    share = np.where(np.arange(2_000) < 5, 0.1, 0.5 / 1_995)
    codes = rng.choice(2_000, 10_000, p=share / share.sum())
    unit = Unit(attributes=(ModelAttribute(name="zip", size=2_000),), kind=Kind.WIDE)
    gate = Gate(Budget(epsilon=5.0, delta=1e-6, neighbours=neighbours), noise=SeededNoise(0))
    found = release_histogram(gate, unit, codes, num_cells=64, noise_multiplier=10.0)
    assert found.sum() == pytest.approx(1.0)
    assert found[:5] == pytest.approx(0.1, abs=0.01)
    # A projection would leave three quarters of the rest in the wrong codes.
    assert np.abs(found[5:] - share[5:]).sum() / 2 < 0.1


def test_long_contexts_make_no_dependence() -> None:
    # Every row has its own first value, and five fair coins that know nothing of it or of each other.
    wide = Unit(attributes=(ModelAttribute(name="id", size=4_000, ordered=True),), kind=Kind.NUMERIC)
    coins = [Unit(attributes=(ModelAttribute(name=f"c{i}", size=2),), kind=Kind.CATEGORICAL) for i in range(5)]
    found = [SubModel(unit=wide, probability=np.full(4_000, 1 / 4_000))]
    embeddings = with_unit(empty_embeddings(2, 2), wide, np.random.default_rng(0))
    for place, unit in enumerate(coins):
        params = {**embeddings, "out": np.zeros((2, 2), np.float32), "bias": np.zeros(2, np.float32)}
        found.append(SubModel(unit=unit, context=tuple(range(place + 1)), params=params))
        embeddings = with_unit(embeddings, unit, np.random.default_rng(place))
    drawn = NeuralModel(sub_models=tuple(found), num_rows=1.0, num_cells=4_000).sample(4_000, np.random.default_rng(3))
    table = np.corrcoef([drawn[f"c{i}"] for i in range(5)])
    # A correlation of 4,000 independent pairs has deviation 0.016; ten stay below 0.08 but for once in 10^5.
    assert np.abs(table - np.eye(5)).max() < 0.08
