"""Numbers at the ends of their types are checked against their domains as they are."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kamino.evaluate.as_declared import as_declared
from kamino.evaluate.cells import check_cells
from kamino.schema import Integer, Real, Schema

CASES: list[tuple[Integer | Real, list[int | Decimal], int]] = [
    (Integer(min=2**62, max=2**62 + 20), [2**62, 2**62 + 20, 2**62 + 21, 2**62 - 1, 2**63 - 1], 3),
    (Integer(min=-(2**63), max=0, step=4), [10, 0, -8], 1),
    (Integer(min=2**64 - 9, max=2**64 - 1, dtype="uint64"), [2**64 - 1, 2**64 - 10, 7], 2),
    (
        Real(min=10**37, max=10**37 + 5, decimals=0, dtype="decimal128(38, 0)"),
        [Decimal(10**37 + 6), Decimal(10**37), Decimal(3)],
        2,
    ),
    (Real(min=0, max=10**9, decimals=6), [Decimal(10**9), Decimal("999999999.5"), Decimal(10**9 + 1)], 1),
]


@pytest.mark.parametrize(("attribute", "values", "outside"), CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("written", [False, True])
def test_cells_outside_a_domain_of_large_numbers(
    attribute: Any, values: list[int | Decimal], outside: int, written: bool
) -> None:
    schema = Schema(attributes={"a": attribute})
    is_float = pa.types.is_floating(attribute.arrow_type)
    numbers = pa.array([float(each) if is_float else each for each in values], attribute.arrow_type)
    column = pa.array([str(each) for each in values]) if written else numbers
    found = {each.name: (each.unreadable, each.outside) for each in check_cells(pa.table({"a": column}), schema)}
    assert found == {"a": (0, outside)}
    if written:
        read = as_declared(pa.table({"a": column}), schema).column("a").to_pylist()
        inside = [each for each in values if attribute.min <= each <= attribute.max]
        assert [each for each in read if attribute.min <= each <= attribute.max] == inside
