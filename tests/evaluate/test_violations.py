"""Each constraint is counted by itself, or says why not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.errors import ConstraintErrors
from kamino.evaluate.report.document import internal_report
from kamino.evaluate.report.page import render_page

TRUE = pa.table({"zip": ["1", "1", "2", "2"] * 5, "city": ["A", "A", "B", "B"] * 5, "age": [20, 30, 40, 50] * 5})
# the same but for the ages, which are text
SYNTHETIC = TRUE.set_column(2, "age", pa.array(["x20", "30", "40", "50"] * 5))
WHY = "age is text in the synthetic table, expected a number"


def test_each_constraint_is_counted_by_itself() -> None:
    rules = Constraints.parse("check (age >= 18)\nzip -> city\nzip, age -> city")
    report = internal_report(TRUE, SYNTHETIC, rules)
    age, fd, both = report["constraints"]
    assert (age["synthetic"], age["not_counted"]) == (None, WHY)
    assert age["true"]["violations"] == 0
    assert (fd["synthetic"]["violations"], fd["not_counted"]) == (0, None)
    # whether two ages are equal needs no certain type
    assert both["synthetic"]["violations"] == 0


def test_an_order_of_texts_is_not_taken_for_one_of_numbers() -> None:
    rules = Constraints.parse("not (t1.age > t2.age and t1.zip < t2.zip)")
    assert internal_report(TRUE, SYNTHETIC, rules)["constraints"][0]["not_counted"] == WHY
    assert internal_report(TRUE, TRUE, rules)["constraints"][0]["not_counted"] is None


def test_what_is_not_counted_is_never_good() -> None:
    rules = Constraints.parse("check (age >= 18)\nzip -> city")
    report = internal_report(TRUE, SYNTHETIC, rules)
    verdict = report["verdict"]
    assert (verdict["broken"], verdict["uncounted"], verdict["hard"]) == (0, 1, 2)
    assert {"level": "fair", "text": "constraints that could not be counted"} in verdict["reasons"]
    report["sources"] = {"true": "t", "synthetic": "s"}
    page = render_page(report)
    assert "hard constraints could not be counted, the others hold" in page
    assert f'not counted</span><br><span class="note">{WHY}' in page
    soft = internal_report(TRUE, SYNTHETIC, Constraints.parse("soft: check (age >= 18)"))["verdict"]
    assert (soft["uncounted"], soft["hard"]) == (0, 0)
    assert {"level": "fair", "text": "constraints that could not be counted"} in soft["reasons"]


def test_a_broken_and_an_uncounted_constraint_are_told_apart() -> None:
    broken = SYNTHETIC.set_column(1, "city", pa.array(["A", "B"] * 10))
    verdict = internal_report(TRUE, broken, Constraints.parse("check (age >= 18)\nzip -> city"))["verdict"]
    assert (verdict["level"], verdict["broken"], verdict["uncounted"]) == ("poor", 1, 1)


def test_constraints_that_do_not_fit_the_true_table_are_an_error() -> None:
    with pytest.raises(ConstraintErrors, match="'nope' is not in the schema"):
        internal_report(TRUE, SYNTHETIC, Constraints.parse("check (nope > 1)"))
