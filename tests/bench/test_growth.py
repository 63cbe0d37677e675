"""The measurement of growth: exponents and limits, the picture, and that every case can be made."""

from __future__ import annotations

import doctest
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench import growth, growth_plot
from bench.growth import Cost, Point, exponent, faults_of, law_rows
from bench.growth_cases import LAWS, PAIRS, Law, compared, conditional, dependent

from kamino.constraints import Constraints, count_violations, value_types


def points(*figures: tuple[int, float], law: str = "a law") -> list[Point]:
    return [Point(law=law, size=size, now=Cost(cpu=cpu, wall=cpu, mebibytes=100)) for size, cpu in figures]


def test_examples_in_docstrings_hold() -> None:
    for module in (growth, growth_plot):
        assert doctest.testmod(module) == doctest.TestResults(failed=0, attempted=doctest.testmod(module).attempted)


def test_an_exponent_leaves_the_start_out_and_noise_alone() -> None:
    assert exponent(points((10, 1.5), (100, 6.0)), start=1.0) == pytest.approx(1.0)
    assert exponent(points((10, 1.01), (1000, 1.15)), start=1.0) == 0.0


@pytest.mark.parametrize("growing", [True, False])
def test_what_grows_too_fast_is_a_fault(growing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    law = Law(unit="rows", build=growth.shortest, sizes=(10, 100), exponent=1.2, seconds={100: 50.0})
    monkeypatch.setitem(growth.LAWS, "a law", law)  # type: ignore[arg-type]
    made = points((10, 2.0), (100, 101.0 if growing else 11.0))
    faults = faults_of("a law", made, start=1.0)
    assert len(faults) == (2 if growing else 0)
    assert ("missed" in "".join(law_rows(made, 1.0))) == growing
    unended = [*made[:1], Point(law="a law", size=100, now=Cost(cpu=1, wall=1, mebibytes=1, ended=False))]
    assert "did not end" in faults_of("a law", unended, start=1.0)[-1]


def test_the_picture_is_one_whatever_the_figures() -> None:
    for curves in ({}, {"one": [(1, 0.5)]}, {"a < b": [(1, 0.01), (5, 100.0)], "flat": [(2, 1.0), (2_000_000, 1.0)]}):
        ElementTree.fromstring(growth_plot.plot(curves))


def test_tables_of_the_cases_keep_their_rules() -> None:
    """What is measured is the cost of rules that hold, not of repairing what cannot."""
    for shape in ("star", "chain", "diamond", "random"):
        table, rules = dependent(12, shape, rows=300)
        assert _broken(table, rules) == 0
    for table, rules in (compared(10, rows=300), conditional(7, rows=300)):
        assert _broken(table, rules) == 0


def _broken(table: object, rules: str) -> int:
    return sum(count_violations(table, c) for c in Constraints.parse(rules, types=value_types(table)))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.small])
def test_cases_of_the_small_run_are_made(name: str, tmp_path: Path) -> None:
    job = LAWS[name].build(tmp_path, 100)
    assert job.commands
    assert list(tmp_path.glob("*.parquet"))


def test_pairs_differ_in_what_they_are_about(tmp_path: Path) -> None:
    for name, pair in PAIRS.items():
        made = pair.build(tmp_path, 50)
        rules = (tmp_path / "rules.dc").read_text()
        beside = pair.beside(tmp_path, 50)
        assert (made.commands, rules) != (beside.commands, (tmp_path / "rules.dc").read_text()), name


def test_what_is_above_a_limit_once_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs the least cost counts; a law that is above its limit twice stays there."""

    def cost(seconds: float) -> Cost:
        return Cost(cpu=seconds, wall=seconds, mebibytes=1, ended=True)

    name, law = next((name, law) for name, law in growth.LAWS.items() if len(law.small) == 2 and law.times is None)

    def points(*seconds: float) -> list[growth.Point]:
        return [
            growth.Point(law=name, size=size, now=cost(each)) for size, each in zip(law.small, seconds, strict=True)
        ]

    for again, is_steep in ((points(1, 1.1), False), (points(1, 1e6), True)):
        monkeypatch.setattr(growth, "measure_laws", lambda *_, found=again, **__: iter([(name, found)]))
        found = growth.settled({name: points(1, 1e6)}, [], 0.1)
        assert bool(growth.faults_of(name, found[name], 0.1)) == is_steep
