"""Groups of bins in a model file: what was written is read, and anything else is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kamino.errors import ModelError
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.nodes import Coarse, Node
from kamino.model.protocol import Cells, CodeMap, ModelAttribute

Change = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


def grouped_model() -> MarginalModel:
    cells = Cells(map=CodeMap.identity(4), width=np.ones(4, np.int64), share=np.ones(4))
    groups = np.array([0, 0, 1, 1])
    first = Node(
        attribute=ModelAttribute(name="a", size=4), cells=cells, parents=(), table=np.full((1, 4), 0.25), groups=groups
    )
    coarse = Coarse(parents=("a",), in_groups=(True,), table=np.array([[0.9, 0.1], [0.2, 0.8]]))
    table = np.tile([0.3, 0.7, 0.5, 0.5], (4, 1))
    second = Node(
        attribute=ModelAttribute(name="b", size=4),
        cells=cells,
        parents=("a",),
        table=table,
        groups=groups,
        coarse=coarse,
    )
    return MarginalModel(nodes=(first, second), num_rows=100.0)


def field(value: Any, *path: Any) -> Change:
    def change(meta: dict[str, Any], _: dict[str, np.ndarray]) -> None:
        place: Any = meta["nodes"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def array(name: str, values: Any) -> Change:
    return lambda _, arrays: arrays.__setitem__(name, np.array(values))


CASES: dict[str, Change] = {
    "groups that fall": array("1.groups", [1, 1, 0, 0]),
    "groups that leave one out": array("1.groups", [0, 0, 2, 2]),
    "groups below": array("1.groups", [-1, -1, 0, 0]),
    "groups too short": array("1.groups", [0, 0, 1]),
    "groups of fractions": array("1.groups", [0.0, 0.0, 1.0, 1.0]),
    "more groups than named": field(3, 1, "groups"),
    "a number of groups that is a text": field("2", 1, "groups"),
    "no groups": lambda meta, _: meta["nodes"][1].pop("groups"),
    "a parent without groups": lambda meta, _: meta["nodes"][0].pop("groups"),
    "groups of somebody else": field(["b"], 1, "coarse", "in_groups"),
    "groups of nobody": field(["zzz"], 1, "in_groups"),
    "in_groups that is a number": field(5, 1, "in_groups"),
    "a coarse parent that is itself": field(["b"], 1, "coarse", "parents"),
    "a coarse part that is a list": field([], 1, "coarse"),
    "a coarse part with one field more": field(1, 1, "coarse", "colour"),
    "coarse probabilities that do not sum to 1": array("1.coarse", [[0.9, 0.2], [0.2, 0.8]]),
    "coarse probabilities of fewer lines": array("1.coarse", [[0.9, 0.1]]),
    "coarse probabilities missing": lambda _, arrays: arrays.pop("1.coarse"),
    "bins that do not sum to 1 in a group": array("1.table", np.tile([0.4, 0.7, 0.5, 0.4], (4, 1))),
    "bins below zero": array("1.table", np.tile([-0.3, 1.3, 0.5, 0.5], (4, 1))),
    "bins that are not numbers": array("1.table", np.full((4, 4), np.nan)),
}


def test_a_file_cannot_ask_for_many_groups() -> None:
    """A table of so many groups by so many groups would take 80 GB."""
    size = 100_000
    cells = Cells(map=CodeMap.identity(size), width=np.ones(size, np.int64), share=np.ones(size))
    node = Node(
        attribute=ModelAttribute(name="a", size=size),
        cells=cells,
        parents=(),
        table=np.full((1, size), 1 / size),
        groups=np.arange(size),
    )
    meta, arrays = MarginalModel(nodes=(node,), num_rows=1.0).to_arrays()
    with pytest.raises(ModelError, match="groups is not between 1 and 64"):
        MarginalModel.from_arrays(meta, arrays)


def test_groups_are_read_as_they_were_written() -> None:
    model = grouped_model()
    meta, arrays = model.to_arrays()
    again = MarginalModel.from_arrays(json.loads(json.dumps(meta)), arrays)
    assert again.marginal(("a", "b")) == pytest.approx(model.marginal(("a", "b")))
    assert model.marginal(("a", "b"))[0] == pytest.approx(np.array([0.27, 0.63, 0.05, 0.05]) / 4)


@pytest.mark.parametrize("name", CASES)
def test_crafted_groups_are_refused(name: str) -> None:
    meta, arrays = grouped_model().to_arrays()
    meta = json.loads(json.dumps(meta))
    CASES[name](meta, arrays)
    with pytest.raises(ModelError):
        MarginalModel.from_arrays(meta, arrays)
