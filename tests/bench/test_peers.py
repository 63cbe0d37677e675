"""The comparison with peers: what they are given, how they are run, what becomes of their results."""

from __future__ import annotations

import resource
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bench.peers import run
from bench.peers.domain import describe, domain_text
from bench.peers.dp_vae.encoding import decode, digits_of, encode
from bench.peers.exchange import Column, in_domain, read_domain, read_frame
from bench.peers.judge import TRUTH, judge
from bench.peers.methods import METHODS, OURS, method_named
from bench.peers.page import learning, results, violations, write_page
from bench.peers.process import Limits, last_line, run_limited
from bench.peers.records import Record, Store
from bench.peers.verdict import verdicts

from kamino.constraints import Constraints
from kamino.schema import draft_schema

TABLE = pa.table(
    {
        "city": ["B", "A", None, "A"],
        "age": [3, 5, 4, 4],
        "rate": [0.5, 2.25, 1.0, 1.5],
    }
)
PEER = "SmartNoise MST"
ROOMY = Limits(cpu=60.0, memory=8.0)


def record(**changes: object) -> Record:
    return replace(Record(table="t", method=PEER, run=0, epsilon=1.0, delta=1e-6), **changes)  # type: ignore[arg-type]


def test_the_domain_is_that_of_the_schema() -> None:
    city, age, rate = describe(draft_schema(TABLE, trust_domain=True))
    assert city == Column(name="city", kind="category", nullable=True, values=("A", "B"))
    assert age == Column(name="age", kind="integer", nullable=False, lower=3.0, upper=5.0)
    assert (rate.kind, rate.lower, rate.upper, rate.decimals) == ("real", 0.5, 2.25, 2)
    assert (city.width, age.width, rate.width) == (2, 3, float("inf"))


def test_the_domain_survives_its_file() -> None:
    schema = draft_schema(TABLE, trust_domain=True)
    assert read_domain(domain_text(schema)) == describe(schema)


def test_an_attribute_that_peers_cannot_be_given_is_refused() -> None:
    schema = draft_schema(pa.table({"day": pa.array([0, 1], pa.date32())}), trust_domain=True)
    with pytest.raises(ValueError, match="day, a date attribute"):
        describe(schema)


def test_texts_that_look_like_nulls_stay_texts(tmp_path: Path) -> None:
    columns = (Column(name="state", kind="category", nullable=True, values=("NA", "NY")),)
    (tmp_path / "t.csv").write_text('state,other\nNA,1\n"",2\n')
    frame = read_frame(tmp_path / "t.csv", columns)
    assert frame["state"][0] == "NA"
    assert pd.isna(frame["state"][1])


def test_numbers_are_brought_into_their_domain() -> None:
    columns = describe(draft_schema(TABLE, trust_domain=True))
    made = in_domain(pd.DataFrame({"city": ["A"] * 2, "age": [4.6, 9.0], "rate": [1.2345, -1.0]}), columns)
    assert made["age"].tolist() == [5, 5]
    assert made["rate"].tolist() == [1.23, 0.5]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (Column(name="c", kind="category", nullable=True, values=("x", "y")), ["y", None, "x"]),
        (Column(name="c", kind="category", nullable=False, values=tuple(map(str, range(2000)))), ["1999", "0", "77"]),
        (Column(name="c", kind="integer", nullable=False, lower=-2, upper=5), [-2, 5, 0]),
        (Column(name="c", kind="integer", nullable=True, lower=0, upper=1), [None, 1, 0]),
    ],
)
def test_digits_say_the_value(column: Column, values: list[object]) -> None:
    digits = digits_of(column)
    parts = encode(pd.Series(values), digits)
    assert all((part < size).all() and (part >= 0).all() for part, size in zip(parts, digits.sizes, strict=True))
    back = decode(parts, digits, np.random.default_rng(0))
    assert [None if pd.isna(value) else value for value in back] == values


def test_digits_say_the_bin() -> None:
    column = Column(name="c", kind="real", nullable=True, lower=0.0, upper=32.0)
    digits = digits_of(column)
    back = decode(encode(pd.Series([0.0, 31.9, 32.0, None]), digits), digits, np.random.default_rng(0))
    assert [int(value) for value in back[:3]] == [0, 31, 31]
    assert pd.isna(back[3])


def test_a_process_is_measured(tmp_path: Path) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(6_000_000))'], check=True)"
    ended = run_limited([sys.executable, "-c", code], {}, ROOMY, tmp_path / "log")
    assert ended.problem == ""
    assert ended.cpu > 0.05, "children count"
    # A child begins as a copy of this process, and its peak counts from then on.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    assert 0.001 < ended.memory < 1.0 + own


def test_a_process_that_crashes_says_how(tmp_path: Path) -> None:
    ended = run_limited([sys.executable, "-c", "raise ValueError('boom')"], {}, ROOMY, tmp_path / "log")
    assert ended.problem == "failed: ValueError: boom"
    assert not ended.passed_limit


@pytest.mark.parametrize(
    ("code", "limits", "words"),
    [
        ("while True: pass", Limits(cpu=0.3, memory=8.0), "0 CPU s"),
        ("import time; a = bytearray(300 * 2**20); time.sleep(60)", Limits(cpu=60.0, memory=0.2), "0.2 GiB"),
    ],
)
def test_a_process_is_stopped_at_its_limit(tmp_path: Path, code: str, limits: Limits, words: str) -> None:
    ended = run_limited([sys.executable, "-c", code], {}, limits, tmp_path / "log")
    assert ended.passed_limit
    assert ended.problem == f"stopped at the limit of {words}"


def test_the_last_line_names_no_folder(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("first\ncannot open /home/someone/table.csv now\n\n")
    assert last_line(tmp_path / "log") == "cannot open table.csv now"


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> run.Inputs:
    rules = Constraints.parse("city -> age")
    monkeypatch.setattr(run, "python_of", lambda method, store: Path(sys.executable))
    monkeypatch.setattr(run, "read", lambda data, name: (TABLE, rules))
    return run.prepare(None, "t", tmp_path)


def test_a_peer_that_crashes_becomes_a_row(inputs: run.Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "command_of", lambda *_: [sys.executable, "-c", "raise MemoryError('too wide')"])
    made = run.measure(method_named(PEER), inputs, record(), tmp_path, ROOMY)
    row = next(row for row in results([made]).rows if row[0] == PEER)
    assert row[1] == "0"
    assert row[-1] == "failed: MemoryError: too wide"


def test_a_peer_that_cannot_be_installed_becomes_a_row(
    inputs: run.Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(method: object, store: Path) -> Path:
        raise RuntimeError("not installed: no such version")

    monkeypatch.setattr(run, "python_of", refuse)
    assert run.measure(method_named(PEER), inputs, record(), tmp_path, ROOMY).problem.startswith("not installed")


def test_a_peer_that_copies_the_table_is_judged_perfect(
    inputs: run.Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = run.output_of(record(), tmp_path)
    code = f"import shutil; shutil.copy({str(inputs.csv)!r}, {str(output)!r})"
    monkeypatch.setattr(run, "command_of", lambda *_: [sys.executable, "-c", code])
    made = run.measure(method_named(PEER), inputs, record(), tmp_path, ROOMY)
    assert (made.problem, made.one, made.one_max, made.two) == ("", 0.0, 0.0, 0.0)
    # the two rows of city A differ in age: one pair of six
    assert made.hard_pairs == 1
    assert made.violations == {"city -> age": pytest.approx(100 / 6)}


def test_too_few_rows_are_a_problem(inputs: run.Inputs, tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("city,age,rate\nA,3,0.5\n")
    assert judge(record(), TABLE, inputs.rules, tmp_path / "short.csv").problem == "failed: made 1 of 4 rows"
    assert "cannot be read" in judge(record(), TABLE, inputs.rules, tmp_path / "none.csv").problem


def test_commands_give_all_the_same(inputs: run.Inputs, tmp_path: Path) -> None:
    for method in METHODS:
        command = run.command_of(method, Path("bin/python"), inputs, record(method=method.name), tmp_path / "o.csv")
        assert "--epsilon 1.0 --delta 1e-06 --rows 4" in " ".join(command)
        assert (str(inputs.constraints) in command) == method.is_ours, "peers take no constraints"
        assert method.is_ours or (method.script.exists() and method.requirements.exists())


def test_runs_are_resumed(inputs: run.Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def fake(method: object, given: object, blank: Record, store: Path, limits: Limits) -> Record:
        calls.append(f"{blank.method} {blank.run}")
        return (
            replace(blank, problem="stopped", limit=limits.cpu)
            if blank.method == PEER
            else replace(blank, two=0.1, cpu=12.0)
        )

    monkeypatch.setattr(run, "measure", fake)
    given = ["--tables", "t", "--methods", OURS, PEER, "--store", str(tmp_path), "--no-learning"]
    given += ["--docs", str(tmp_path / "docs")]
    run.main([*given, "--limit", "10"])
    assert calls == [f"{OURS} 0", f"{OURS} 1", f"{OURS} 2", f"{PEER} 0"]
    run.main([*given, "--limit", "10"])
    assert len(calls) == 4
    run.main([*given, "--limit", "20"])
    assert calls[4:] == [f"{PEER} 0"], "a higher limit is worth another try"
    run.main([*given, "--limit", "20", "--runs", "1", "--again", OURS])
    assert calls[5:] == [f"{OURS} 0"]
    assert (tmp_path / "docs" / "peers.md").exists()


def test_the_last_record_of_a_run_counts(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.jsonl")
    for accuracy in (None, 0.5):
        store.add(record(two=0.1, accuracy=accuracy))
    assert [found.accuracy for found in store.records().values()] == [0.5]


RECORDS = [
    *(
        record(method=OURS, run=i, cpu=10.0 + i, memory=0.5, one=0.01, one_max=0.02, two=0.03, hard_pairs=0)
        for i in range(3)
    ),
    record(cpu=5.0, memory=1.0, one=0.02, one_max=0.03, two=0.05, hard_pairs=7, violations={"a -> b": 0.7}),
    record(method="dpmm AIM", cpu=600.0, problem="stopped at the limit of 600 CPU s", limit=600.0),
]


def test_results_have_a_row_for_every_method() -> None:
    rows = {row[0]: row for row in results(RECORDS).rows}
    assert list(rows) == [method.name for method in METHODS]
    assert rows[OURS][1:8] == (
        "3",
        "0.0100 ± 0.0000",
        "0.0200 ± 0.0000",
        "0.0300 ± 0.0000",
        "0",
        "11 ± 1",
        "0.50 ± 0.00",
    )
    assert rows[PEER][5:7] == ("7", "5")
    assert rows["dpmm AIM"][-1] == "stopped at the limit of 600 CPU s"
    assert rows["dpmm MST"][-1] == "not run"
    assert violations(RECORDS).rows == ((PEER, "0.700"),)


def test_the_verdict_says_where_ours_is_behind() -> None:
    two, cpu, clean, learned, missing = verdicts(RECORDS)
    assert two.endswith("(1 comparisons): below each.")
    assert cpu.endswith(f"not below {PEER} on t.")
    assert "ours 0 in all runs; of 1 tables of peers, 1 have some" in clean
    assert learned == "Models trained: not run."
    assert missing == "No table on t: dpmm AIM (stopped at the limit of 600 CPU s)."


def test_the_verdict_on_training_compares_with_the_truth() -> None:
    scored = [record(method=name, accuracy=a, f1=a) for name, a in ((TRUTH, 0.88), (OURS, 0.87), (PEER, 0.85))]
    assert "ours 0.8700, 0.0100 below the truth's 0.8800; above each of 1 peers" in verdicts(scored)[3]
    assert "not above SmartNoise MST" in verdicts([*scored[:2], replace(scored[2], accuracy=0.9)])[3]
    assert "| truth | 0.8800 | 0.8800 |" in learning(scored)
    assert "| dpmm AIM | not run | not run |" in learning(scored)


def test_the_page_shows_tables_and_plots(tmp_path: Path) -> None:
    write_page(RECORDS, tmp_path, limit=600.0)
    page = (tmp_path / "peers.md").read_text()
    for name in ("two-way", "cpu"):
        assert f"(peers-{name}.svg)" in page
        assert (tmp_path / f"peers-{name}.svg").read_text().startswith("<svg")
    assert "make bench-peers DATA=FOLDER" in page
    assert "(epsilon, delta) = (1, 1e-06)" in page
