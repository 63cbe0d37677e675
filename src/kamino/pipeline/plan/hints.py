"""What constraints tell the model for free, before any row is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.constraints import DenialConstraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.counting.count import violations_per_row
from kamino.model.marginal.marginal_schedule import Allowed, Hints
from kamino.model.protocol import IntArray, ModelAttribute
from kamino.pipeline.plan.cycles import phase_of
from kamino.pipeline.plan.value_parts import followings
from kamino.schema import Codec


def model_attributes(codec: Codec) -> tuple[ModelAttribute, ...]:
    """Each attribute as the model knows it."""
    return tuple(
        ModelAttribute(
            name=name,
            size=each.size,
            ordered=_is_numeric(codec, name),
            null_code=each.null_code,
            phase=None if name in codec.differences else phase_of(codec.schema[name]),
        )
        for name, each in codec.attributes.items()
    )


def _is_numeric(codec: Codec, name: str) -> bool:
    return codec.schema[name].type in ("integer", "real", "date", "datetime")


def hints_of(constraints: Iterable[DenialConstraint], codec: Codec) -> Hints:
    """Hard dependencies to measure together, and combinations that hard checks exclude."""
    every = [c for c in constraints if c.is_hard]
    hard = [c for c in every if all(name in codec.attributes for name in c.attributes)]
    dependencies = [d for c in hard if (d := dependency_of(c)) is not None]
    functional = tuple(dict.fromkeys((next(iter(d.left)), d.right) for d in dependencies if len(d.left) == 1))
    together = tuple(dict.fromkeys((name, d.right) for d in dependencies for name in sorted(d.left)))
    tied = frozenset(name for c in every if not c.is_unary for name in c.attributes if name in codec.attributes)
    public = {(next(iter(d.left)), d.right) for c in hard if c.reference is not None and (d := dependency_of(c))}
    unknown = [pair for pair in functional if pair not in public]
    return Hints(
        functional=functional,
        together=together,
        tied=tied,
        allowed=_allowed(hard, codec),
        following=tuple(followings(unknown, model_attributes(codec), codec)),
    )


def _allowed(hard: Iterable[DenialConstraint], codec: Codec) -> Mapping[tuple[str, ...], Allowed]:
    checks: dict[tuple[str, ...], list[DenialConstraint]] = {}
    for constraint in hard:
        if constraint.is_unary:
            checks.setdefault(tuple(sorted(constraint.attributes)), []).append(constraint)
    return {names: _allows(tuple(found), codec) for names, found in checks.items()}


def _allows(constraints: tuple[DenialConstraint, ...], codec: Codec) -> Allowed:
    def allows(codes: Mapping[str, IntArray]) -> NDArray[np.bool_]:
        table = pa.table({name: codec[name].decode(each) for name, each in codes.items()})
        allowed = np.ones(table.num_rows, dtype=np.bool_)
        for constraint in constraints:
            allowed &= violations_per_row(table, constraint) == 0
        return allowed

    return allows
