"""The report as data."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from tests.evaluate.report_tables import RULES, table

from kamino.constraints import Constraints
from kamino.errors import InputError
from kamino.evaluate.measure.metrics import bin_tables_by_mass, distances_of
from kamino.evaluate.measure.rank_correlation import compare_ranks
from kamino.evaluate.report.document import INTERNAL, internal_report
from kamino.evaluate.report.statement import statement_of
from kamino.evaluate.report.verdict import LEVELS, add_verdict


def test_document_is_plain_json() -> None:
    report = internal_report(table(200, 1), table(150, 2), RULES)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["mark"] == INTERNAL
    assert report["rows"] == {"true": 200, "synthetic": 150}
    assert [m["order"] for m in report["marginals"]] == [1, 2, 3]
    assert len(report["columns"]) == len(report["pairs"]["distance"]) == 8


def test_a_table_beside_itself_is_good() -> None:
    true = table(200, 1)
    rules = Constraints.parse("zip -> city")
    report = internal_report(true, true, rules)
    assert report["verdict"]["level"] == "good"
    assert report["verdict"]["reasons"] == []
    assert report["correlations"]["max_difference"] == 0
    assert all(c["distance"] == 0 and not c["outside"] and c["type_fits"] for c in report["columns"])
    assert report["constraints"][0]["true"] == report["constraints"][0]["synthetic"]


def test_broken_hard_constraint_is_poor() -> None:
    true = pa.table({"zip": ["1", "1", "2"] * 20, "city": ["A", "A", "B"] * 20})
    synthetic = pa.table({"zip": ["1", "1", "2"] * 20, "city": ["A", "A", "B"] * 19 + ["B", "A", "B"]})
    report = internal_report(true, synthetic, Constraints.parse("zip -> city"))
    assert report["constraints"][0]["true"]["violations"] == 0
    # one row of zip 1 says B, against 39 that say A
    assert report["constraints"][0]["synthetic"] == {
        "violations": 39,
        "of": 1770,
        "percent": pytest.approx(3900 / 1770),
    }
    assert (report["verdict"]["level"], report["verdict"]["broken"]) == ("poor", 1)
    assert internal_report(true, synthetic, Constraints.parse("soft: zip -> city"))["verdict"]["broken"] == 0


def test_types_that_do_not_fit_are_poor_and_counted_where_possible() -> None:
    true = pa.table({"n": [1, 2, 3], "c": ["a", "b", "c"]})
    synthetic = pa.table({"n": ["x", "y", "z"], "c": ["a", "b", "c"]})
    report = internal_report(true, synthetic, Constraints.parse("check (n > 0)"))
    assert report["verdict"]["level"] == "poor"
    assert report["verdict"]["type_faults"] == 1
    assert report["constraints"][0]["synthetic"] is None
    assert report["verdict"]["broken"] == 0
    assert report["columns"][0]["outside"] == 3


def test_halves_excuse_what_chance_does() -> None:
    base = {"constraints": [], "identifiers": [], "columns": [], "learning": None, "equal_mass": [], "ranks": None}
    marginals = [{"mean": 0.1, "halves": 0.1}, {"mean": 0.4, "halves": 0.41}]
    assert add_verdict({**base, "marginals": marginals})["verdict"]["level"] == "good"
    marginals[1]["halves"] = 0.2
    assert add_verdict({**base, "marginals": marginals})["verdict"]["level"] == "poor"
    marginals[1]["mean"] = 0.29
    assert add_verdict({**base, "marginals": marginals})["verdict"]["level"] == "fair"


def test_equal_mass_and_ranks_stand_beside_equal_width() -> None:
    true, synthetic = table(200, 1), table(150, 2)
    report = internal_report(true, synthetic, RULES)
    pair = bin_tables_by_mass(true, synthetic)
    assert [m["order"] for m in report["equal_mass"]] == [1, 2]
    assert [m["mean"] for m in report["equal_mass"]] == [distances_of(pair, order=order).mean for order in (1, 2)]
    assert all(m["halves"] > 0 for m in report["equal_mass"])
    ranks = compare_ranks(true, synthetic)
    assert report["ranks"]["names"] == ["age", "pay", "day", "moment", true.column_names[-1]]
    assert report["ranks"]["mean_difference"] == ranks.mean_error
    assert 0 < report["ranks"]["halves"] < 1
    alone = pa.table({"a": [1, 2, 3], "t": ["x", "y", "z"]})
    assert internal_report(alone, alone)["ranks"] is None


def test_what_equal_widths_hide_is_not_good() -> None:
    rng = np.random.default_rng(0)
    x, y = np.append(rng.random(2000), 1e4), np.append(rng.random(2000), 1e4)
    true = pa.table({"x": x, "y": np.append(x[:-1] + rng.normal(0, 0.01, 2000), 1e4)})
    report = internal_report(true, pa.table({"x": x, "y": y}))
    assert report["marginals"][1]["mean"] == 0
    assert report["verdict"]["level"] == "poor"
    assert [reason["text"] for reason in report["verdict"]["reasons"] if reason["level"] == "poor"] == [
        "distances of pairs of columns in bins of equal mass",
        "rank correlations",
    ]


@pytest.mark.parametrize(("found", "halves", "level"), [(0.05, 0.0, "good"), (0.1, 0.1, "good"), (0.16, 0.1, "poor")])
def test_no_figure_beside_equal_width_makes_a_verdict_better(found: float, halves: float, level: str) -> None:
    base = {"constraints": [], "identifiers": [], "columns": [], "learning": None, "equal_mass": [], "ranks": None}
    mass = {"equal_mass": [{"mean": 0.0, "halves": 0.0}, {"mean": found, "halves": halves}]}
    ranks = {"ranks": {"mean_difference": found, "halves": halves}}
    for more in (mass, ranks):
        for width in (0.0, 0.1, 0.2):
            plain = {**base, "marginals": [{"mean": width, "halves": 0.0}]}
            before, after = (add_verdict(each)["verdict"]["level"] for each in (plain, {**plain, **more}))
            assert after == max(before, level, key=LEVELS.index)


def test_many_values_outside_the_range_are_fair() -> None:
    true = pa.table({"n": [i % 10 for i in range(1000)]})
    for beyond, level in ((10, "good"), (11, "fair")):
        synthetic = pa.table({"n": [*[10] * beyond, *(i % 10 for i in range(1000 - beyond))]})
        report = internal_report(true, synthetic)
        assert report["columns"][0]["outside"] == beyond
        assert report["verdict"]["level"] == level


def test_models_that_learn_less_count() -> None:
    base = {"constraints": [], "identifiers": [], "columns": [], "marginals": [], "equal_mass": [], "ranks": None}
    for synthetic, level in ((0.89, "good"), (0.86, "fair"), (0.7, "poor")):
        learning = {"accuracy": {"true": 0.9, "synthetic": synthetic}}
        assert add_verdict({**base, "learning": learning})["verdict"]["level"] == level


def test_one_column_and_empty_tables_make_a_report() -> None:
    single = internal_report(pa.table({"a": [1, 2]}), pa.table({"a": [2]}))
    assert [m["order"] for m in single["marginals"]] == [1]
    empty = table(10, 1).slice(0, 0)
    json.dumps(internal_report(empty, empty), allow_nan=False)
    json.dumps(internal_report(table(10, 1), empty), allow_nan=False)


def test_statement_takes_what_it_knows_and_no_more() -> None:
    with pytest.raises(InputError, match="without privacy facts"):
        statement_of({"rows": 3})
    privacy = {"epsilon": 1.0, "delta": 1e-6, "neighbours": "replace", "unit": "one row", "releases": 2}
    found = statement_of({"privacy": privacy, "sha256": "a", "odd": [1]}, sha256="a")
    assert (found["fits"], found["privacy"]["epsilon"], found["mark"]) == (True, 1.0, "unknown")
    assert "odd" not in found
    assert statement_of({"privacy": {"epsilon": "many"}})["privacy"]["epsilon"] is None


def test_statement_groups_releases() -> None:
    entries = [{"kind": "counts", "what": "1-way marginal", "noise_multiplier": m} for m in (3.0, 5.0)]
    found = statement_of({"privacy": {}}, ledger={"entries": entries})
    assert found["events"] == [
        {"kind": "counts", "what": "1-way marginal", "count": 2, "least_noise": 3.0, "most_noise": 5.0}
    ]
