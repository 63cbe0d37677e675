"""Tables that are drawn block by block keep their constraints as a whole."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.contracts import servers
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.constraints import Constraints, count_violations
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.errors import InputError, SamplingError
from kamino.io import read_table
from kamino.io.atomic import staged
from kamino.io.databases import storing
from kamino.io.databases.row_digest import digest_of_rows
from kamino.io.write import stage_stream
from kamino.pipeline import Synthesizer
from kamino.pipeline.output import block_workers as workers_module
from kamino.pipeline.output import block_world as world_module
from kamino.pipeline.output import in_blocks as blocks_module
from kamino.pipeline.output.block_workers import Workers
from kamino.pipeline.output.block_world import BlockWorld
from kamino.pipeline.output.in_blocks import draw_in_blocks, in_blocks
from kamino.sampling import build_plan
from kamino.sampling.closed_world import Bounds, ClosedWorld, close_world
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.plan.sampling_plan import Step
from kamino.sampling.plan.shapes import order_of
from kamino.sampling.steps.ownership import ownership as ownership_module
from kamino.sampling.world_completion import complete_world
from kamino.schema import Codec, CodedTable, Integer, Key, Schema

RULES = Constraints.parse(TAX_CONSTRAINTS)
ROWS = 3_000


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK_ROWS", 700)
    monkeypatch.setattr(blocks_module, "WHOLE_BLOCKS", 1)


@pytest.fixture(scope="module")
def made() -> Synthesizer:
    return Synthesizer(constraints=RULES, epsilon=4.0, trust_domain=True, seed=1).fit(tax(4_000))


@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz"])
def test_blocks_keep_all_constraints_together(made: Synthesizer, ending: str, tmp_path: Path) -> None:
    assert in_blocks(made.fitted, ROWS)
    written = made.write(tmp_path / f"out.{ending}", ROWS, seed=2)
    table = read_table(written.path)
    assert table.num_rows == written.rows == ROWS
    assert {str(rule): count_violations(table, rule) for rule in RULES} == dict.fromkeys(map(str, RULES), 0)
    assert set(written.violations.values()) == {0}
    # Later blocks are no copies of the first one.
    first = {tuple(row.values()) for row in table.slice(0, 700).to_pylist()}
    later = [tuple(row.values()) for row in table.slice(700).to_pylist()]
    assert np.mean([row in first for row in later]) < 0.2


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_blocks_go_into_a_database(
    made: Synthesizer, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was written is read back in more than one part.
    monkeypatch.setattr(storing, "PART_ROWS", 2_048)
    url = f"duckdb:///{tmp_path / 'out.db'}" if kind == "duckdb" else servers.postgres()
    file = read_table(made.write(tmp_path / "out.parquet", ROWS, seed=2).path)
    written = made.write(f"{url}#blocks", ROWS, seed=2)
    written.certificate_path.rename(tmp_path / "kept.json")
    stored = read_table(url, query="blocks")
    order = [(name, "ascending") for name in file.column_names]
    assert stored.select(file.column_names).cast(file.schema).sort_by(order).equals(file.sort_by(order))
    assert written.sha256 == digest_of_rows(stored)
    assert set(written.violations.values()) == {0}


def test_blocks_are_like_the_whole(made: Synthesizer) -> None:
    """Each column of the blocks is about as far from the private table as one of a table drawn as a whole."""
    private = tax(4_000)
    codes = {name: np.concatenate(each) for name, each in _joined(made).items()}
    drawn = made.fitted.codec.decode(CodedTable(columns=codes, num_rows=ROWS))
    whole = made.sample(ROWS, seed=2)
    for name in ("state", "marital_status", "has_child", "rate", "child_exemp"):
        assert _distance(drawn, private, name) < _distance(whole, private, name) + 0.12, name


def _joined(made: Synthesizer) -> dict[str, list[np.ndarray]]:
    found: dict[str, list[np.ndarray]] = {}
    for block in draw_in_blocks(made.fitted, ROWS, np.random.default_rng(3)):
        for name, codes in block.items():
            found.setdefault(name, []).append(codes)
    return found


def _distance(first: pa.Table, second: pa.Table, name: str) -> float:
    shares = []
    for table in (first, second):
        counts = table.column(name).value_counts().to_pylist()
        shares.append({each["values"]: each["counts"] / table.num_rows for each in counts})
    return sum(abs(shares[0].get(v, 0) - shares[1].get(v, 0)) for v in {*shares[0], *shares[1]}) / 2


def test_blocks_do_not_depend_on_each_other(made: Synthesizer) -> None:
    fitted = made.fitted
    drawn = list(draw_in_blocks(fitted, ROWS, np.random.default_rng(3)))
    assert [len(block["state"]) for block in drawn] == [700, 700, 700, 700, 200]
    root = int(np.random.default_rng(3).integers(2**63))
    world = BlockWorld.of(fitted, fitted.plan_for(ROWS), drawn[0], root)
    for number in (3, 1):
        alone = world.draw(fitted, number, 700, root)
        assert all(np.array_equal(alone[name], drawn[number][name]) for name in alone)


def test_what_binds_all_rows_is_drawn_as_a_whole(made: Synthesizer) -> None:
    assert not in_blocks(made.fitted, 700)
    assert not in_blocks(made.fitted, ROWS, given={"state": "CA"})
    for rule in ("key (zip, salary)", "soft: zip -> city", "not (t1.zip = t2.zip and t1.rate > 5 and t2.rate < 1)"):
        other = Synthesizer(constraints=rule, epsilon=4.0, trust_domain=True, seed=1).fit(tax(300))
        assert not in_blocks(other.fitted, ROWS), rule


def test_drawing_as_a_whole_is_told(made: Synthesizer, tmp_path: Path) -> None:
    assert made.why_whole("out.parquet", ROWS) is None
    assert made.why_whole("out.jsonl", 700) is None, "short tables are drawn as a whole anyway"
    assert "a file that ends in .jsonl is written at once" in str(made.why_whole("out.jsonl", ROWS))
    told = made.why_whole("out.csv", ROWS, given={"state": "CA"})
    assert told is not None
    assert told.startswith("3,000 rows are drawn as a whole, in about 0.0 GiB of memory, not in blocks: rows with a")
    other = Synthesizer(constraints="soft: zip -> city", epsilon=4.0, trust_domain=True, seed=1).fit(tax(300))
    assert "soft: zip -> city binds all rows together" in str(other.why_whole("out.csv", ROWS))
    by_row = Synthesizer(epsilon=4.0, trust_domain=True, sampling="row-by-row", seed=1).fit(tax(300))
    assert "row-by-row sampling goes through all rows" in str(by_row.why_whole("out.csv", ROWS))


def test_the_commands_tell_what_is_drawn_as_a_whole(made: Synthesizer, tmp_path: Path) -> None:
    made.save(tmp_path / "m.kamino")
    run = ["sample", str(tmp_path / "m.kamino"), "-o", str(tmp_path / "o.csv"), "-n", str(ROWS)]
    assert "as a whole" not in CliRunner().invoke(app, run).stderr
    assert "as a whole" in CliRunner().invoke(app, [*run, "--given", "has_child=true"]).stderr
    schema = tmp_path / "s.yaml"
    schema.write_text("attributes:\n  a: {type: integer, min: 0, max: 9999}\n", encoding="utf-8")
    (tmp_path / "r.dc").write_text("key (a)\n", encoding="utf-8")
    planned = CliRunner().invoke(app, ["plan", "-s", str(schema), "-c", str(tmp_path / "r.dc"), "-n", str(ROWS)])
    assert "key (a) binds all rows together" in " ".join(planned.stdout.split())


def test_keys_go_on_from_block_to_block(tmp_path: Path) -> None:
    schema = Schema(attributes={"id": Key(pattern="P{:06d}"), "x": Integer(min=0, max=9)})
    table = pa.table({"id": ["a", "b"] * 200, "x": [1, 2, 3, 4] * 100})
    fitted = Synthesizer(schema, "check (x >= 1)\nkey (id)", seed=1).fit(table)
    assert in_blocks(fitted.fitted, 2_000)
    written = read_table(fitted.write(tmp_path / "out.parquet", 2_000).path)
    assert len(set(written["id"].to_pylist())) == 2_000


def test_a_broken_block_is_not_written(made: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(judge: Judge, plan: object, columns: Any, first: Any) -> ClosedWorld:
        return ClosedWorld(maps={}, bounds={}, rows=columns, whole=first)

    monkeypatch.setattr(world_module, "close_world", empty)
    with pytest.raises(SamplingError, match="nothing was written"):
        made.write(tmp_path / "out.parquet", ROWS, seed=2)
    assert list(tmp_path.iterdir()) == []


def test_bounds_of_blocks_keep_the_order() -> None:
    codec = Codec(
        Schema(attributes={n: Integer(min=0, max=9, nullable=True) for n in ("g", "x", "y")}),
    )
    judge, rng = Judge(codec), np.random.default_rng(8)
    for text in (
        "not (t1.g = t2.g and t1.x > t2.x and t1.y < t2.y)",
        "not (t1.g = t2.g and t1.x > t2.x and t1.y > t2.y)",
        "not (t1.x >= t2.x and t1.y < t2.y)",
    ):
        (rule,) = Constraints.parse(text)
        order = order_of(rule, "y")
        assert order is not None
        for _ in range(200):
            first = _ordered(rng, falling=order.falling, tied=order.ties_equal, grouped=bool(order.groups))
            bounds = Bounds.of(judge, first, order)
            parts = [first]
            for _ in range(2):
                block = {name: rng.integers(0, 11, 30) for name in ("g", "x", "y")}
                codes = bounds.clamp(judge, block, block["y"])
                kept = codes >= 0
                parts.append({name: column[kept] for name, column in {**block, "y": codes}.items()})
            joined = {name: np.concatenate([part[name] for part in parts]) for name in ("g", "x", "y")}
            table = codec.decode(CodedTable(columns=joined, num_rows=len(joined["g"])))
            assert count_violations(table, rule) == 0


def _ordered(rng: np.random.Generator, *, falling: bool, tied: bool, grouped: bool) -> dict[str, np.ndarray]:
    """A few rows that keep an order; 10 is null."""
    rows = int(rng.integers(0, 15))
    g, x = rng.integers(0, 4, rows), rng.integers(0, 11, rows)
    y = rng.integers(0, 10, rows)
    for group in np.unique(g) if grouped else [None]:
        mine = np.flatnonzero((g == group if group is not None else np.ones(rows, bool)) & (x < 10))
        place = mine[np.argsort(x[mine], kind="stable")]
        y[place] = np.sort(y[place])[:: -1 if falling else 1]
        if tied:
            for each in np.unique(x[place]):
                same = place[x[place] == each]
                y[same] = y[same[-1]]
    return {"g": g, "x": x, "y": y}


@pytest.mark.parametrize(
    ("ending", "safe"), [("parquet", False), ("csv", False), ("csv", True), ("csv.gz", True), ("csv.zst", False)]
)
def test_a_staged_stream_reads_back(ending: str, safe: bool, tmp_path: Path) -> None:
    table = tax(500).append_column("text", pa.array(["=1", "a", None, "x,y", '"'] * 100))
    with staged(tmp_path / f"t.{ending}") as file:
        written = stage_stream(iter([table.slice(0, 200), table.slice(200)]), file, spreadsheet_safe=safe)
        assert pa.concat_tables(written.parts()).equals(table)
        assert pa.concat_tables(written.parts(["text", "zip"])).equals(table.select(["text", "zip"]))


@pytest.mark.slow
def test_memory_of_blocks_does_not_grow(made: Synthesizer, tmp_path: Path) -> None:
    """What Python and numpy hold at most; Arrow's own memory is measured by `bench/scale.py`."""

    def peak(rows: int) -> int:
        tracemalloc.start()
        try:
            made.write(tmp_path / "out.parquet", rows, seed=2)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1_500)
    assert peak(9_000) < 1.3 * peak(3_000)


def test_progress_tells_blocks(made: Synthesizer, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    made.write(tmp_path / "out.parquet", ROWS, seed=2, progress=lambda s, d=0, t=1: told.append((s.name, d, t)))
    assert [each for each in told if each[0] == "SAMPLE"][-5:] == [("SAMPLE", i, 5) for i in range(5)]


def test_known_values_are_taken(made: Synthesizer) -> None:
    """Later blocks have the values of the first one on the right sides of dependencies, and no more nulls than it."""
    columns = _joined(made)
    first, later = ({name: parts[i] for name, parts in columns.items()} for i in (0, 1))
    cities = dict(zip(first["zip"].tolist(), first["city"].tolist(), strict=True))
    pairs = zip(later["zip"].tolist(), later["city"].tolist(), strict=True)
    assert all(cities.get(zip_code, city) == city for zip_code, city in pairs)
    assert len(np.unique(later["zip"])) > 0.5 * len(np.unique(first["zip"]))


def test_a_world_knows_all_left_sides(made: Synthesizer) -> None:
    """Later blocks have left sides that the first one lacks, and all blocks together about as many as the whole."""
    columns = _joined(made)
    missing = set(columns["zip"][1].tolist()) - set(columns["zip"][0].tolist())
    assert len(missing) > 10
    whole = len(set(made.sample(ROWS, seed=2).column("zip").to_pylist()))
    assert len({code for part in columns["zip"] for code in part.tolist()}) > 0.8 * whole
    fitted, first = made.fitted, {name: parts[0] for name, parts in columns.items()}
    world = BlockWorld.of(fitted, fitted.plan_for(ROWS), first, 5)
    for (left, _), found in world.world.references.items():
        if left == ("zip",):
            assert found.num_entries == fitted.codec["zip"].num_values


def test_a_completed_world_breaks_nothing(made: Synthesizer) -> None:
    fitted = made.fitted
    first = {name: parts[0] for name, parts in _joined(made).items()}
    plan, judge = fitted.plan_for(ROWS), Judge(fitted.codec)
    completed = complete_world(judge, plan, fitted.model, first, np.random.default_rng(1))
    rows = len(completed["zip"])
    assert rows > len(first["zip"])
    assert all(np.array_equal(codes[: len(first["zip"])], first[name]) for name, codes in completed.items())
    others = {name: np.zeros(rows, dtype=np.int64) for name in first.keys() - completed.keys()}
    table = fitted.codec.decode(CodedTable(columns={**completed, **others}, num_rows=rows))
    assert {count_violations(table, rule) for rule in RULES} == {0}


def test_wide_left_sides_follow_the_world(made: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that are taken as they are drawn keep their owners, and few rows are left to become copies."""
    monkeypatch.setattr(ownership_module, "_MAX_VALUES", 10)
    kept = []
    fit = ClosedWorld.fit

    def counting(self: ClosedWorld, judge: Judge, step: Step, columns: Any, codes: np.ndarray) -> np.ndarray:
        found = fit(self, judge, step, columns, codes)
        if step.attribute == "zip":
            kept.append(np.mean(found[codes >= 0] >= 0))
        return found

    monkeypatch.setattr(ClosedWorld, "fit", counting)
    _joined(made)
    assert len(kept) == 4
    assert min(kept) > 0.99


CYCLES = (
    "a -> b\nb -> a",
    "a -> b\nb -> c\nc -> a",
    "a, b -> c\na, c -> b",
    "w -> a\na -> b\nb -> a",
    "w -> v\nv -> w",
    "w -> a\ncheck (v <= w)",
)


@pytest.mark.parametrize("rules", CYCLES)
def test_cycles_keep_together_in_blocks(rules: str) -> None:
    """Also where the first block has few of very many values, and no row of a later one has a value by itself."""
    number = Integer(min=0, max=8 * 10**13, nullable=True)
    small = {name: Integer(min=0, max=30, nullable=name == "c") for name in "abc"}
    rng = np.random.default_rng(0)
    for seed in range(4):
        a, w = rng.integers(0, 28, 28), rng.integers(0, 8 * 10**13, 28)
        table = pa.table({"a": a, "b": (a + 3) % 28, "c": (a + 5) % 28, "w": w, "v": w})
        schema = Schema(attributes={**small, "w": number, "v": number})
        made = Synthesizer(schema, rules, epsilon=1.0, unit="row", seed=seed).fit(table)
        assert in_blocks(made.fitted, ROWS)
        codes = {name: np.concatenate(each) for name, each in _joined(made).items()}
        drawn = made.fitted.codec.decode(CodedTable(columns=codes, num_rows=ROWS))
        assert {str(rule): count_violations(drawn, rule) for rule in Constraints.parse(rules)} == {
            str(rule): 0 for rule in Constraints.parse(rules)
        }


def test_values_of_the_world_keep_the_checks_of_a_row() -> None:
    """The first row may only have a = 1 beside b = 0, which is below its d; the second takes a = 8."""
    codec = Codec(Schema(attributes={name: Integer(min=0, max=9) for name in "dba"}))
    plan, judge = build_plan(codec, Constraints.parse("a -> b\ncheck (d <= a)"), sequence=["d", "b", "a"]), Judge(codec)
    first = {name: np.array(codes) for name, codes in (("d", [0, 0]), ("b", [0, 1]), ("a", [1, 8]))}
    world = close_world(judge, plan, first, first)
    drawn = {"d": np.array([5, 5]), "b": np.array([0, 1])}
    settled = world.settle(judge, plan.steps[2], drawn, np.array([8, 1]), np.random.default_rng(0))
    assert settled.tolist() == [-1, 8]


def test_workers_draw_the_same_table(made: Synthesizer, tmp_path: Path) -> None:
    written = {
        workers: made.write(tmp_path / f"{workers}.parquet", ROWS, seed=2, workers=workers).sha256
        for workers in (None, 2, 3)
    }
    assert len(set(written.values())) == 1


def test_dask_workers_draw_the_same_table(made: Synthesizer, tmp_path: Path) -> None:
    from distributed import LocalCluster

    alone = made.write(tmp_path / "alone.parquet", ROWS, seed=2).sha256
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        by_dask = made.write(tmp_path / "dask.parquet", ROWS, seed=2, workers=cluster.scheduler_address)
    assert by_dask.sha256 == alone


def test_spark_workers_draw_the_same_table(made: Synthesizer, tmp_path: Path) -> None:
    servers.spark()
    alone = made.write(tmp_path / "alone.parquet", ROWS, seed=2).sha256
    assert made.write(tmp_path / "spark.parquet", ROWS, seed=2, workers="spark://local[2]").sha256 == alone


def test_a_killed_worker_is_told(made: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "_COMMAND", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(SamplingError, match="a worker that draws rows has ended early"):
        made.write(tmp_path / "out.parquet", ROWS, seed=2, workers=2)
    assert list(tmp_path.iterdir()) == []


def test_failures_of_workers_are_passed_on(made: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (
        "from kamino.errors import SamplingError; from kamino.pipeline.output import block_workers as b\n"
        "def draw(self, number): raise SamplingError('no such row')\n"
        "b.BlockDrawer.draw = draw; b.serve()"
    )
    monkeypatch.setattr(workers_module, "_COMMAND", broken)
    with pytest.raises(SamplingError, match="no such row"):
        made.write(tmp_path / "out.parquet", ROWS, seed=2, workers=2)


@pytest.mark.parametrize("given", ["0", "-1", "x", "http://a", True, 10_000])
def test_wrong_workers_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match="found workers"):
        Workers.of(given)
