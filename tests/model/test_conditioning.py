"""Conditioned models against restricting the whole joint table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kamino.model.marginal import conditioning
from kamino.model.marginal.assemble import within_groups
from kamino.model.marginal.conditioning import condition
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.nodes import Coarse, Node
from kamino.model.protocol import Cells, CodeMap, ModelAttribute

NAMES = "abcde"


def random_model(rng: np.random.Generator, *, grouped: bool = False) -> MarginalModel:
    """Five attributes, each with up to two earlier parents; some bins hold several codes, some shares are zero."""
    nodes: list[Node] = []
    for name in NAMES:
        bins, size = int(rng.integers(1, 4)), 0
        starts, labels = [], []
        for _ in range(int(rng.integers(bins, 5))):
            starts.append(size)
            labels.append(len(labels) if len(labels) < bins else int(rng.integers(bins)))
            size += int(rng.integers(1, 3))
        share = rng.random(len(starts)) * (rng.random(len(starts)) < 0.9) + 1e-3
        share /= np.bincount(labels, weights=share, minlength=bins)[labels]
        code_map = CodeMap(size=size, bins=bins, starts=np.array(starts), labels=np.array(labels))
        cells = Cells(map=code_map, width=np.diff(np.array(starts), append=size), share=share)
        parents, in_groups, rows = random_parents(rng, nodes)
        table = rng.dirichlet(np.ones(bins), size=rows)
        node = Node(
            attribute=ModelAttribute(name=name, size=size),
            cells=cells,
            parents=parents,
            table=table,
            in_groups=in_groups,
        )
        nodes.append(with_groups(rng, node, nodes) if grouped else node)
    return MarginalModel(nodes=tuple(nodes), num_rows=100.0)


def random_parents(rng: np.random.Generator, nodes: Sequence[Node]) -> tuple[tuple[str, ...], tuple[bool, ...], int]:
    chosen = [nodes[i] for i in rng.permutation(len(nodes))[: rng.integers(0, 3)]]
    in_groups = tuple(bool(node.groups is not None and rng.random() < 0.6) for node in chosen)
    views = [node.grouped_view() if each else node.view for node, each in zip(chosen, in_groups, strict=True)]
    return tuple(node.attribute.name for node in chosen), in_groups, int(np.prod([view.bins for view in views]))


def with_groups(rng: np.random.Generator, node: Node, earlier: Sequence[Node]) -> Node:
    """Some nodes get groups for others to read, some of these depend on others by way of their groups."""
    way = rng.random()
    if way < 0.3:
        return node
    groups = np.cumsum(np.append(0, rng.random(node.cells.map.bins - 1) < 0.5)).astype(np.int64)
    if way < 0.6:
        return replace(node, groups=groups)
    parents, in_groups, rows = random_parents(rng, earlier)
    coarse = Coarse(parents=parents, in_groups=in_groups, table=rng.dirichlet(np.ones(groups[-1] + 1), size=rows))
    return replace(node, groups=groups, coarse=coarse, table=within_groups(node.table, groups))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_conditioned_models_match_brute_force(seed: int, grouped: bool) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, grouped=grouped)
    given = [str(name) for name in rng.permutation(list(NAMES))[: rng.integers(1, 4)]]
    allowed = {}
    for name in given:
        size = model.node(name).cells.map.size
        allowed[name] = rng.permutation(size)[: rng.integers(1, size + 1)]
    joint = model.marginal(NAMES)
    for axis, name in enumerate(NAMES):
        if name in allowed:
            kept = np.isin(np.arange(joint.shape[axis]), allowed[name])
            joint = joint * kept.reshape([-1 if a == axis else 1 for a in range(joint.ndim)])
    found = condition(model, allowed)
    assert found is not None
    assert found.sequence == model.sequence
    np.testing.assert_allclose(found.marginal(NAMES), joint / joint.sum(), atol=1e-12)


def test_what_the_model_rules_out_is_still_drawn() -> None:
    cells = Cells(map=CodeMap.identity(2), width=np.ones(2, np.int64), share=np.ones(2))
    one = Node(attribute=ModelAttribute(name="a", size=2), cells=cells, parents=(), table=np.array([[1.0, 0.0]]))
    same = Node(attribute=ModelAttribute(name="b", size=2), cells=cells, parents=("a",), table=np.eye(2))
    found = condition(MarginalModel(nodes=(one, same), num_rows=10.0), {"b": np.array([1])})
    assert found is not None
    assert found.marginal(("a", "b")).tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_tables_do_not_get_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditioning, "MOST_CELLS", 1)
    model = random_model(np.random.default_rng(1))
    assert condition(model, {"e": np.array([0])}) is None


@pytest.mark.parametrize("seed", range(20))
def test_conditionals_over_groups_multiply_to_the_marginal(seed: int) -> None:
    model = random_model(np.random.default_rng(seed), grouped=True)
    sizes = [model.node(name).attribute.size for name in NAMES]
    grid = [axis.ravel() for axis in np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij")]
    rows = dict(zip(NAMES, grid, strict=True))
    log = sum(model.conditional(name, rows, len(grid[0])).of(rows[name]) for name in NAMES)
    np.testing.assert_allclose(np.exp(log).reshape(sizes), model.marginal(NAMES), atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_models_with_groups_survive_saving(seed: int) -> None:
    model = random_model(np.random.default_rng(seed), grouped=True)
    meta, arrays = model.to_arrays()
    again = MarginalModel.from_arrays(json.loads(json.dumps(meta)), arrays)
    np.testing.assert_array_equal(again.marginal(NAMES), model.marginal(NAMES))
    first, second = (each.sample(50, np.random.default_rng(1)) for each in (model, again))
    assert all(np.array_equal(first[name], second[name]) for name in NAMES)
