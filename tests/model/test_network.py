from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer

from kamino.errors import ModelError
from kamino.model.marginal.assemble import dependence
from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.frequencies import count_frequencies
from kamino.model.marginal.graph import elimination
from kamino.model.marginal.maps.relations import RelationLimits
from kamino.model.marginal.marginal_schedule import MarginalSettings
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.nodes import Node
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
    """One draw is off by 0.006, give or take 0.0012; the mean of twelve lies 5.8 standard deviations from the bound."""
    true, off = model.marginal(("a", "b", "c")).ravel(), []
    for seed in range(12):
        rows = model.sample(50_000, np.random.default_rng(seed))
        seen = np.bincount((rows["a"] * 5 + rows["b"]) * 4 + rows["c"], minlength=60) / 50_000
        off.append(np.abs(seen - true).sum() / 2)
    # Independent draws would be off by 0.009 on average here.
    assert np.mean(off) < 0.008


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


@pytest.mark.parametrize("seed", range(3))
def test_frequencies_of_a_fit_come_from_its_cliques(seed):
    """Groups of bins, nulls and all: what cliques give is what summing the whole network gives, for every attribute."""
    rng = np.random.default_rng(seed)
    wide = rng.gamma(2.0, 60.0, 8_000).astype(int) % 400
    columns = {
        "wide": wide,
        "near": np.clip(wide + rng.integers(-30, 30, 8_000), 0, 399),
        "kind": (wide // 50 + rng.integers(0, 3, 8_000)) % 7,
        "flag": (wide > 90).astype(int) ^ (rng.random(8_000) < 0.1),
        "far": rng.integers(0, 300, 8_000),
    }
    sizes = {"wide": 401, "near": 401, "kind": 7, "flag": 2, "far": 300}
    attributes = [
        ModelAttribute(name=n, size=size, ordered=size > 9, null_code=400 if size == 401 else None)
        for n, size in sizes.items()
    ]
    settings = MarginalSettings(relations=replace(RelationLimits(), most_share=0.0))
    fitted = fit_marginal(MemoryMeasurer(columns, seed=seed), attributes, noise_multiplier=2.0, settings=settings)
    assert any(node.groups is not None for node in fitted.nodes)
    found = count_frequencies(fitted.nodes)
    assert set(found) == set(fitted.sequence)
    for name in fitted.sequence:
        np.testing.assert_allclose(found[name], fitted.bin_marginal([name]), atol=1e-12)


def test_frequencies_of_large_cliques_take_little_memory():
    """A clique of 50 x 50 x 50: summed with another attribute at its side it would be 50 times as large."""
    rng = np.random.default_rng(0)
    parents = {"a": (), "b": ("a",), "c": ("a", "b"), "d": ("b", "c"), "e": ("c", "d"), "f": ("d", "e")}
    nodes = []
    for name, above in parents.items():
        table = rng.dirichlet(np.ones(50), size=50 ** len(above))
        attribute = ModelAttribute(name=name, size=50)
        nodes.append(Node(attribute=attribute, cells=cells(50, range(50)), parents=above, table=table))
    large = MarginalModel(nodes=tuple(nodes), num_rows=100.0)
    tracemalloc.start()
    found = {name: large.frequencies(name) for name in parents}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 50**3 * 8
    for name in ("a", "d"):
        np.testing.assert_allclose(found[name], large.bin_marginal([name]), atol=1e-12)


@pytest.mark.parametrize("wanted", [(), (1,), (3, 0)])
def test_the_largest_table_is_known_before(wanted, monkeypatch):
    rng = np.random.default_rng(1)
    factors = [((0, 1), rng.random((4, 5))), ((1, 2, 3), rng.random((5, 6, 2))), ((0, 3), rng.random((4, 2)))]
    seen = []
    real = elimination.multiply

    def watched(mine, out):
        sizes = {a: size for axes, table in mine for a, size in zip(axes, table.shape, strict=True)}
        seen.append(int(np.prod(list(sizes.values()))))
        return real(mine, out)

    monkeypatch.setattr(elimination, "multiply", watched)
    elimination.sum_product(factors, wanted)
    assert max(seen) == elimination.largest_table(factors, wanted)
