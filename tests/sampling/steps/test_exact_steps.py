"""The exact steps are exact: whole columns follow the product of the rows' laws, given that nothing is broken."""

from __future__ import annotations

import pytest
from tests.sampling.exactness import assert_copies_exact, assert_exact
from tests.sampling.fakes import integers

from kamino.constraints import Constraints
from kamino.sampling.plan.sampling_plan import StepKind

CHAIN = "not (t1.x > t2.x and t1.a < t2.a)"
FALLING = "not (t1.x < t2.x and t1.a < t2.a)"
GROUPED = "not (t1.g = t2.g and t1.x > t2.x and t1.a < t2.a)"
TIES = "not (t1.x >= t2.x and t1.a < t2.a)"


def run(text: str, sizes: dict[str, int], columns: dict[str, list[int]], kind: StepKind, seed: int) -> None:
    assert_copies_exact(sizes, "a", columns, list(Constraints.parse(text)), kind, seed=seed)


def run_alone(text: str, sizes: dict[str, int], columns: dict[str, list[int]], kind: StepKind, seed: int) -> None:
    assert_exact(integers(**sizes), "a", columns, list(Constraints.parse(text)), kind, seed=seed)


@pytest.mark.parametrize(
    ("text", "sizes", "columns"),
    [
        ("x -> a", {"x": 3, "a": 3}, {"x": [0, 0, 1, 1, 1]}),
        ("x -> a\ny -> a", {"x": 3, "y": 3, "a": 3}, {"x": [0, 0, 1, 2], "y": [0, 1, 1, 2]}),
        ("x, y -> a", {"x": 2, "y": 2, "a": 3}, {"x": [0, 0, 0, 1], "y": [0, 0, 1, 1]}),
        ("x -> a\ncheck (a > 0)", {"x": 3, "a": 3}, {"x": [0, 0, 1, 1]}),
        ("x -> a\nnot (x = 1 and a = 1)", {"x": 3, "a": 3}, {"x": [0, 0, 1, 1]}),
    ],
)
def test_lookup_is_exact(text: str, sizes: dict[str, int], columns: dict[str, list[int]]) -> None:
    run(text, sizes, columns, StepKind.LOOKUP, seed=1)


@pytest.mark.parametrize(
    ("text", "sizes", "columns"),
    [
        ("x -> a", {"x": 2, "a": -2}, {"x": [0, 0, 0, 1]}),
        ("x -> a", {"x": -2, "a": -2}, {"x": [0, 0, 2, 2, 1]}),
        ("x -> a\ny -> a", {"x": 3, "y": 3, "a": -2}, {"x": [0, 0, 1, 2], "y": [0, 1, 1, 2]}),
    ],
)
def test_lookup_with_nulls_is_exact(text: str, sizes: dict[str, int], columns: dict[str, list[int]]) -> None:
    run(text, sizes, columns, StepKind.LOOKUP, seed=2)


@pytest.mark.parametrize(
    ("text", "sizes", "columns"),
    [
        (CHAIN, {"x": 4, "a": 4}, {"x": [0, 1, 2, 3]}),
        (CHAIN, {"x": 3, "a": 3}, {"x": [1, 0, 1, 2, 0]}),
        (FALLING, {"x": 3, "a": 3}, {"x": [1, 0, 1, 2]}),
        (GROUPED, {"g": 2, "x": 3, "a": 3}, {"g": [0, 0, 1, 1, 1], "x": [0, 1, 2, 0, 0]}),
        (TIES, {"x": 3, "a": 3}, {"x": [1, 0, 1, 2, 0]}),
        (CHAIN + "\nx -> a", {"x": 3, "a": 3}, {"x": [1, 0, 1, 2, 0]}),
        (GROUPED + "\ng, x -> a", {"g": 2, "x": 3, "a": 3}, {"g": [0, 0, 1, 1, 1], "x": [0, 1, 2, 0, 0]}),
        (CHAIN + "\ncheck (a != 1)", {"x": 3, "a": 4}, {"x": [1, 0, 1, 2]}),
        (CHAIN + "\nnot (x = 1 and a = 1)", {"x": 3, "a": 3}, {"x": [1, 0, 1, 2]}),
    ],
)
def test_chain_is_exact(text: str, sizes: dict[str, int], columns: dict[str, list[int]]) -> None:
    run(text, sizes, columns, StepKind.CHAIN, seed=3)


@pytest.mark.parametrize(
    ("text", "sizes", "columns"),
    [
        (CHAIN, {"x": 3, "a": -3}, {"x": [1, 0, 1, 2]}),
        (CHAIN, {"x": -3, "a": -2}, {"x": [1, 0, 3, 2, 1]}),
        (GROUPED, {"g": -2, "x": 3, "a": -2}, {"g": [0, 0, 2, 1, 1], "x": [0, 1, 2, 0, 0]}),
        (TIES, {"x": 3, "a": -2}, {"x": [1, 0, 1, 2]}),
        ("x -> a\n" + FALLING, {"x": -3, "a": -2}, {"x": [1, 0, 3, 2, 1]}),
    ],
)
def test_chain_with_nulls_is_exact(text: str, sizes: dict[str, int], columns: dict[str, list[int]]) -> None:
    run(text, sizes, columns, StepKind.CHAIN, seed=4)


@pytest.mark.parametrize(
    ("text", "sizes", "columns"),
    [
        ("key (a)", {"x": 1, "a": 4}, {"x": [0, 0, 0]}),
        ("key (a)", {"x": 1, "a": 4}, {"x": [0, 0, 0, 0]}),
        ("key (a)", {"x": 1, "a": -3}, {"x": [0, 0, 0, 0]}),
        ("key (x, a)", {"x": 2, "a": 3}, {"x": [0, 1, 0, 1]}),
        ("key (x, a)", {"x": -2, "a": 3}, {"x": [0, 2, 0, 2]}),
    ],
)
def test_unique_is_exact(text: str, sizes: dict[str, int], columns: dict[str, list[int]]) -> None:
    run(text, sizes, columns, StepKind.UNIQUE, seed=5)


def test_mixing_of_large_keys_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kamino.sampling.steps.unique.distinct.EXACT_VALUES", -1)
    monkeypatch.setattr("kamino.sampling.steps.unique.distinct._SWEEPS", 60)
    run("key (a)", {"x": 1, "a": 4}, {"x": [0, 0, 0]}, StepKind.UNIQUE, seed=6)


@pytest.mark.parametrize(
    ("text", "sizes", "columns", "kind"),
    [
        ("x -> a", {"x": 3, "a": 3}, {"x": [0, 0, 1, 1, 1]}, StepKind.LOOKUP),
        (CHAIN, {"x": 3, "a": 3}, {"x": [1, 0, 1, 2]}, StepKind.CHAIN),
        ("key (a)", {"x": 1, "a": 4}, {"x": [0, 0, 0]}, StepKind.UNIQUE),
        ("x -> a\na -> x", {"x": 3, "a": 4}, {"x": [0, 1, 0, 2, 1]}, StepKind.UNIQUE),
    ],
)
def test_one_table_at_a_time(text: str, sizes: dict[str, int], columns: dict[str, list[int]], kind: StepKind) -> None:
    run_alone(text, sizes, columns, kind, seed=7)
