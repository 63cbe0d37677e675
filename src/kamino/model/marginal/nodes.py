"""A node of the network: an attribute, its bins, its parents, and P(bin | parents). Public facts only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kamino.errors import ModelError
from kamino.model.marginal.maps.relative import Relative
from kamino.model.protocol import Cells, FloatArray, IntArray, ModelAttribute, View


@dataclass(frozen=True, kw_only=True, eq=False)
class Coarse:
    """P(group of an attribute's bins | parents), parents in C order on the rows; `in_groups` says which are groups."""

    parents: tuple[str, ...]
    in_groups: tuple[bool, ...]
    table: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """An attribute, its bins, its parents, and P(bin | parents' bins): parents' bins in C order on the rows.

    `in_groups` says which parents are read in groups of their bins; without it, none. `groups` are those of this
    attribute's own bins, for others to read. With `coarse`, `table` is P(bin | group of the bin, parents).

    An attribute that is read relative to another (`relative`) has fine bins in `cells`; its parents see its quantile
    bins, and `table` says how much likelier each quantile bin is than its base alone makes it.
    """

    attribute: ModelAttribute
    cells: Cells
    parents: tuple[str, ...]
    table: FloatArray
    relative: Relative | None = None
    in_groups: tuple[bool, ...] = ()
    groups: IntArray | None = None
    coarse: Coarse | None = None

    @property
    def all_parents(self) -> tuple[str, ...]:
        """The attributes that the bins or their groups depend on."""
        return tuple(dict.fromkeys((*self.parents, *(self.coarse.parents if self.coarse is not None else ()))))

    def grouped_view(self) -> View:
        """How the groups of the attribute's bins are read."""
        if self.groups is None:
            raise ModelError(f"attribute {self.attribute.name!r} has no groups of bins.")
        return self.view.merged(self.groups)

    @property
    def view(self) -> View:
        """How the model reads the attribute."""
        return self.cells.map if self.relative is None else self.relative.view

    @property
    def reads(self) -> tuple[str, ...]:
        """The attributes whose codes the model needs to read this one."""
        return (self.attribute.name,) if self.relative is None else (self.attribute.name, self.relative.view.base)


def parents_of(parents: Sequence[str], in_groups: Sequence[bool]) -> list[tuple[str, bool]]:
    """Return parents, each with whether it is read in groups; without a word about it, none is."""
    return list(zip(parents, in_groups or (False,) * len(parents), strict=True))
