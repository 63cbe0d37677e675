"""Repair: a broken table comes back whole, a clean one as it was."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.sampling.brute_force import table_exists
from tests.sampling.fakes import integers
from tests.sampling.strategies import problems
from tests.sampling.test_oracles import random_table
from tests.trying import examples

from kamino.constraints import Constraints, DenialConstraint
from kamino.errors import SamplingError
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.codes.recounting import broken_constraints
from kamino.sampling.repair.repairing import repair
from kamino.sampling.repair.row_maker import RowMaker
from kamino.schema import Codec, Integer, Schema


@examples(150, suppress_health_check=list(HealthCheck))
@given(problems(), st.integers(1, 9), st.integers(0, 2**32))
def test_repair_leaves_no_violation(problem: tuple[Codec, Constraints, int], num_rows: int, seed: int) -> None:
    codec, constraints, _ = problem
    hard = list(constraints)
    try:
        table = repair(Judge(codec), random_table(codec, num_rows, seed), hard, num_rows, np.random.default_rng(seed))
    except SamplingError:
        assert not table_exists(codec, hard, num_rows)
        return
    assert all(len(codes) == num_rows for codes in table.values())
    assert broken_constraints(codec, table, hard) == ()


@examples(150, suppress_health_check=list(HealthCheck))
@given(problems(), st.integers(0, 2**32))
def test_made_rows_fit(problem: tuple[Codec, Constraints, int], seed: int) -> None:
    """Rows made one after the other, also where some were taken back, are a table without violations."""
    codec, constraints, _ = problem
    names = sorted({name for c in constraints for name in c.attributes})
    rng = np.random.default_rng(seed)
    maker = RowMaker(Judge(codec), list(constraints), names, 9, rng)
    for place in range(9):
        row = maker.make({name: int(rng.integers(codec[name].size)) for name in names})
        if row is None:
            break
        maker.add(row, place)
        if rng.random() < 0.2:
            maker.add(*maker.drop())
    table = {name: np.zeros(9, dtype=np.int64) for name in names}
    maker.write(table)
    table = {name: codes[: maker.count] for name, codes in table.items()}
    assert maker.count == 0 or broken_constraints(codec, table, list(constraints)) == ()


@examples(150, suppress_health_check=list(HealthCheck))
@given(problems(), st.integers(0, 2**32))
def test_rows_added_at_once_are_those_added_one_by_one(problem: tuple[Codec, Constraints, int], seed: int) -> None:
    """Two makers, the same rows and the same chance: what is made, taken back and made again is the same."""
    codec, constraints, _ = problem
    names = sorted({name for c in constraints for name in c.attributes})
    hard, rng = list(constraints), np.random.default_rng(seed)
    table = repair_or_nothing(codec, hard, names, seed)
    makers = [RowMaker(Judge(codec), hard, names, 12, np.random.default_rng(seed)) for _ in range(2)]
    if table is not None:
        for place in range(6):
            makers[0].add({name: int(table[name][place]) for name in names}, place)
        makers[1].add_first({name: table[name] for name in names}, np.arange(6))
    for place in range(6, 12):
        own = {name: int(rng.integers(codec[name].size)) for name in names}
        one, other = (maker.make(own) for maker in makers)
        assert one == other
        if one is not None and makers[0].count < 12:
            for maker in makers:
                maker.add(one, place)
        if makers[0].count and rng.random() < 0.5:
            one_back, other_back = (maker.drop() for maker in makers)
            assert one_back == other_back


def repair_or_nothing(
    codec: Codec, hard: list[DenialConstraint], names: list[str], seed: int
) -> dict[str, np.ndarray] | None:
    """Six rows that keep the constraints, if there are any."""
    try:
        found = repair(Judge(codec), random_table(codec, 6, seed), hard, 6, np.random.default_rng(seed))
    except SamplingError:
        return None
    return {name: found[name] for name in names}


@pytest.mark.parametrize(
    "rules",
    [
        "key (a, b)",
        "key (a, b)\na -> c\nc -> a",
        "key (a, b)\na -> c\nc -> a\nb -> d\nd -> b",
        "key (a, b)\nkey (a, d)\na -> c\nc -> a",
        "key (a, b)\nnot (t1.a < t2.a and t1.c > t2.c)\na -> c\ncheck (d > 3)",
    ],
)
def test_tight_keys_are_repaired(rules: str) -> None:
    """As many rows as keys have combinations, most of which the table does not have."""
    codec = integers(a=12, b=15, c=12, d=15)
    table = {name: np.zeros(180, dtype=np.int64) for name in "abcd"}
    hard = list(Constraints.parse(rules))
    repaired = repair(Judge(codec), table, hard, 180, np.random.default_rng(0))
    assert broken_constraints(codec, repaired, hard) == ()
    assert len(set(zip(repaired["a"].tolist(), repaired["b"].tolist(), strict=True))) == 180


def test_keys_have_the_room_that_dependencies_leave_them() -> None:
    """Fifteen values of b with each of five of a, c and d, and an order beside: all of them are needed."""
    codec = integers(a=40, b=15, c=30, d=5, e=200, f=200)
    table = {name: np.zeros(75, dtype=np.int64) for name in "abcdef"}
    rules = "key (a, b)\nkey (c, b)\na -> c\nc -> d\nd -> a\nnot (t1.e < t2.e and t1.f > t2.f)\nkey (e, d)"
    hard = list(Constraints.parse(rules))
    repaired = repair(Judge(codec), table, hard, 75, np.random.default_rng(0))
    assert broken_constraints(codec, repaired, hard) == ()


def test_nulls_make_room_for_keys() -> None:
    """Two values of a go with one of c, which is so only where b is null; and all values of a are needed."""
    codec = Codec(
        Schema(attributes={n: Integer(min=0, max=7, nullable=n == "b") for n in "abc"} | {"d": Integer(min=0, max=9)})
    )
    table = {name: np.repeat(np.arange(8), 10) for name in "abc"} | {"d": np.tile(np.arange(10), 8)}
    table["c"][:10] = 1
    table["b"][:10] = [8] * 5 + [1] * 5
    table["d"][5:10] = 0
    hard = list(Constraints.parse("key (a, d)\nb -> a\na -> c\nc -> b\nb -> c"))
    repaired = repair(Judge(codec), table, hard, 80, np.random.default_rng(0))
    assert broken_constraints(codec, repaired, hard) == ()


def test_keys_do_not_touch_other_columns() -> None:
    codec = integers(a=30, b=10, c=5, d=5)
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, size, 300) for name, size in (("a", 30), ("b", 10), ("c", 5), ("d", 5))}
    table["d"] = table["c"].copy()
    hard = list(Constraints.parse("key (a, b)\nc -> d"))
    repaired = repair(Judge(codec), table, hard, 300, rng)
    assert np.array_equal(repaired["c"], table["c"])
    assert np.array_equal(repaired["d"], table["d"])
    assert np.mean(repaired["a"] == table["a"]) > 0.5


def test_repair_leaves_clean_tables_alone() -> None:
    codec = integers(a=50, b=50)
    table = {"a": np.arange(40) % 7, "b": np.arange(40) % 7}
    hard = list(Constraints.parse("a -> b\nnot (t1.a < t2.a and t1.b > t2.b)"))
    repaired = repair(Judge(codec), table, hard, 40, np.random.default_rng(0))
    assert all(np.array_equal(repaired[name], table[name]) for name in table)


def test_repair_changes_few_rows() -> None:
    codec = integers(a=50, b=50)
    table = {"a": np.arange(1000) % 50, "b": np.arange(1000) % 50}
    table["b"][[3, 400, 777]] = 49
    hard = list(Constraints.parse("a -> b"))
    repaired = repair(Judge(codec), table, hard, 1000, np.random.default_rng(0))
    assert np.sum((repaired["a"] != table["a"]) | (repaired["b"] != table["b"])) <= 3


def test_repair_gives_keys_unused_values() -> None:
    codec = integers(a=1_000_000, b=5)
    table = {"a": np.arange(300) // 2, "b": np.arange(300) % 5}
    repaired = repair(Judge(codec), table, list(Constraints.parse("key (a)")), 300, np.random.default_rng(0))
    assert len(np.unique(repaired["a"])) == 300
    assert np.array_equal(repaired["b"], table["b"])


def test_repair_says_what_it_could_not_do() -> None:
    codec = integers(a=4, b=5)
    table = {"a": np.arange(6) % 4, "b": np.arange(6) % 5}
    with pytest.raises(SamplingError, match=r"no table of 6 rows[^:]*: key \(a\)\."):
        repair(Judge(codec), table, list(Constraints.parse("key (a)\na -> b")), 6, np.random.default_rng(0))


def test_a_seed_gives_one_table() -> None:
    """Whatever order a process gives to its sets."""
    code = (
        "import numpy as np; from tests.sampling.fakes import integers; from kamino.constraints import Constraints;"
        "from kamino.sampling.codes.comparing import Judge; from kamino.sampling.repair.repairing import repair;"
        "codec = integers(a=60, b=60, c=60);"
        "table = {n: np.arange(80, dtype=np.int64) // 4 for n in 'abc'};"
        "found = repair(Judge(codec), table, list(Constraints.parse('key (a, b, c)')), 80, np.random.default_rng(0));"
        "print([found[n].tolist() for n in 'abc'])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(seen) == 1
