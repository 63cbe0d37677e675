"""The built-in table of hospital visits."""

from __future__ import annotations

import pytest

from kamino.constraints import Constraints, count_violations, value_types
from kamino.datasets import VISITS_CONSTRAINTS, VISITS_SCHEMA, visits
from kamino.errors import InputError
from kamino.evaluate.cells import check_cells
from kamino.schema import Schema


@pytest.mark.parametrize("rows", [0, 1, 5_000])
def test_visits_keep_their_rules(rows: int) -> None:
    table = visits(rows, seed=rows)
    rules = Constraints.parse(VISITS_CONSTRAINTS, types=value_types(table))
    assert [count_violations(table, rule) for rule in rules] == [0, 0, 0, 0]
    assert not any(each.faults for each in check_cells(table, Schema.from_yaml(VISITS_SCHEMA)))
    assert visits(rows, seed=rows).equals(table)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="must not be negative"):
        visits(-1)
