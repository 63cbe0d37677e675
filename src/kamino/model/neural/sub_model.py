"""One fitted sub-model: its unit, its context and its arrays, and how these are read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kamino.errors import ModelError
from kamino.model.neural.label_histograms import cells_of
from kamino.model.neural.networks.levels import NAMES, level_shares
from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import FloatArray, IntArray
from kamino.model.saved import Arrays, Fields, attribute_of, shown


@dataclass(frozen=True, kw_only=True, eq=False)
class SubModel:
    """P(unit | context): a distribution of its own (`probability`, no context) or a network (`params`).

    labels: the level of each cell. A network that has them is over levels, with `probability` within each of them; the
    units of its context have them as well.
    """

    unit: Unit
    context: tuple[int, ...] = ()
    probability: FloatArray | None = None
    params: Mapping[str, NDArray[np.float32]] | None = None
    labels: IntArray | None = None

    def __post_init__(self) -> None:
        if bool(self.context) == (self.params is None):
            raise ModelError("a sub-model is a histogram without context, or a network with context.")
        if (self.probability is None) != (self.params is not None and self.labels is None):
            raise ModelError("a histogram has probabilities, and so has a network over levels; another has none.")

    @property
    def num_levels(self) -> int:
        """The number of levels; 0 without them."""
        return 0 if self.labels is None else int(self.labels.max()) + 1

    @cached_property
    def within_levels(self) -> FloatArray:
        """Log P of each cell within its level: the released one, or an even one where nothing was seen."""
        assert self.labels is not None, "asked of units that have levels"
        assert self.probability is not None, "levels are found from probabilities"
        shares, sizes = level_shares(self.probability, self.labels), np.bincount(self.labels)
        even = (shares <= 0)[self.labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.where(even, 1 / sizes[self.labels], self.probability / shares[self.labels])
            return np.asarray(np.log(inside))


def lines_of(context: Sequence[SubModel], columns: Mapping[str, IntArray], num_cells: int) -> IntArray:
    """Return the lines of the table of embeddings that rows of context have, one column for each unit."""
    found, offset = [], 0
    for each in context:
        assert each.labels is not None, "the context of a network over levels has levels"
        found.append(each.labels[cells_of(each.unit, num_cells).map(each.unit.joint(columns))] + offset)
        offset += each.num_levels
    return np.stack(found, axis=1)


def read_sub_model(i: int, fields: Fields, earlier: Sequence[SubModel], arrays: Arrays, num_cells: int) -> SubModel:
    """Read one sub-model; its context must be among the earlier ones."""
    fields.only("kind", "attributes", "context", "arrays")
    kind = fields.text("kind")
    if kind not in {each.value for each in Kind}:
        raise ModelError(f"{fields.where}: kind {shown(kind)} is unknown")
    attributes = tuple(
        attribute_of(each.only("name", "size", "ordered", "null_code")) for each in fields.objects("attributes")
    )
    unit = Unit(attributes=attributes, kind=Kind(kind))
    places = Fields(dict(enumerate(fields.items("context"))), where=f"{fields.where}: context")
    context = tuple(places.whole(place, most=i - 1) for place in range(len(fields.items("context"))))
    if len(set(context)) != len(context) or any(earlier[place].unit.kind is Kind.WIDE for place in context):
        raise ModelError(f"{fields.where}: the context names a unit twice, or one that is no context")
    names = fields.texts("arrays")
    if "labels" in names:
        return _read_levels(i, unit, tuple(earlier[place] for place in context), context, names, arrays, num_cells)
    shapes = _shapes(unit, [earlier[place].unit for place in context], num_cells, arrays, i)
    if "shift" not in names:
        shapes.pop("shift", None)
    if sorted(names) != sorted(shapes):
        raise ModelError(f"{fields.where}: its arrays are not those of its kind")
    if not context:
        return SubModel(unit=unit, probability=arrays.distributions(f"{i}.probability", shapes["probability"]))
    params = {name: arrays.finite(f"{i}.{name}", shapes[name], np.float32) for name in names}
    return SubModel(unit=unit, context=context, params=params)


def _shapes(unit: Unit, context: Sequence[Unit], num_cells: int, arrays: Arrays, i: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays that a sub-model may have, as its unit and its context ask for."""
    cells = cells_of(unit, num_cells).map.bins
    if not context:
        return {"probability": (cells,)}
    if unit.kind is Kind.WIDE:
        raise ModelError(f"sub-model {i}: a wide unit has no context")
    query, lift = arrays.shape(f"{i}.query"), arrays.shape(f"{i}.lift")
    dim, hidden = query[0] if query else 0, lift[-1] if lift else 0
    if dim < 1:
        raise ModelError(f"sub-model {i}: its arrays are empty")
    codes = [each for each in context if each.kind is Kind.CATEGORICAL]
    values = len(context) - len(codes)
    rows = unit.size if unit.kind is Kind.CATEGORICAL else 3
    return {
        "table": (sum(each.size for each in codes), dim),
        "lift": (values, hidden),
        "lift_bias": (values, hidden),
        "lower": (values, hidden, dim),
        "lower_bias": (values, dim),
        "null": (values, dim),
        "query": (dim,),
        "prior_codes": (len(codes),),
        "prior_values": (values,),
        "out": (rows, dim),
        "bias": (rows,),
    } | ({"shift": (cells,)} if unit.kind is Kind.NUMERIC else {})


def _read_levels(
    i: int,
    unit: Unit,
    before: tuple[SubModel, ...],
    context: tuple[int, ...],
    names: Sequence[str],
    arrays: Arrays,
    num_cells: int,
) -> SubModel:
    """Read a sub-model that has levels: a histogram, or a network over them whose context has levels, too."""
    wanted = ("probability", "labels", *(NAMES if context else ()))
    if sorted(names) != sorted(wanted) or any(each.labels is None for each in before):
        raise ModelError(f"sub-model {i}: its arrays are not those of its kind, or its context has no levels")
    if context and unit.kind is Kind.WIDE:
        raise ModelError(f"sub-model {i}: a wide unit has no context")
    cells = cells_of(unit, num_cells).map.bins
    probability, labels = arrays.distributions(f"{i}.probability", (cells,)), arrays.codes(f"{i}.labels", cells)
    if labels[0] != 0 or not np.isin(np.diff(labels), (0, 1)).all():
        raise ModelError(f"sub-model {i}: its levels are no runs of cells")
    if not context:
        return SubModel(unit=unit, probability=probability, labels=labels)
    query = arrays.shape(f"{i}.query")
    dim, levels = query[0] if query else 0, int(labels[-1]) + 1
    if dim < 1:
        raise ModelError(f"sub-model {i}: its arrays are empty")
    shapes: dict[str, tuple[int, ...]] = {
        "table": (sum(each.num_levels for each in before), dim),
        "query": (dim,),
        "prior": (len(context),),
        "out": (levels, dim),
        "bias": (levels,),
    }
    params = {name: arrays.finite(f"{i}.{name}", shape, np.float32) for name, shape in shapes.items()}
    return SubModel(unit=unit, context=context, probability=probability, labels=labels, params=params)
