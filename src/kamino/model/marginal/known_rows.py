"""What is known of some attributes before a fit: public rows, such as those drawn from an earlier model.

A fit of some attributes given others measures nothing among the others: their histograms and marginals are counted in
public rows of them. `KnownRows` says which attributes these are, and which marginals are open to be measured: those
with an attribute of each of two sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from kamino.model.marginal.columns.histogram import Count
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.junction import Graph
from kamino.model.marginal.graph.measurement import LEAST_SIGMA, Measurement
from kamino.model.protocol import CodeMap, FloatArray, IntArray, ModelAttribute, read
from kamino.schema.coding.joint_codes import flatten_codes

#: Pairs of known attributes that tell less of each other than this, in nats, are left to independence.
LEAST_INFORMATION = 0.002
#: The part of the model's cells that pairs of known attributes may take.
ROOM = 0.06


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownRows:
    """Public rows of some attributes as codes, and how many private rows each of them stands for.

    `sides`: a marginal is measured only if it has an attribute of each. `twins` are attributes that are read as others
    are, by name: a marginal of two of them is also that of the two others, exchanged.
    """

    columns: Mapping[str, IntArray] = field(repr=False)
    weight: float
    sides: tuple[frozenset[str], frozenset[str]]
    twins: Mapping[str, str] = field(default_factory=dict)

    def counter(self, attribute: ModelAttribute) -> Count:
        """Counts the codes of an attribute in the rows, as others are measured."""
        codes = self.columns[attribute.name]

        def count(code_map: CodeMap, level: int) -> tuple[FloatArray, float]:
            del level
            counts: FloatArray = np.bincount(code_map(codes), minlength=code_map.bins) * np.float64(self.weight)
            return counts, LEAST_SIGMA

        return count

    def pairs(self, frame: Frame, sigma: float, most_cells: int) -> list[Measurement]:
        """What is known of pairs that are not open, those first that tell most, as far as the model has room."""
        places = [i for i, a in enumerate(frame.attributes) if a.name in self.columns and frame.sizes[i] > 1]
        levels = frame.levels
        found = []
        for pair in combinations(places, 2):
            if not frame.is_open(pair):
                measured = self._measured(frame, pair, sigma)
                found.append((_information(measured.counts), measured))
        singles = [levels.bins((i,)) for i in range(len(frame.sizes))]
        cliques = [*singles, *(levels.bins(each) for each in frame.allowed)]
        sequence, after = levels.sequence(frame.sequence), levels.after(frame.after)
        graph = Graph(levels.all_sizes, cliques, sequence, after, levels.all_groups)
        kept = []
        for told, measured in sorted(found, key=lambda each: -each[0]):
            clique = levels.bins(measured.attributes)
            if told < LEAST_INFORMATION or graph.cells_with(clique) > most_cells:
                continue
            graph.add(clique)
            kept.append(measured)
        return kept

    def _measured(self, frame: Frame, clique: Sequence[int], sigma: float) -> Measurement:
        names = [frame.attributes[i].name for i in clique]
        views = [frame.view(i) for i in clique]
        shape = tuple(view.bins for view in views)
        bins = [read(view, name, self.columns) for view, name in zip(views, names, strict=True)]
        cells = np.bincount(flatten_codes(bins, shape), minlength=int(np.prod(shape))).reshape(shape)
        counts: FloatArray = cells * np.float64(self.weight)
        return Measurement(attributes=tuple(clique), counts=counts, sigma=np.full(shape, max(sigma, LEAST_SIGMA)))

    def open_sides(self, place: Mapping[str, int]) -> tuple[frozenset[int], frozenset[int]]:
        """The sides as positions."""
        first, second = (frozenset(place[name] for name in side if name in place) for side in self.sides)
        return first, second

    def mirrored(self, frame: Frame, measured: Measurement) -> Measurement | None:
        """The same measurement of the twins of its attributes; None if these are no others, or are read otherwise."""
        levels = frame.levels
        place = {a.name: i for i, a in enumerate(frame.attributes)}
        twin = {place[a]: place[b] for a, b in self.twins.items()}
        twin |= {b: a for a, b in twin.items()}
        attributes = [levels.attribute[v] for v in measured.attributes]
        if len(attributes) != 2 or any(a not in twin for a in attributes) or twin[attributes[0]] == attributes[1]:
            return None
        variables = []
        for variable, a in zip(measured.attributes, attributes, strict=True):
            coarse = variable == levels.coarse.get(a)
            other = levels.coarse.get(twin[a]) if coarse else levels.fine[twin[a]]
            if other is None or levels.all_sizes[other] != levels.all_sizes[variable]:
                return None
            variables.append(other)
        if not all(_same(frame, a, twin[a]) for a in attributes):
            return None
        if variables[0] < variables[1]:
            return _moved(measured, tuple(variables), exchanged=False)
        return _moved(measured, (variables[1], variables[0]), exchanged=True)


def _same(frame: Frame, a: int, b: int) -> bool:
    """Whether two attributes are read alike."""
    first, second = frame.view(a), frame.view(b)
    if not isinstance(first, CodeMap) or not isinstance(second, CodeMap) or first.key != second.key:
        return False
    groups = [frame.groups.get(each) for each in (a, b)]
    if groups[0] is None or groups[1] is None:
        return groups[0] is groups[1]
    return bool(np.array_equal(groups[0], groups[1]))


def _moved(measured: Measurement, variables: tuple[int, ...], *, exchanged: bool) -> Measurement | None:
    counts, sigma, group = measured.counts, measured.sigma, measured.group
    if exchanged and group is not None:
        return None
    if exchanged:
        counts, sigma = counts.T.copy(), sigma.T.copy()
    return Measurement(
        attributes=variables, counts=counts, sigma=sigma, group=group, is_interaction=measured.is_interaction
    )


def _information(counts: FloatArray) -> float:
    """The mutual information of the two axes of a table, in nats."""
    joint = counts / max(float(counts.sum()), 1e-300)
    even = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / even[seen])).sum())
