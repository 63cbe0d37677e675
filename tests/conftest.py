"""What every test of a private path needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit
from kamino.privacy.replay import add_row, assert_replay, remove_row, replace_row

Replays = Callable[..., None]


def _neighbours(table: pa.Table, relation: Neighbours) -> Iterator[pa.Table]:
    """Tables one row away: an ordinary row gone or doubled, and a row of nulls."""
    nulls = dict.fromkeys(table.column_names)
    ordinary = table.slice(table.num_rows // 2, 1).to_pylist()
    if relation is Neighbours.REPLACE:
        yield replace_row(table, 0, nulls)
        yield replace_row(table, table.num_rows - 1, ordinary[0])
        return
    yield remove_row(table, 0)
    yield remove_row(table, table.num_rows - 1)
    yield add_row(table, nulls)
    yield add_row(table, ordinary[0])


@pytest.fixture
def replays() -> Replays:
    """Assert that a run tells nothing of the table but through its releases, on several neighbours.

    `replays(run, table)` with `run(table, gate)`; `extra` adds neighbours, `relations` limits the relations.
    """

    def check(
        run: Callable[[Any, Gate], object],
        table: pa.Table,
        *,
        extra: tuple[pa.Table, ...] = (),
        relations: tuple[Neighbours, ...] = tuple(Neighbours),
        epsilon: float = 1.0,
        unit: PrivacyUnit | None = None,
    ) -> None:
        for relation in relations:
            budget = Budget(epsilon=epsilon, delta=1e-6, neighbours=relation)
            for neighbour in (*_neighbours(table, relation), *extra):
                assert_replay(run, table, neighbour, budget=budget, unit=unit)

    return check
