"""The model of rows that meet a condition: P(row | each given attribute has one of its allowed codes).

The condition is carried back along the sequence. From the last attribute to the first, P(attribute | parents) is
multiplied by what later attributes say of it, and by the share of its own codes that are allowed; the sum over the
attribute is what it says of the earlier ones. Divided by that sum, the product is P(attribute | earlier, condition).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from kamino.model.marginal.graph.elimination import Factor, multiply
from kamino.model.marginal.network import MarginalModel
from kamino.model.protocol import Cells, CodeMap, FloatArray, IntArray

# No table of a conditioned model gets larger than this.
MOST_CELLS = 20_000_000
# What a bin is worth whose allowed codes have no share: zeros of a model are estimates.
_NO_SHARE = 1e-12


def condition(model: MarginalModel, allowed: Mapping[str, IntArray]) -> MarginalModel | None:
    """Return the model of rows whose given attributes have an allowed code; None if a table would get too large.

    Where the model rules the condition out for a context, the attribute follows the context and its own codes alone.

    Guarantees:
        Equal to restricting the joint table.  [test_conditioned_models_match_brute_force]
    """
    place = {name: i for i, name in enumerate(model.sequence)}
    sizes = [node.cells.map.bins for node in model.nodes]
    nodes = list(model.nodes)
    messages: list[Factor] = []
    for i in range(len(nodes) - 1, -1, -1):
        node = nodes[i]
        about = [message for message in messages if i in message[0]]
        name = node.attribute.name
        if not about and name not in allowed:
            continue
        cells, share = _restricted(node.cells, allowed[name]) if name in allowed else (node.cells, np.ones(sizes[i]))
        axes = (*(place[parent] for parent in node.parents), i)
        before = tuple(sorted(({a for factor in about for a in factor[0]} | set(axes)) - {i}))
        if prod(sizes[a] for a in (*before, i)) > MOST_CELLS:
            return None
        own: list[Factor] = [(axes, node.table.reshape([sizes[a] for a in axes])), ((i,), share)]
        spread: list[Factor] = [((a,), np.ones(sizes[a])) for a in before]
        joint = multiply([*own, *about, *spread], (*before, i)).reshape(-1, sizes[i])
        alone = multiply([*own, *spread], (*before, i)).reshape(-1, sizes[i])
        total = joint.sum(axis=1)
        messages = [message for message in messages if i not in message[0]]
        if before:
            scaled = total / max(float(total.max()), 1e-300)
            messages.append((before, scaled.reshape([sizes[a] for a in before])))
        parents = tuple(model.sequence[a] for a in before)
        nodes[i] = replace(node, cells=cells, parents=parents, table=_normalised(joint, alone, share))
    return replace(model, nodes=tuple(nodes))


def _normalised(joint: FloatArray, alone: FloatArray, share: FloatArray) -> FloatArray:
    """Divide each line by its sum; a line without any falls back on the attribute alone, then on its codes."""
    table = np.where(joint.sum(axis=1, keepdims=True) > 0, joint, alone)
    table = np.where(table.sum(axis=1, keepdims=True) > 0, table, share)
    total = table.sum(axis=1, keepdims=True)
    return np.asarray(table / np.where(total > 0, total, 1.0))


def _restricted(cells: Cells, codes: IntArray) -> tuple[Cells, FloatArray]:
    """Return cells in which only these codes have a share, and what part of each bin they are."""
    size = cells.map.size
    codes = np.unique(codes)
    starts = np.union1d(cells.map.starts, np.concatenate([codes, codes + 1]))
    starts = starts[starts < size]
    run = np.searchsorted(cells.map.starts, starts, side="right") - 1
    width = np.diff(starts, append=size)
    labels = cells.map.labels[run]
    share = np.where(np.isin(starts, codes), cells.share[run] * width / cells.width[run], 0.0)
    part = np.bincount(labels, weights=share, minlength=cells.map.bins).astype(np.float64)
    # Codes that a model gives no share are allowed all the same, and share what is left of a bin.
    width_allowed = np.where(np.isin(starts, codes), width, 0).astype(np.float64)
    count = np.bincount(labels, weights=width_allowed, minlength=cells.map.bins)
    even = width_allowed / np.maximum(count, 1)[labels]
    inside = np.where(part[labels] > 0, share / np.where(part > 0, part, 1.0)[labels], even)
    part = np.where((part == 0) & (count > 0), _NO_SHARE, part)
    code_map = CodeMap(size=size, bins=cells.map.bins, starts=starts, labels=labels)
    return Cells(map=code_map, width=width, share=inside), part
