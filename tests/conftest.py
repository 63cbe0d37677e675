"""What every test of a private path needs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import HealthCheck, settings
from tests.measured import mark

from kamino.pipeline import stages
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit
from kamino.testing.noise_checks import noise_problems
from kamino.testing.replay import add_row, record, remove_row, replace_row
from kamino.testing.strangers import strangers

# Tests are to see every warning, also those that users are spared.
stages.QUIET = False

# `make test` tries the same examples every time, however busy the machine is; `make test-slow` tries new ones, and
# `make quick` a twentieth of them: see `tests.trying`.
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("exploring", settings.get_profile("steady"), derandomize=False, print_blob=True)
settings.register_profile("quick", settings.get_profile("steady"), max_examples=5)
settings.load_profile("steady")

# Searches for parameters price the same mechanisms again and again, and one price takes a second. It is a function of
# its arguments alone, and what it returns is never changed.
privacy_loss_distribution.from_gaussian_mechanism = lru_cache(maxsize=64)(
    privacy_loss_distribution.from_gaussian_mechanism
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make quick` leaves out: tests that start processes, and those that are long."""
    mark(items)


Replays = Callable[..., None]
STRANGERS = ("empty", "all null", "ten times as long", "one value", "rearranged", "odd cells")


def _neighbours(table: pa.Table, relation: Neighbours) -> Iterator[pa.Table]:
    """Tables one row away: the first row gone, and one more at the end, ordinary or of nulls."""
    nulls = dict.fromkeys(table.column_names)
    ordinary = table.slice(table.num_rows // 2, 1).to_pylist()
    if relation is Neighbours.REPLACE:
        yield replace_row(table, 0, nulls)
        yield replace_row(table, table.num_rows - 1, ordinary[0])
        return
    yield remove_row(table, 0)
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
