"""Peers on the tables of an outside judge: times as numbers, one run from end to end, what the page says of them."""

from __future__ import annotations

import doctest
import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from bench.peers import judged, times
from bench.peers.exchange import read_domain
from bench.peers.methods import Method
from bench.peers.times import numbers_of_times, times_of_numbers
from bench.useful import page, peers
from bench.useful.cases import Case, Mode, Record
from bench.useful.peers import Peer, merge_peers, read_peers, verdict

from kamino.io import read_table, write_table

TABLE = pa.table(
    {
        "day": pa.array([date(1969, 12, 30), None, date(2024, 2, 29)], pa.date32()),
        "at": pa.array(
            [datetime(2013, 8, 25, 6, 52, 16), None, datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp("us")
        ),
        "size": [1, 2, 3],
    }
)
# A judge that takes the arguments of a real one and says the same of every table.
JUDGE = """
import json, sys
folder, table, _, target = sys.argv[1:]
figures = {"width": {"1": 0.1, "2": 0.2, "3": 0.3}, "mass": {"1": 0.1, "2": 0.25}, "query": 0.5, "rank": 0.125}
figures |= {"gap": 0.75, "nulls": 0.0, "auc": {"trees": 0.9, "linear": 0.8}}
json.dump({table: figures}, open(target, "w"))
"""
# A peer that gives its table back, unless it is a broken one.
PEER = """
import shutil, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert given["--epsilon"] == "1.0" and given["--rows"] == "3" and open(given["--domain"]).read()
if given["--method"] == "broken":
    sys.exit("no table")
shutil.copyfile(given["--table"], given["--output"])
"""


def peer_record(table: str = "diamonds", part: str = "dpmm AIM", **changes: object) -> Record:
    return replace(Record(case=Case(table=table, mode=Mode.OTHER, part=part)), **changes)  # type: ignore[arg-type]


def test_examples_in_docstrings_hold() -> None:
    for module in (times, peers):
        result = doctest.testmod(module)
        assert result.attempted
        assert not result.failed


def test_times_come_back_from_numbers() -> None:
    numbers = numbers_of_times(TABLE)
    assert numbers.schema.types == [pa.int64()] * 3
    assert numbers.column("day").to_pylist() == [-2, None, 19_782]
    assert times_of_numbers(numbers, TABLE.schema).equals(TABLE)
    # a peer's numbers may come as floats
    floats = numbers.cast(pa.schema([(name, pa.float64()) for name in numbers.column_names]))
    assert times_of_numbers(floats, TABLE.schema).drop(["size"]).equals(TABLE.drop(["size"]))


def test_parts_of_a_second_are_dropped_downwards() -> None:
    at = pa.table({"at": pa.array([datetime(1969, 12, 31, 23, 59, 59, 500_000)], pa.timestamp("us"))})
    assert numbers_of_times(at).column("at").to_pylist() == [-1]


def test_times_that_cannot_be_given_are_refused() -> None:
    zoned = pa.table({"at": pa.array([datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("s", tz="UTC"))})
    with pytest.raises(ValueError, match="times without a zone"):
        numbers_of_times(zoned)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "stays"
    made.mkdir()
    write_table(TABLE, made / "train.csv")
    shutil.copyfile(made / "train.csv", made / "test.csv")
    (made / "judge.json").write_text(json.dumps({"times": ["day", "at"], "gaps": [["day", "at"]], "targets": []}))
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "peer.py").write_text(PEER)
    return made


def test_a_peer_is_run_and_judged_from_end_to_end(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # our interpreter in place of a peer's environment
    monkeypatch.setattr(Method, "script", property(lambda _: tmp_path / "peer.py"))
    monkeypatch.setattr(judged, "python_of", lambda *_: Path(shutil.which("python3") or "python"))
    known = judged.method_named
    monkeypatch.setattr(
        judged, "method_named", lambda name: replace(known(name), key="broken" if name == "dpmm AIM" else "fine")
    )
    figures, store = tmp_path / "figures.json", tmp_path / "store"
    words = [str(folder), "--judge", str(tmp_path / "judge.py"), "--store", str(store), "--figures", str(figures)]
    assert judged.main(words) == 0
    aim, mst = read_peers(figures)
    assert (aim.case.part, aim.problem, dict(aim.metrics)) == ("dpmm AIM", "failed: no table", {})
    assert (mst.case.part, mst.problem, mst.case.mode) == ("dpmm MST", "", Mode.OTHER)
    assert (mst.metrics["mass 2"], mst.metrics["gap"], mst.cpu is not None) == (0.25, 0.75, True)
    # the peer saw numbers, the judge dates
    domain = read_domain((store / "tables" / "stays.json").read_text())
    assert [(column.kind, column.nullable) for column in domain[:2]] == [("integer", True)] * 2
    assert read_table(store / "made" / "stays" / "dpmm-MST-0.csv").equals(TABLE)
    # a run that is there is not made again
    (tmp_path / "peer.py").write_text("raise SystemExit('again')")
    assert judged.main([*words, "--methods", "dpmm MST"]) == 0
    assert [each.problem for each in read_peers(figures)] == ["failed: no table", ""]
    assert "dpmm MST" in capsys.readouterr().out


def test_figures_of_peers_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    assert read_peers(path) == []
    merge_peers([peer_record(problem="slow"), peer_record("compas", metrics={"rank": 0.12345678})], path)
    merge_peers([peer_record(metrics={"rank": 0.5, "gap": None}, cpu=1.26)], path)
    compas, diamonds = read_peers(path)
    assert compas.metrics == {"rank": 0.123457}
    assert (diamonds.problem, diamonds.metrics, diamonds.cpu) == ("", {"rank": 0.5, "gap": None}, 1.3)


def test_kept_figures_are_of_known_metrics() -> None:
    for found in read_peers():
        assert set(found.metrics) <= set(page.METRICS)
        assert bool(found.metrics) != bool(found.problem)
        assert found.case.mode is Mode.OTHER


def test_a_peer_is_better_only_at_the_digits_shown() -> None:
    ours = {"rank": 0.02001, "auc trees": 0.9001}
    assert "AIM is as good in rank, auc trees, of 2" in verdict(
        ours, Peer(who="AIM", figures={"rank": 0.02004, "auc trees": 0.9004, "nulls": 0.0})
    )
    # of areas, larger is better
    found = verdict(ours, Peer(who="AIM", figures={"rank": 0.0199, "auc trees": 0.902}))
    assert found == "**AIM is better in rank (0.0199, ours 0.0200), auc trees (0.902, ours 0.900)**, of 2 columns"
    worse = verdict(ours, Peer(who="AIM", figures={"rank": 0.03, "auc trees": 0.8}))
    assert worse == "ours is better than AIM in all of 2 columns"
    assert verdict(ours, Peer(who="AIM", figures={}, problem="slow")) == "AIM made no table (slow)"


def test_the_page_shows_peers_and_where_they_are_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = [
        peer_record(metrics={"width 2": 0.05, "gap": 0.01}, cpu=321.0),
        peer_record("salary", problem="stopped at the limit of 900 CPU s"),
    ]
    monkeypatch.setattr(page, "read_peers", lambda: measured)
    runs = [
        Record(case=Case(table="diamonds", run=run), metrics={"width 2": 0.02, "gap": gap})
        for run, gap in ((1, 0.02), (2, 0.04))
    ]
    runs += [Record(case=Case(table=name), metrics={"width 2": 0.03}) for name in ("salary", "nltcs")]
    page.write_page(runs, tmp_path / "page.md", command="x")
    text = (tmp_path / "page.md").read_text()
    assert "| diamonds | dpmm AIM (one run, 321 CPU s) | 0.0500 | 0.010 |" in text
    assert "| salary | dpmm AIM (stopped at the limit of 900 CPU s) |  |  |" in text
    # the mean of ours, 0.03, is what a peer is held against
    google = "ours is better than MST of google/dpsynth in all of 2 columns"
    assert (
        f"- diamonds: {google}; **dpmm AIM is better in gap (0.010, ours 0.030)**, of 2 columns; not run: dpmm MST."
        in text
    )
    stopped = "dpmm AIM made no table (stopped at the limit of 900 CPU s)"
    assert f"- salary: {stopped}; not run: MST of google/dpsynth, dpmm MST." in text
    assert "- nltcs: not run: MST of google/dpsynth, dpmm MST, dpmm AIM." in text


def test_whole_tables_of_peers_say_nothing_about_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "read_peers", lambda: [peer_record(metrics={"width 2": 0.05})])
    few = Record(case=Case(table="diamonds", rows=100), metrics={"width 2": 0.1})
    page.write_page([few], tmp_path / "page.md", command="x")
    assert "AIM" not in (tmp_path / "page.md").read_text()
