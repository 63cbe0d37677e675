"""How often each bin of each attribute occurs: cliques filled one after the other along the sequence.

Parents of an attribute that were read off a junction tree stand together in the clique of the latest of them. The joint
table of an attribute and its parents is then that clique, summed to the parents, times P(attribute | parents): no table
is larger than a clique of the model, and each is made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.model.marginal.graph.factor import first_of_runs
from kamino.model.marginal.nodes import Node, parents_of

#: A variable: the bins of an attribute, or their groups.
Variable = tuple[str, bool]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Clique:
    """The joint probabilities of some variables; the groups of bins that stand in it are known as well."""

    variables: tuple[Variable, ...]
    table: FloatArray

    def holds(self, wanted: Sequence[Variable]) -> bool:
        """Whether the wanted variables can be summed from it."""
        return all(each in self.variables or (each[0], False) in self.variables for each in wanted)

    def sum_to(self, wanted: Sequence[Variable], groups: Mapping[str, IntArray]) -> FloatArray:
        """Return the joint probabilities of the wanted variables, one axis each."""
        sources = [each if each in self.variables else (each[0], False) for each in wanted]
        places = [self.variables.index(each) for each in sources]
        other = tuple(i for i in range(self.table.ndim) if i not in places)
        table = self.table.sum(axis=other)
        kept = sorted(places)
        table = table.transpose([kept.index(place) for place in places])
        for axis, (each, source) in enumerate(zip(wanted, sources, strict=True)):
            if each != source:
                table = np.add.reduceat(table, first_of_runs(groups[each[0]]), axis=axis)
        return np.asarray(table)


def count_frequencies(nodes: Sequence[Node]) -> dict[str, FloatArray]:
    """Return the probabilities of the bins of those attributes whose parents stand together in a clique.

    Guarantees:
        They are the marginals of the network.  [test_frequencies_are_marginals]
        No table is larger than those of the network.  [test_frequencies_of_large_cliques_take_little_memory]
    """
    groups = {node.attribute.name: node.groups for node in nodes if node.groups is not None}
    found: dict[str, FloatArray] = {}
    cliques: list[_Clique] = []
    asked = {name for node in nodes for name in (*node.parents, *(node.coarse.parents if node.coarse else ()))}
    for node in nodes:
        if node.relative is not None:
            break
        name = node.attribute.name
        if name not in asked and node.coarse is None:
            # Its parents stand together elsewhere: nobody needs its clique.
            joint = _joint(parents_of(node.parents, node.in_groups), cliques, groups)
            if joint is not None:
                found[name] = np.asarray(joint.ravel() @ node.table.reshape(joint.size, -1))
            continue
        made = list(_fill(node, cliques, groups))
        cliques += made
        if made and (name, False) in made[-1].variables:
            found[name] = made[-1].sum_to([(name, False)], groups)
    return found


def _fill(node: Node, cliques: Sequence[_Clique], groups: Mapping[str, IntArray]) -> Iterator[_Clique]:
    """Make the cliques of an attribute: of its groups, where these have parents of their own, and of its bins."""
    name = node.attribute.name
    if node.coarse is None:
        made = _times(parents_of(node.parents, node.in_groups), (name, False), node.table, cliques, groups)
        if made is not None:
            yield made
        return
    above = parents_of(node.coarse.parents, node.coarse.in_groups)
    coarse = _times(above, (name, True), node.coarse.table, cliques, groups)
    if coarse is None:
        return
    yield coarse
    parents = [*parents_of(node.parents, node.in_groups), (name, True)]
    joint = _joint(parents, [*cliques, coarse], groups)
    if joint is not None:
        spread = joint[..., groups[name]]
        table = spread * node.table.reshape(spread.shape)
        yield _Clique(variables=(*parents[:-1], (name, False)), table=table)


def _times(
    parents: Sequence[Variable],
    variable: Variable,
    table: FloatArray,
    cliques: Sequence[_Clique],
    groups: Mapping[str, IntArray],
) -> _Clique | None:
    """Return P(parents) P(variable | parents); None where the parents do not stand together."""
    joint = _joint(parents, cliques, groups)
    if joint is None:
        return None
    product = joint[..., None] * table.reshape(*joint.shape, table.shape[-1])
    return _Clique(variables=(*parents, variable), table=product)


def _joint(wanted: Sequence[Variable], cliques: Sequence[_Clique], groups: Mapping[str, IntArray]) -> FloatArray | None:
    """Return the joint probabilities of variables from the smallest clique that holds them; None if none does."""
    if not wanted:
        return np.ones(())
    holding = [each for each in cliques if each.holds(wanted)]
    return min(holding, key=lambda each: each.table.size).sum_to(wanted, groups) if holding else None
