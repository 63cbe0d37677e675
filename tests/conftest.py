"""What every test of a private path needs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import settings

from kamino.pipeline import stages
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit
from kamino.testing.noise_checks import noise_problems
from kamino.testing.replay import add_row, record, remove_row, replace_row
from kamino.testing.strangers import strangers

# Tests are to see every warning, also those that users are spared.
stages.QUIET = False

# A busy machine is no failure: tests of time say so, and measure processor seconds.
settings.register_profile("kamino", deadline=None)
settings.load_profile("kamino")

Replays = Callable[..., None]
STRANGERS = ("empty", "all null", "ten times as long", "one value", "rearranged", "odd cells")


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


def _without_units(table: pa.Table, unit: PrivacyUnit) -> Iterator[pa.Table]:
    """Tables without the unit of the first row, and without that of the last."""
    owners = table.column(unit.column)
    for owner in (owners[0], owners[-1]):
        yield table.filter(pa.compute.not_equal(owners, owner))


@pytest.fixture
def replays() -> Replays:
    """Assert that a run tells nothing of the table but through its releases, on neighbours and on strangers.

    `replays(run, table)` with `run(table, gate)`; `extra` adds neighbours, `relations` limits the relations, `others`
    the strangers. With a `unit`, neighbours lack the unit of a row. The noise is looked at as well.
    """

    def check(
        run: Callable[[Any, Gate], object],
        table: pa.Table,
        *,
        extra: tuple[pa.Table, ...] = (),
        relations: tuple[Neighbours, ...] = tuple(Neighbours),
        epsilon: float = 1.0,
        unit: PrivacyUnit | None = None,
        others: Container[str] = STRANGERS,
    ) -> None:
        for relation in relations:
            budget = Budget(epsilon=epsilon, delta=1e-6, neighbours=relation)
            recording = record(run, table, budget=budget, unit=unit)
            assert noise_problems(recording.records) == ()
            near = _neighbours(table, relation) if unit is None else _without_units(table, unit)
            for neighbour in (*near, *extra):
                recording.assert_plays(neighbour)
            if relation is relations[0]:
                for name, other in strangers(table).items():
                    assert name not in others or recording.play(other, neighbour=False).problems == (), name

    return check
