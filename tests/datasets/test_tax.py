from __future__ import annotations

import doctest
import sys

import pandas as pd
import pyarrow as pa
import pytest

from kamino.constraints import Constraints, count_violations
from kamino.datasets import TAX_CONSTRAINTS, tax, tax_blocks
from kamino.errors import InputError

FDS = [
    (["zip"], "city"),
    (["zip"], "state"),
    (["area_code"], "state"),
    (["state", "has_child"], "child_exemp"),
    (["state", "marital_status"], "single_exemp"),
]
SIZES = [0, 1, 2, 50, 20_000]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return tax(20_000, seed=3).to_pandas()


def test_constraints_are_the_ones_tested_here() -> None:
    order = "not (t1.state = t2.state and t1.salary > t2.salary and t1.rate < t2.rate)"
    assert TAX_CONSTRAINTS.splitlines() == [f"{', '.join(left)} -> {right}" for left, right in FDS] + [order]


@pytest.mark.parametrize(("left", "right"), FDS)
@pytest.mark.parametrize("num_rows", SIZES)
def test_functional_dependencies_hold(left: list[str], right: str, num_rows: int) -> None:
    frame = tax(num_rows, seed=3).to_pandas()
    assert (frame.groupby(left)[right].nunique(dropna=False) <= 1).all()


@pytest.mark.parametrize("num_rows", SIZES)
@pytest.mark.parametrize("seed", [0, 3])
def test_rate_never_falls_with_salary(num_rows: int, seed: int) -> None:
    frame = tax(num_rows, seed=seed).to_pandas().dropna(subset="rate")
    by_salary = frame.groupby(["state", "salary"])["rate"].agg(["min", "max"]).reset_index()
    # Within a state: the largest rate of all smaller salaries must not exceed the smallest rate of this one.
    highest_below = by_salary.groupby("state")["max"].transform(lambda rates: rates.cummax().shift())
    assert not (highest_below > by_salary["min"]).any()


def test_types() -> None:
    kinds = {
        "state": pa.string(), "area_code": pa.string(), "zip": pa.string(), "city": pa.string(),
        "marital_status": pa.string(), "has_child": pa.bool_(), "salary": pa.int64(), "rate": pa.float64(),
        "single_exemp": pa.int64(), "child_exemp": pa.int64(),
    }  # fmt: skip
    for num_rows in SIZES:
        table = tax(num_rows)
        assert table.schema == pa.schema(kinds)
        assert table.num_rows == num_rows


def test_spelling(frame: pd.DataFrame) -> None:
    assert frame["zip"].str.fullmatch(r"[0-9]{5}").all()
    assert frame["zip"].str.startswith("0").any()
    assert frame["area_code"].str.fullmatch(r"[2-9][0-9]{2}").all()
    assert set(frame["marital_status"]) == {"S", "M"}
    assert (frame["salary"] % 500 == 0).all()
    assert frame["rate"].dropna().round(2).eq(frame["rate"].dropna()).all()


def test_nulls_are_a_few_rates(frame: pd.DataFrame) -> None:
    nulls = frame.isna().sum()
    # About 20 of 20,000; the seed is fixed, so this cannot fail by chance.
    assert 8 <= nulls["rate"] <= 36
    assert nulls.sum() == nulls["rate"]


def test_same_seed_same_table() -> None:
    assert tax(500, seed=1).equals(tax(500, seed=1))
    assert not tax(500, seed=1).equals(tax(500, seed=2))
    assert tax(500).equals(tax(500, seed=0))


def test_the_table_has_a_natural_skew(frame: pd.DataFrame) -> None:
    states = frame["state"].value_counts(normalize=True)
    assert len(states) == 51
    assert states.iloc[0] > 10 * states.iloc[-1]
    assert frame["zip"].nunique() > 2_000
    assert frame["city"].nunique() > 500
    assert frame["salary"].skew() > 1
    means = frame.groupby("marital_status")["salary"].mean()
    assert means["M"] > 1.2 * means["S"]
    children = frame.groupby("marital_status")["has_child"].mean()
    assert children["M"] > children["S"] + 0.2
    incomes = frame.groupby("state")["salary"].median()
    assert incomes["MA"] > 1.2 * incomes["MS"]
    # Most people of a zip code share its area code.
    assert frame.groupby("zip")["area_code"].agg(lambda codes: codes.eq(codes.mode()[0]).mean()).mean() > 0.9


def test_zip_codes_grow_with_the_table_up_to_a_limit() -> None:
    counts = [len(set(tax(num_rows)["zip"].to_pylist())) for num_rows in (1_000, 10_000, 100_000)]
    assert counts[0] < counts[1] < counts[2] <= 18_000


@pytest.mark.parametrize(("num_rows", "seed"), [(-1, 0), (5, -1)])
def test_negative_arguments(num_rows: int, seed: int) -> None:
    with pytest.raises(InputError, match="must not be negative"):
        tax(num_rows, seed=seed)


def test_examples_run() -> None:
    assert doctest.testmod(sys.modules["kamino.datasets.tax"]).failed == 0


def test_blocks_satisfy_the_constraints_together() -> None:
    blocks = list(tax_blocks(5_000, seed=4, block_rows=1_200))
    assert [block.num_rows for block in blocks] == [1_200] * 4 + [200]
    table = pa.concat_tables(blocks)
    assert all(count_violations(table, rule) == 0 for rule in Constraints.parse(TAX_CONSTRAINTS))
    assert table.column("zip").slice(0, 1_200) != table.column("zip").slice(1_200, 1_200)
