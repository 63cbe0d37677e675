"""True rules of a true table can be drawn: no refusal, no violation, at any epsilon, in memory and in blocks."""

from __future__ import annotations

import pytest
from tests.sampling.true_tables.running import EPSILONS, run, table_of

from kamino.constraints import count_violations

SEED = 2026
# Tables that `make test` draws, of few rows, and those that `make test-slow` draws as the campaign does.
FEW, MANY = 24, 60


def test_true_tables_are_true() -> None:
    for number in range(100):
        made, fitted = table_of(SEED, number, 200)
        assert made.table.num_rows == 200 >= fitted
        assert set(made.table.column_names) == set(made.schema)
        for rule in made.constraints:
            assert not rule.is_hard or count_violations(made.table, rule) == 0, (number, rule)


def test_true_tables_are_of_all_kinds() -> None:
    tables = [table_of(SEED, number, 100)[0] for number in range(200)]
    widths = [made.table.num_columns for made in tables]
    assert min(widths) <= 3
    assert max(widths) >= 50
    kinds = {attribute.type for made in tables for attribute in made.schema.attributes.values()}
    assert kinds == {"categorical", "integer", "real", "boolean", "date", "datetime", "key"}
    assert any(column.null_count for made in tables for column in made.table.columns)
    text = "\n".join(rule for made in tables for rule in made.rules)
    assert all(
        word in text for word in ("->", "key (", "check (", "not (t1.", "soft:", "weight 2.5:", "is null", " in (")
    )


@pytest.mark.parametrize("part", range(4))
def test_true_tables_are_drawn(part: int) -> None:
    for number in range(part, FEW, 4):
        outcomes = list(run(SEED, number, EPSILONS[number % 3], 300, most_columns=20))
        assert [each for each in outcomes if not each.is_good] == []
        assert outcomes[0].way == "memory"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_many_true_tables_are_drawn(epsilon: float) -> None:
    for number in range(MANY):
        for outcome in run(SEED, number, epsilon, 3_000):
            assert outcome.is_good, outcome
            assert outcome.seconds < 60, outcome


def test_a_table_follows_from_its_number_alone() -> None:
    made, again = (table_of(SEED, 3, 50)[0] for _ in range(2))
    assert again.table.equals(made.table)
    assert (again.rules, again.schema) == (made.rules, made.schema)
