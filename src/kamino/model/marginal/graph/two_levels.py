"""The variables of the graphical model: the bins of each attribute, and the groups of them that weak dependences need.

A dependence that is measured between groups of bins needs no more of the model than the groups. So the groups of an
attribute's bins are a variable of their own, and the bins depend on it; its number is the next after that of the bins
(see `factor`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kamino.model.marginal.graph.factor import FloatArray, Groups, IntArray, Projection
from kamino.model.marginal.graph.junction import Clique


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """How attributes become variables. `groups` are those of the bins of some attributes; runs of bins each."""

    sizes: Sequence[int]
    groups: Mapping[int, IntArray]

    @cached_property
    def fine(self) -> tuple[int, ...]:
        """The variable of the bins of each attribute."""
        found, number = [], 0
        for a in range(len(self.sizes)):
            found.append(number)
            number += 2 if a in self.groups else 1
        return tuple(found)

    @cached_property
    def coarse(self) -> dict[int, int]:
        """The variable of the groups of each attribute that has one."""
        return {a: self.fine[a] + 1 for a in self.groups}

    @cached_property
    def attribute(self) -> dict[int, int]:
        """The attribute of each variable."""
        return {v: a for a, v in enumerate(self.fine)} | {v: a for a, v in self.coarse.items()}

    @cached_property
    def all_sizes(self) -> tuple[int, ...]:
        """The number of values of each variable."""
        found = dict(zip(self.fine, self.sizes, strict=True))
        found |= {v: int(self.groups[a].max()) + 1 for a, v in self.coarse.items()}
        return tuple(found[v] for v in range(len(found)))

    @cached_property
    def all_groups(self) -> Groups:
        """The group of each bin, by the variable of the groups."""
        return {v: self.groups[a] for a, v in self.coarse.items()}

    def variables(self, wanted: Iterable[tuple[int, bool]]) -> Clique:
        """Return the variables of attributes: of their groups where that is wanted and there are any."""
        return tuple(self.coarse.get(a, self.fine[a]) if in_groups else self.fine[a] for a, in_groups in wanted)

    def bins(self, attributes: Iterable[int]) -> Clique:
        """Return the variables of the bins of attributes."""
        return tuple(self.fine[a] for a in attributes)

    def sequence(self, attributes: Sequence[int] | None) -> tuple[int, ...] | None:
        """Return a sequence of attributes as one of variables: groups come right before their bins."""
        if attributes is None:
            return None
        both = ([self.coarse[a], self.fine[a]] if a in self.coarse else [self.fine[a]] for a in attributes)
        return tuple(v for each in both for v in each)

    def after(self, attributes: Mapping[int, int]) -> dict[int, int]:
        """Return which variable has to come after which, from the same of attributes."""
        return {self.fine[later]: self.fine[earlier] for later, earlier in attributes.items()}

    def seen(self, table: FloatArray, attributes: Sequence[int], variables: Sequence[int]) -> FloatArray:
        """Return a table over the bins of attributes as one over their variables."""
        return Projection(self.bins(attributes), variables, self.all_sizes, self.all_groups).sum(table)
