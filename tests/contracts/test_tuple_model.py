"""What every tuple model must do, run on every backend."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kamino.engine import MemoryMeasurer, NeuralRows
from kamino.errors import ModelError
from kamino.model import ModelAttribute, SavedModel, TupleModel, fit_marginal, load_model
from kamino.model.neural import NeuralSettings, Parameters, fit_neural
from kamino.privacy import Budget, Gate, SeededNoise
from kamino.privacy.private import PrivateCodes
from kamino.schema import CodedTable

ATTRIBUTES = (
    ModelAttribute(name="a", size=3),
    ModelAttribute(name="b", size=20, ordered=True),
    ModelAttribute(name="c", size=4, null_code=3),
)


def private_codes() -> CodedTable:
    rng = np.random.default_rng(2)
    a = rng.choice(3, 3_000, p=[0.6, 0.3, 0.1])
    b = np.minimum(19, a * 6 + rng.poisson(3, 3_000))
    c = np.where(rng.random(3_000) < 0.2, 3, (a + (rng.random(3_000) < 0.3)) % 3)
    return CodedTable(columns={"a": a, "b": b, "c": c}, num_rows=3_000)


def marginal_model(sequence: tuple[str, ...]) -> SavedModel:
    gate = Gate(Budget(epsilon=math.inf, delta=1e-6))
    measurer = MemoryMeasurer(PrivateCodes(private_codes()), {each.name: each.size for each in ATTRIBUTES}, gate)
    return fit_marginal(measurer, ATTRIBUTES, noise_multiplier=0.0, sequence=sequence)


def neural_model(sequence: tuple[str, ...]) -> SavedModel:
    gate = Gate(Budget(epsilon=math.inf, delta=1e-6), noise=SeededNoise(0))
    parameters = Parameters(
        num_rows=3_000,
        num_models=1,
        num_histograms=1,
        batch_size=64,
        steps=500,
        gradient_noise=0.0,
        histogram_noise=0.0,
    )
    settings = NeuralSettings(dim=8, hidden=4, parameters=parameters)
    return fit_neural(NeuralRows(PrivateCodes(private_codes()), gate), ATTRIBUTES, sequence=sequence, settings=settings)


BACKENDS: dict[str, Callable[[tuple[str, ...]], SavedModel]] = {"marginal": marginal_model, "neural": neural_model}
SEQUENCES = [("a", "b", "c"), ("c", "b", "a")]


@pytest.fixture(params=[(name, sequence) for name in BACKENDS for sequence in SEQUENCES], ids=str, scope="module")
def model(request: pytest.FixtureRequest) -> SavedModel:
    name, sequence = request.param
    return BACKENDS[name](sequence)


def test_it_is_a_tuple_model(model: TupleModel) -> None:
    assert isinstance(model, TupleModel)
    assert model.sequence in SEQUENCES
    assert model.num_rows == pytest.approx(3_000, rel=0.05)


def test_parents_come_earlier(model: TupleModel) -> None:
    for place, name in enumerate(model.sequence):
        assert set(model.parents(name)) <= set(model.sequence[:place])


def test_conditionals_are_distributions(model: TupleModel) -> None:
    rows = model.sample(200, np.random.default_rng(0))
    for name in model.sequence:
        conditional = model.conditional(name, rows, 200)
        assert np.exp(conditional.dense()).sum(axis=1) == pytest.approx(1.0)
        assert conditional.context.shape == (200,)
        assert np.isfinite(conditional.of(rows[name])).all()


def test_marginals_agree_with_samples(model: TupleModel) -> None:
    rows = model.sample(40_000, np.random.default_rng(1))
    for names in (("a",), ("c", "a")):
        expected = model.marginal(names)
        assert expected.sum() == pytest.approx(1.0)
        flat = np.ravel_multi_index([rows[name] for name in names], expected.shape)
        found = np.bincount(flat, minlength=expected.size) / 40_000
        # Independent draws would be off by 0.005 in each cell at most, but for one run in ten thousand.
        assert np.abs(found - expected.ravel()).max() < 0.012


def test_it_learns_the_table(model: TupleModel) -> None:
    true = private_codes()
    joint = np.zeros((3, 4))
    np.add.at(joint, (true["a"], true["c"]), 1 / 3_000)
    assert np.abs(model.marginal(("a", "c")) - joint).sum() / 2 < 0.05


def test_samples_follow_the_generator(model: TupleModel) -> None:
    first, second = (model.sample(50, np.random.default_rng(9)) for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in model.sequence)
    assert all(len(column) == 0 for column in model.sample(0, np.random.default_rng(0)).values())


def test_equal_contexts_are_one(model: SavedModel) -> None:
    chosen = np.full(300, 2)
    conditional = model.conditional(model.sequence[1], {model.sequence[0]: chosen}, 300)
    assert conditional.log_prob.shape == (1, conditional.cells.map.bins)
    assert conditional.context.tolist() == [0] * 300


def test_it_survives_saving(model: SavedModel) -> None:
    assert isinstance(model, SavedModel)
    meta, arrays = model.to_arrays()
    again = load_model(json.loads(json.dumps(meta, allow_nan=False)), arrays)
    assert type(again) is type(model)
    first, second = (each.sample(300, np.random.default_rng(5)) for each in (model, again))
    assert all(np.array_equal(first[name], second[name]) for name in model.sequence)
    assert not any(array.dtype.hasobject for array in arrays.values())


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ModelError, match="format 'other'"):
        load_model({"format": "other"}, {})


_READ = """
import json, sys
import numpy as np
import kamino
from kamino.model import load_model
assert "jax" not in sys.modules, "import kamino"
model = load_model(json.loads(open(sys.argv[1]).read()), dict(np.load(sys.argv[2])))
model.marginal((model.sequence[0],))
print(len(model.sample(20, np.random.default_rng(0))), "jax" in sys.modules, "optax" in sys.modules)
"""


def test_loading_and_sampling_import_no_jax(model: SavedModel, tmp_path: Path) -> None:
    meta, arrays = model.to_arrays()
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    np.savez(tmp_path / "arrays.npz", **arrays)
    command = [sys.executable, "-c", _READ, str(tmp_path / "meta.json"), str(tmp_path / "arrays.npz")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert found == ["3", "False", "False"]
