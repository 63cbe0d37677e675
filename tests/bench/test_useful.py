"""The measurement of usefulness: the figures it computes itself, and one run from end to end on a small folder."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from bench.useful import __main__ as program
from bench.useful import cases, judging, switches
from bench.useful.cases import Case, Mode, Record, Store
from bench.useful.folders import find_source, parity_source
from bench.useful.judging import figures_of, right_values
from bench.useful.page import ratio, write_page
from bench.useful.printed import PRINTED, WANTED
from bench.useful.switches import ABLATION, change, parse_changes, switched

from kamino.constraints import Constraints
from kamino.model.marginal import marginal_schedule as planning
from kamino.model.marginal.marginal_schedule import MarginalSettings

# A judge that takes the arguments of a real one and says the same of every table.
JUDGE = """
import json, sys
folder, table, _, target = sys.argv[1:]
assert open(folder + "/train.csv").readline() == open(table).readline().replace('"', "")
figures = {"width": {"1": 0.1, "2": 0.2, "3": 0.3}, "mass": {"1": 0.1, "2": 0.25}, "query": 0.5, "rank": 0.125}
figures |= {"gap": 0.75, "nulls": 0.0, "auc": {"trees": 0.9, "linear": float("nan")}}
json.dump({table: figures}, open(target, "w"))
"""


@pytest.mark.parametrize("module", [cases, judging, switches, program])
def test_examples_in_docstrings_hold(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


def record(mode: Mode = Mode.KEPT, **figures: float | None) -> Record:
    metrics = {name.replace("_", " "): value for name, value in figures.items()}
    return Record(case=Case(table="t", mode=mode), metrics=metrics)


def test_a_value_is_right_if_the_true_table_gives_it() -> None:
    rules = Constraints.parse("a, b -> c\na -> d\ncheck (a >= 0)")
    true = pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"], "c": [10, 20, None], "d": ["p", "p", "q"]})
    # right; wrong; an unknown determinant; a null that is right; no determinant
    made = pa.table(
        {"a": [1, 1, 2, 2, None], "b": ["x", "y", "y", "x", "x"], "c": [10, 10, 20, None, 10], "d": list("pqqqp")}
    )
    assert right_values(true, made, rules) == {"a, b -> c": 0.5, "a -> d": 0.75}
    assert right_values(true, made.slice(0, 0), rules) == {"a, b -> c": 0.0, "a -> d": 0.0}


def test_cost_is_above_one_where_constraints_make_it_worse() -> None:
    kept, ignored = [record(rank=0.06, auc_trees=0.8)], [record(Mode.IGNORED, rank=0.05, auc_trees=0.9, gap=0.0)]
    assert ratio(kept, ignored, "rank") == pytest.approx(1.2)
    assert ratio(kept, ignored, "auc trees") == pytest.approx(1.125)
    assert ratio(kept, ignored, "gap") is None
    assert ratio([record(gap=0.0)], ignored, "gap") == 1
    assert ratio([record(gap=0.1)], ignored, "gap") is None


def test_judges_figures_that_are_not_numbers_are_none() -> None:
    found = {"width": dict.fromkeys("123", 0.5), "mass": dict.fromkeys("12", 0.5), "query": 1, "rank": 0, "gap": 0}
    figures = figures_of({**found, "nulls": 0, "auc": {"trees": float("nan"), "linear": 0.7}})
    assert (figures["auc trees"], figures["auc linear"], figures["width 3"]) == (None, 0.7, 0.5)


def test_switches_change_settings_that_exist() -> None:
    for switch in ABLATION:
        assert change(MarginalSettings(), parse_changes(switch.changes)) != MarginalSettings()
    with pytest.raises(ValueError, match=r"no setting 'prats'; expected one of .*parts"):
        change(MarginalSettings(), {"prats": 3})
    with pytest.raises(ValueError, match="where settings with fields"):
        change(MarginalSettings(), {"parts.most": 3})


def test_switched_settings_are_those_of_a_fit_and_go_back() -> None:
    with switched(["parts=5"]):
        assert planning.MarginalSettings().parts == 5
    assert planning.MarginalSettings is MarginalSettings
    with pytest.raises(RuntimeError, match="parts=5 changed nothing"), switched(["parts=5"]):
        pass


def test_parity_shows_in_all_bits_together_only(tmp_path: Path) -> None:
    source = parity_source(3, rows=4000, work=tmp_path)
    bits = np.array([source.table.column(name).to_numpy() for name in source.parity])
    assert (bits[:-1].sum(axis=0) % 2 == bits[-1]).all()
    off = np.abs(np.corrcoef(bits)[np.triu_indices(4, 1)])
    # six correlations of 4,000 rows: beyond 0.08 once in about 10 million tables, and the seed is fixed
    assert off.max() < 0.08
    assert judging.right_parity(source.table, source.parity) == 1


def test_printed_and_wanted_figures_are_of_known_metrics() -> None:
    known = set(judging.METRICS)
    assert all(set(row.figures) <= known for rows in PRINTED.values() for row in rows)
    assert all(set(bounds) <= known for bounds in WANTED.values())


def test_missed_bounds_and_failures_are_told(tmp_path: Path) -> None:
    bad = Record(case=Case(table="nltcs"), metrics={"width 2": 0.004, "width 3": 0.007})
    failed = Record(case=Case(table="nltcs", run=2), problem="RuntimeError: no")
    write_page([bad, failed], tmp_path / "page.md", command="x")
    page = (tmp_path / "page.md").read_text()
    assert "≤ 0.003, **missed** | ≤ 0.0075 |" in page
    assert "Kamino 0.1 | 0.003 | 0.009 |" in page
    assert "nltcs, epsilon 1, constraint-aware, default, run 2: RuntimeError: no" in page


def test_store_keeps_records_and_runs_failures_again(tmp_path: Path) -> None:
    store, case = Store(tmp_path), Case(table="a", epsilon=float("inf"), changes=("parts=8",), part="8 bins")
    found = Record(case=case, metrics={"rank": 0.5, "gap": None}, right={"x -> y": 1.0}, violations=0, cpu=1.5)
    store.add(found)
    assert Store(tmp_path).find(case) == found
    assert Store(tmp_path).find(Case(table="a", epsilon=float("inf"))) is None
    store.add(Record(case=case, problem="no"))
    assert Store(tmp_path).find(case) is None
    assert [each.problem for each in Store(tmp_path).of([case])] == ["no"]


def test_two_programs_share_a_store(tmp_path: Path) -> None:
    """Neither takes away what the other has written since it began."""
    stores = Store(tmp_path), Store(tmp_path)
    cases = Case(table="a", epsilon=1.0), Case(table="b", epsilon=1.0)
    for store, case in zip(stores, cases, strict=True):
        store.add(Record(case=case, metrics={"width 1": 0.5}))
    assert [each.case for each in Store(tmp_path).of(cases)] == list(cases)


def write_folder(folder: Path) -> None:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, 200)
    table = pa.table(
        {"age": age, "group": np.where(age < 40, "young", "old"), "pay": age * 10 + rng.integers(0, 50, 200)}
    )
    folder.mkdir()
    options = pyarrow.csv.WriteOptions(quoting_style="none")
    pyarrow.csv.write_csv(table.slice(0, 150), folder / "train.csv", options)
    pyarrow.csv.write_csv(table.slice(150), folder / "test.csv", options)
    (folder / f"{folder.name}.dc").write_text("age -> group\ncheck (age <= pay)\n")
    (folder / "judge.json").write_text(json.dumps({"gaps": [["age", "pay"]], "targets": []}))


def test_a_folder_is_measured_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder(tmp_path / "little")
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "made" / "AIM").mkdir(parents=True)
    (tmp_path / "made" / "AIM" / "little.csv").write_bytes((tmp_path / "little" / "train.csv").read_bytes())
    words = [str(tmp_path / "little"), "--judge", str(tmp_path / "judge.py"), "--rows", "120", "--runs", "1"]
    words += ["--change", "parts=4", "--others", str(tmp_path / "made"), "--store", str(tmp_path / "store")]
    assert program.main([*words, "--write", str(tmp_path / "useful.md")]) == 0
    shown = capsys.readouterr()
    assert "[4/4] little, epsilon 1, other, AIM, 120 rows, run 1" in shown.err
    records = {
        (r["case"]["mode"], r["case"]["part"]): r for r in json.loads((tmp_path / "store/results.json").read_text())
    }
    assert [r["problem"] for r in records.values()] == [""] * 4
    kept = records["constraint-aware", "default"]
    assert (kept["metrics"]["mass 2"], kept["metrics"]["auc linear"]) == (0.25, None)
    # no column has nulls: the judge's 0 says nothing
    assert "nulls" not in kept["metrics"]
    assert (kept["violations"], kept["cpu"] > 0) == (0, True)
    assert records["other", "AIM"]["right"]["age -> group"] > 0.9
    page = (tmp_path / "useful.md").read_text()
    assert "A quick look, at 120 rows" in page
    assert "| little | AIM | 0.1000 | 0.2000 | 0.3000 | 0.1000 | 0.2500 | 0.500 | 0.1250 | 0.750 | 0.900 |" in page
    assert "`age -> group`" in page
    assert "| little | changed |" in page
    assert str(tmp_path) not in page
    program.main(words)
    assert capsys.readouterr().err.count("(stored)") == 4


def test_folders_of_the_paper_are_judged_by_our_functions(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    pyarrow.csv.write_csv(pa.table({"a": [1, 2, 3] * 20, "b": ["x", "y", "x"] * 20}), tmp_path / "mine" / "mine.csv")
    (tmp_path / "mine" / "mine.ic").write_text("t1&t2&EQ(t1.a,t2.a)&IQ(t1.b,t2.b)\n")
    source = find_source(tmp_path / "mine", rows=None, work=tmp_path)
    found = judging.judge(Record(case=Case(table="mine")), source, source.path, script=tmp_path / "no such judge")
    # one ordered column has no rank correlation
    assert found.metrics == {"width 1": 0, "width 2": 0, "width 3": 0, "mass 1": 0, "mass 2": 0}
    assert (list(found.right.values()), found.violations) == ([1.0], 0)
    with pytest.raises(FileNotFoundError, match=r"found no nowhere.csv"):
        find_source(tmp_path / "nowhere", rows=None, work=tmp_path)
