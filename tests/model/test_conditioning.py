"""Conditioned models against restricting the whole joint table."""

from __future__ import annotations

import numpy as np
import pytest

from kamino.model.marginal import conditioning
from kamino.model.marginal.conditioning import condition
from kamino.model.marginal.network import MarginalModel, Node
from kamino.model.protocol import Cells, CodeMap, ModelAttribute

NAMES = "abcde"


def random_model(rng: np.random.Generator) -> MarginalModel:
    """Five attributes, each with up to two earlier parents; some bins hold several codes, some shares are zero."""
    nodes: list[Node] = []
    for i, name in enumerate(NAMES):
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
        parents = tuple(str(p) for p in rng.permutation(list(NAMES[:i]))[: rng.integers(0, 3)])
        rows = int(np.prod([nodes[NAMES.index(p)].cells.map.bins for p in parents]))
        table = rng.dirichlet(np.ones(bins), size=rows)
        nodes.append(Node(attribute=ModelAttribute(name=name, size=size), cells=cells, parents=parents, table=table))
    return MarginalModel(nodes=tuple(nodes), num_rows=100.0)


@pytest.mark.parametrize("seed", range(60))
def test_conditioned_models_match_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng)
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
