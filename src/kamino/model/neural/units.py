"""What one sub-model predicts: an attribute, or several small neighbours joined into a hyper-attribute.

>>> sizes = {"a": 2, "b": 3, "c": 40, "zip": 9_000}
>>> units = plan_units([ModelAttribute(name=name, size=size) for name, size in sizes.items()])
>>> [(unit.name, unit.kind.value) for unit in units]
[('a+b', 'categorical'), ('c', 'categorical'), ('zip', 'wide')]
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.errors import ModelError
from kamino.model.protocol import FloatArray, IntArray, ModelAttribute
from kamino.schema.coding.joint_codes import flatten_codes


class Kind(enum.Enum):
    """How a unit is modelled."""

    CATEGORICAL = "categorical"
    """Codes (or combinations of codes), each with a probability of its own."""
    NUMERIC = "numeric"
    """Numbers along the axis of codes, in cells; null apart."""
    WIDE = "wide"
    """A noisy histogram, drawn independently of everything else."""


@dataclass(frozen=True, kw_only=True)
class UnitLimits:
    """Where kinds begin.

    joint: a hyper-attribute has at most so many combinations (1 joins nothing). numeric: an ordered attribute with
    more codes is numeric. wide: an unordered attribute with more codes is released by its histogram. counted: a
    network for more codes, or combinations, has the histogram released as well, and is moved to it after training;
    by default every one.
    """

    joint: int = 128
    numeric: int = 128
    wide: int = 1_000
    counted: int = 0


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Attributes that are predicted together."""

    attributes: tuple[ModelAttribute, ...]
    kind: Kind

    def __post_init__(self) -> None:
        if not self.attributes or (len(self.attributes) > 1 and self.kind is not Kind.CATEGORICAL):
            raise ModelError("a unit has one attribute, or several categorical ones.")
        only = self.attributes[0]
        if self.kind is Kind.NUMERIC and only.null_code not in (None, only.size - 1):
            raise ModelError(f"attribute {only.name!r}: null must be the last code of a numeric attribute.")

    @property
    def name(self) -> str:
        """The names of its attributes."""
        return "+".join(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its attributes, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def size(self) -> int:
        """The number of combinations of codes."""
        return math.prod(self.sizes)

    @property
    def ordered(self) -> bool:
        """Whether it is one attribute whose codes have an order."""
        return len(self.attributes) == 1 and self.attributes[0].ordered

    @property
    def num_values(self) -> int:
        """The number of codes of a numeric unit that are no null."""
        return self.size - (self.attributes[0].null_code is not None)

    def joint(self, columns: Mapping[str, IntArray]) -> IntArray:
        """Return one code for each row: the combination of its codes, the first attribute the most significant."""
        return flatten_codes([np.asarray(columns[name], dtype=np.int64) for name in self.names], self.sizes)

    def scaled(self, codes: IntArray) -> FloatArray:
        """Return the codes of a numeric unit on the public scale [-1, 1]; null is 0."""
        value = 2.0 * codes / max(self.num_values - 1, 1) - 1.0
        return np.where(codes >= self.num_values, 0.0, value)


def plan_units(attributes: Sequence[ModelAttribute], limits: UnitLimits | None = None) -> tuple[Unit, ...]:
    """Split a sequence of attributes into units, joining small categorical neighbours. Touches no data.

    Guarantees:
        Every attribute is in one unit, in the order given.  [test_units_keep_the_sequence]
    """
    limits = limits or UnitLimits()
    units: list[Unit] = []
    for attribute in attributes:
        unit = Unit(attributes=(attribute,), kind=_kind(attribute, limits))
        last = units[-1] if units else None
        if last and last.kind is unit.kind is Kind.CATEGORICAL and last.size * unit.size <= limits.joint:
            units[-1] = Unit(attributes=(*last.attributes, attribute), kind=Kind.CATEGORICAL)
        else:
            units.append(unit)
    return tuple(units)


def _kind(attribute: ModelAttribute, limits: UnitLimits) -> Kind:
    if attribute.ordered:
        return Kind.NUMERIC if attribute.size > limits.numeric else Kind.CATEGORICAL
    return Kind.WIDE if attribute.size > limits.wide else Kind.CATEGORICAL
