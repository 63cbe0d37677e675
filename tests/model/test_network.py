from __future__ import annotations

import json

import numpy as np
import pytest

from kamino.errors import ModelError
from kamino.model.marginal.assemble import dependence
from kamino.model.marginal.network import MarginalModel, Node
from kamino.model.protocol import Cells, CodeMap, ModelAttribute, TupleModel

SIZES = {"a": 3, "b": 5, "c": 4}


def cells(size, labels):
    labels = np.array(labels)
    share = np.arange(1.0, size + 1)
    share /= np.bincount(labels, weights=share)[labels]
    code_map = CodeMap(size=size, bins=int(labels.max()) + 1, starts=np.arange(size), labels=labels)
    return Cells(map=code_map, width=np.ones(size, dtype=np.int64), share=share)


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    maps = {"a": cells(3, [0, 1, 2]), "b": cells(5, [0, 1, 1, 0, 2]), "c": cells(4, [0, 0, 1, 1])}
    parents = {"a": (), "b": ("a",), "c": ("b", "a")}
    nodes = []
    for name in "abc":
        contexts = int(np.prod([maps[p].map.bins for p in parents[name]], initial=1))
        table = rng.dirichlet(np.ones(maps[name].map.bins), size=contexts)
        attribute = ModelAttribute(name=name, size=SIZES[name])
        nodes.append(Node(attribute=attribute, cells=maps[name], parents=parents[name], table=table))
    return MarginalModel(nodes=tuple(nodes), num_rows=100.0, releases=(("a", 0.5),))


def whole_table(model):
    """Multiply the conditionals of every possible row."""
    grid = np.meshgrid(*(np.arange(SIZES[n]) for n in model.sequence), indexing="ij")
    rows = {n: g.ravel() for n, g in zip(model.sequence, grid, strict=True)}
    num = grid[0].size
    log = sum(model.conditional(n, rows, num).of(rows[n]) for n in model.sequence)
    return np.exp(log).reshape([SIZES[n] for n in model.sequence])


def test_it_is_a_tuple_model(model):
    assert isinstance(model, TupleModel)


def test_conditionals_multiply_to_a_distribution(model):
    assert whole_table(model).sum() == pytest.approx(1.0)


def test_conditional_agrees_with_the_whole_table(model):
    joint = whole_table(model)
    contexts = {"a": np.array([0, 2, 0]), "b": np.array([4, 1, 4])}
    found = model.conditional("c", contexts, 3)
    assert len(found.log_prob) == 2
    expected = joint[contexts["a"], contexts["b"]]
    np.testing.assert_allclose(np.exp(found.dense())[found.context], expected / expected.sum(1, keepdims=True))


@pytest.mark.parametrize("wanted", [("a",), ("c",), ("c", "a"), ("b", "c"), ("c", "b", "a")])
def test_marginals_match_brute_force(model, wanted):
    axes = [model.sequence.index(n) for n in wanted]
    joint = np.einsum(whole_table(model), [0, 1, 2], axes)
    np.testing.assert_allclose(model.marginal(wanted), joint, atol=1e-12)


def test_frequencies_are_marginals(model):
    for name in model.sequence:
        np.testing.assert_allclose(model.frequencies(name), model.bin_marginal([name]), atol=1e-12)
        assert model.frequencies(name) is model.frequencies(name)


def test_samples_follow_the_marginals(model):
    rows = model.sample(50_000, np.random.default_rng(1))
    flat = (rows["a"] * 5 + rows["b"]) * 4 + rows["c"]
    seen = np.bincount(flat, minlength=60) / 50_000
    # Independent draws would be off by 0.009 on average here.
    assert np.abs(seen - model.marginal(("a", "b", "c")).ravel()).sum() / 2 < 0.008


def test_samples_repeat_with_the_generator(model):
    one, two = (model.sample(100, np.random.default_rng(7)) for _ in range(2))
    assert all(np.array_equal(one[n], two[n]) for n in one)


def test_given_columns_are_kept_and_followed(model):
    given = {"a": np.full(20_000, 2)}
    rows = model.sample(20_000, np.random.default_rng(2), given=given)
    assert np.array_equal(rows["a"], given["a"])
    joint = model.marginal(("a", "b"))[2]
    seen = np.bincount(rows["b"], minlength=5) / 20_000
    np.testing.assert_allclose(seen, joint / joint.sum(), atol=0.005)


def test_save_and_load_round_trip(model, tmp_path):
    meta, arrays = model.to_arrays()
    np.savez(tmp_path / "model.npz", **arrays)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as stored:
        again = MarginalModel.from_arrays(json.loads(json.dumps(meta)), stored)
    assert again.sequence == model.sequence
    assert again.releases == model.releases
    np.testing.assert_array_equal(whole_table(again), whole_table(model))


def test_a_foreign_file_is_refused():
    with pytest.raises(ModelError, match="format"):
        MarginalModel.from_arrays({"format": "other"}, {})


def test_a_parent_must_come_earlier(model):
    with pytest.raises(ModelError, match="comes after"):
        MarginalModel(nodes=model.nodes[::-1], num_rows=1.0)


def test_unknown_attribute(model):
    with pytest.raises(ModelError, match="no attribute 'z'"):
        model.parents("z")


def test_dependence_of_vanishing_cells_is_finite() -> None:
    joint = np.array([[1.0, 1e-200], [1e-200, 1e-200]])
    assert abs(dependence(joint, 0, 1)) < 1e-100
