"""Random small tables and random constraints over them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from kamino.constraints.language.parser import speak_of_t1
from kamino.constraints.tree import (
    Column,
    Comparison,
    Constant,
    DenialConstraint,
    NullTest,
    Operator,
    Predicate,
)

# Two attributes of each family, so that comparisons of different attributes occur; few values, so that ties do.
FAMILIES = {
    "i": (pa.int64(), st.integers(-2, 2)),
    "j": (pa.int8(), st.integers(-2, 2)),
    "f": (pa.float64(), st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, float("inf"), float("nan")])),
    "d": (
        pa.decimal128(5, 2),
        st.sampled_from([Decimal("-1.00"), Decimal("0.00"), Decimal("0.50"), Decimal("2.00")]),
    ),
    "s": (pa.string(), st.sampled_from(["", "a", "b", "ab"])),
    "u": (pa.string(), st.sampled_from(["a", "b", "é"])),
    "b": (pa.bool_(), st.booleans()),
}
NUMERIC, TEXT, BOOLEAN = ("i", "j", "f", "d"), ("s", "u"), ("b",)
_CONSTANTS = {
    **{name: st.sampled_from([-1, 0, 1, Decimal("0.5")]) for name in NUMERIC},
    **{name: st.sampled_from(["a", "b"]) for name in TEXT},
    "b": st.booleans(),
}


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 12) -> pa.Table:
    size = draw(st.integers(0, max_rows))
    columns = {}
    for name, (kind, values) in FAMILIES.items():
        nulls = draw(st.booleans())
        cell = st.none() | values if nulls else values
        columns[name] = pa.array(draw(st.lists(cell, min_size=size, max_size=size)), kind, from_pandas=False)
    return pa.table(columns)


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    family = draw(st.sampled_from([NUMERIC, NUMERIC, TEXT, BOOLEAN]))
    left = Column(draw(st.sampled_from(family)), draw(st.sampled_from([1, 1, 2])))
    kind = draw(st.sampled_from(["same", "same", "same", "mixed", "constant", "null"]))
    op = draw(st.sampled_from(Operator))
    match kind:
        case "same":
            return Comparison(left, op, replace(left, tuple=3 - left.tuple))
        case "mixed":
            return Comparison(left, op, Column(draw(st.sampled_from(family)), draw(st.sampled_from([1, 2]))))
        case "constant":
            return Comparison(left, op, Constant(draw(_CONSTANTS[left.name])))
        case _:
            return NullTest(left, draw(st.booleans()))


def constraints(max_predicates: int = 5) -> st.SearchStrategy[DenialConstraint]:
    return st.lists(predicates(), min_size=1, max_size=max_predicates).map(
        lambda found: DenialConstraint(predicates=speak_of_t1(tuple(found)))
    )
