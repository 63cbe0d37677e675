"""What every engine must do: the same counts, the same releases and, with the same noise, the same model to the bit."""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from tests.contracts import servers

from kamino.constraints import Constraints
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.engine import MemoryMeasurer, StreamedMeasurer, encode, keep_rows
from kamino.engine import rates as rates_module
from kamino.engine.block_counts import count_candidates
from kamino.engine.packed_codes import PackedCodes
from kamino.engine.sealed_tables import trusted_schema
from kamino.engine.streamed import EncodedParts
from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.streams import cutting
from kamino.io.streams.csv_parts import CsvParts
from kamino.io.streams.duckdb_parts import DuckdbParts
from kamino.io.streams.parquet_parts import ParquetParts
from kamino.io.streams.postgres_parts import PostgresParts
from kamino.io.streams.spark_parts import SparkParts
from kamino.model.protocol import Candidate, CodeMap
from kamino.pipeline import Engine, Settings, Synthesizer
from kamino.pipeline.fitting import fit, open_gate
from kamino.pipeline.plan.bound_schema import schema_types
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit, SeededNoise
from kamino.privacy import unit as unit_module
from kamino.privacy.private import PrivateCodes, PrivateTable, open_codes, open_table  # noqa: TID251
from kamino.schema import Categorical, Codec, Date, Integer, Real, Schema, draft_schema
from kamino.schema.coding.differences import Difference

ROWS, PART_ROWS = 500, 130
# Tables that are still read cannot be replaced, so that each has a name of its own.
NUMBERS = itertools.count()
RULES = Constraints.parse("city -> zone\nsoft: check (age >= 30)")
SOFT = Constraints.parse(
    "soft: who, city -> age\nsoft: zone -> city\nsoft: check (age >= 30)\n"
    "soft: not (t1.pay > t2.pay and t1.age < t2.age)\n"
    "soft: not (t1.city = t2.city and t1.start < t2.start and t1.end > t2.end)"
)
SCHEMA = Schema(
    attributes={
        "who": Integer(min=0, max=299),
        "city": Categorical(values=["Rome", "Oslo", "Bern"], nullable=True),
        "zone": Categorical(values=["N", "S"], nullable=True),
        "age": Integer(min=15, max=90, nullable=True),
        "pay": Real(min=0, max=100, decimals=1, nullable=True),
        "start": Date(min=dt.date(2020, 1, 1), max=dt.date(2021, 12, 31), nullable=True),
        "end": Date(min=dt.date(2020, 1, 1), max=dt.date(2021, 12, 31), nullable=True),
    }
)


def mixed_table(rows: int = ROWS) -> pa.Table:
    """Nulls, dates that lie close together, and a unit with several rows."""
    rng = np.random.default_rng(5)
    city, age = rng.choice(3, rows), rng.integers(18, 90, rows)
    start = rng.integers(0, 600, rows)
    end = start + rng.integers(0, 20, rows)
    day = [dt.date(2020, 1, 1) + dt.timedelta(days=d) for d in range(640)]
    return pa.table(
        {
            "who": rng.integers(0, 300, rows),
            "city": pa.array(np.array(["Rome", "Oslo", "Bern"])[city], mask=rng.random(rows) < 0.1),
            "zone": np.array(["S", "N", "N"])[city],
            "age": pa.array(age, mask=rng.random(rows) < 0.05),
            "pay": pa.array(np.round(age + rng.normal(0, 3, rows), 1), mask=rng.random(rows) < 0.05),
            "start": pa.array([day[d] for d in start], mask=rng.random(rows) < 0.05),
            "end": [day[d] for d in end],
        }
    )


def built_in_table(rows: int = 600) -> pa.Table:
    """The built-in table with nulls, two dates that lie close together, and persons with several rows."""
    rng, plain = np.random.default_rng(6), tax(rows)
    holes = {
        name: pa.array(plain.column(name).to_pylist(), plain.schema.field(name).type, mask=rng.random(rows) < 0.07)
        for name in ("marital_status", "has_child", "salary", "rate")
    }
    filed = np.datetime64("2023-01-01") + rng.integers(0, 300, rows)
    paid = filed + rng.integers(0, 30, rows)
    return pa.table(
        {
            "person": rng.integers(0, rows // 2, rows),
            **{name: holes.get(name, plain.column(name)) for name in plain.column_names},
            "filed": pa.array(filed, pa.date32()),
            "paid": pa.array(paid, pa.date32(), mask=rng.random(rows) < 0.05),
        }
    )


def parquet_file(table: pa.Table, folder: Path) -> ParquetParts:
    pq.write_table(table, folder / "t.parquet", row_group_size=97)
    return ParquetParts([folder / "t.parquet"], private=True, part_rows=PART_ROWS)


def parquet_files(table: pa.Table, folder: Path) -> ParquetParts:
    paths = []
    for number, start in enumerate(range(0, max(1, table.num_rows), 310)):
        paths.append(folder / f"part-{number}.parquet")
        pq.write_table(table.slice(start, 310), paths[-1], row_group_size=64)
    return ParquetParts(paths, private=True, part_rows=PART_ROWS)


def duckdb_file(table: pa.Table, folder: Path) -> Path:
    path = folder / "t.db"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return path


def duckdb_table(table: pa.Table, folder: Path) -> DuckdbParts:
    path = duckdb_file(table, folder)
    return DuckdbParts(path, "SELECT * FROM t", is_table=True, private=True, part_rows=PART_ROWS)


def duckdb_query(table: pa.Table, folder: Path) -> DuckdbParts:
    path = duckdb_file(table, folder)
    statement = 'SELECT * FROM t ORDER BY "pay", "end" DESC'
    return DuckdbParts(path, statement, is_table=False, private=True, part_rows=PART_ROWS)


def write_csv(table: pa.Table, path: Path) -> None:
    """In one chunk: up to version 20 at least, pyarrow writes the header again after a chunk without rows."""
    csv.write_csv(table.combine_chunks(), path)


def csv_file(table: pa.Table, folder: Path) -> CsvParts:
    write_csv(table, folder / "t.csv")
    return CsvParts(folder / "t.csv", part_rows=PART_ROWS)


def csv_gz(table: pa.Table, folder: Path) -> CsvParts:
    write_csv(table, folder / "t.csv")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    return CsvParts(folder / "t.csv.gz", part_rows=PART_ROWS)


def csv_zst(table: pa.Table, folder: Path) -> CsvParts:
    write_csv(table, folder / "t.csv")
    (folder / "t.csv.zst").write_bytes(pa.Codec("zstd").compress((folder / "t.csv").read_bytes(), asbytes=True))
    return CsvParts(folder / "t.csv.zst", part_rows=PART_ROWS)


def postgres_table(table: pa.Table, folder: Path) -> PostgresParts:
    url, name = servers.postgres(), f"t{next(NUMBERS)}"
    servers.fill_postgres(url, table, name)
    return PostgresParts(url, f"SELECT * FROM {name}", table=name, private=True, part_rows=PART_ROWS)


def postgres_view(table: pa.Table, folder: Path) -> PostgresParts:
    url, number = servers.postgres(), next(NUMBERS)
    servers.fill_postgres(url, table, f"below{number}")
    servers.run_in_postgres(url, f"CREATE VIEW seen{number} AS SELECT * FROM below{number}")
    name = f"seen{number}"
    found = PostgresParts(url, f"SELECT * FROM {name}", table=name, private=True, part_rows=PART_ROWS)
    assert not found.is_ordered
    return found


def spark_frame(table: pa.Table, folder: Path) -> SparkParts:
    pq.write_table(table, folder / "spark.parquet", row_group_size=97)
    session = servers.spark()
    frame = session.read.schema(servers.spark_schema(table)).parquet(str(folder / "spark.parquet"))
    return SparkParts(frame.repartition(3), private=True, part_rows=PART_ROWS)


BUILT_IN_RULES = Constraints.parse(f"{TAX_CONSTRAINTS}\ncheck (filed <= paid)\nsoft: state, has_child -> rate")
BUILT_IN_SCHEMA = draft_schema(built_in_table(), trust_domain=True)
TYPED: dict[str, Callable[[pa.Table, Path], Any]] = {
    each.__name__: each
    for each in (
        parquet_file,
        parquet_files,
        duckdb_table,
        duckdb_query,
        postgres_table,
        postgres_view,
        spark_frame,
    )
}
TEXT: dict[str, Callable[[pa.Table, Path], Any]] = {each.__name__: each for each in (csv_file, csv_gz, csv_zst)}
ORDERED = {**TYPED, **TEXT}
for unordered in ("duckdb_query", "postgres_view"):
    del ORDERED[unordered]


def as_text(table: pa.Table) -> pa.Table:
    """The table as a CSV file gives it: empty cells are null."""
    return pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})


def everything(table: pa.Table | Any, schema: Schema | None, *, gate: Gate | None = None, **given: Any) -> Any:
    """All that a run lets out: the model file and the ledger."""
    untyped, rules = given.pop("untyped", False), given.pop("rules", RULES)
    settings = Settings(**{"seed": 3, "epsilon": 4.0, "anyway": True, **given})
    private = PrivateTable(table)
    fitted = fit(private, plan_table(private, schema, rules, settings, untyped=untyped), gate or open_gate(settings))
    bundle = fitted.to_bundle()
    return dict(bundle.texts), {name: (each.dtype, each.tobytes()) for name, each in bundle.arrays.items()}


@cache
def in_memory(*, declared: bool, untyped: bool = False, unit: str | None = None, max_rows: int | None = None) -> Any:
    """All that a run on the same table in memory lets out: what every engine is compared with."""
    table = as_text(mixed_table()) if untyped else mixed_table()
    return everything(table, SCHEMA if declared else None, untyped=untyped, unit=unit, max_rows=max_rows)


@pytest.mark.parametrize("source", TYPED)
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "found"])
def test_engines_fit_the_same_model(source: str, declared: bool, tmp_path: Path) -> None:
    parts = TYPED[source](mixed_table(), tmp_path)
    assert not isinstance(parts, pa.Table)
    assert everything(parts, SCHEMA if declared else None) == in_memory(declared=declared)


@pytest.mark.parametrize("source", TEXT)
def test_engines_find_the_same_types(source: str, tmp_path: Path) -> None:
    found = everything(TEXT[source](mixed_table(), tmp_path), None, untyped=True)
    assert found == in_memory(declared=False, untyped=True)


@pytest.mark.parametrize("source", ORDERED)
def test_engines_keep_the_same_rows_of_a_unit(source: str, tmp_path: Path) -> None:
    untyped = source in TEXT
    given: Any = {"untyped": untyped, "unit": "who", "max_rows": 2}
    found = everything(ORDERED[source](mixed_table(), tmp_path), None if untyped else SCHEMA, **given)
    assert found == in_memory(declared=not untyped, **given)


@cache
def built_in_memory() -> Any:
    """All that a run on the built-in table in memory lets out."""
    return everything(built_in_table(), BUILT_IN_SCHEMA, rules=BUILT_IN_RULES, unit="person", max_rows=2)


@pytest.mark.parametrize("source", ["parquet_files", "duckdb_table", "postgres_table", "spark_frame"])
def test_engines_fit_the_same_model_of_the_built_in_table(source: str, tmp_path: Path) -> None:
    parts = TYPED[source](built_in_table(), tmp_path)
    found = everything(parts, BUILT_IN_SCHEMA, rules=BUILT_IN_RULES, unit="person", max_rows=2)
    assert found == built_in_memory()


def test_a_streamed_unit_keeps_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = mixed_table()
    kept = []
    parts = parquet_file(table, tmp_path)
    for rows, at_once in ((table, 1 << 24), (parts, 1 << 24), (parts, 99)):
        monkeypatch.setattr(unit_module, "_MOST_AT_ONCE", at_once)
        gate = Gate(Budget(epsilon=1.0, delta=1e-6), unit=PrivacyUnit(column="who", max_rows=2), noise=SeededNoise(1))
        kept.append(open_table(keep_rows(PrivateTable(rows), gate)))
    assert kept[0].num_rows < ROWS
    assert kept[0].equals(kept[1])
    assert kept[0].equals(kept[2])


def test_rates_do_not_depend_on_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, codec = mixed_table(), Codec(SCHEMA)
    bound = SOFT.bind(schema_types(SCHEMA))
    whole = encode(PrivateTable(table), codec)
    expected = [rates_module._statistic(each, codec, whole, 20) for each in bound]
    assert all(value > 0 for value in expected)
    parts = encode(PrivateTable(parquet_file(table, tmp_path)), codec)
    for at_once in (64, 1 << 22):
        monkeypatch.setattr(rates_module, "ROWS_AT_ONCE", at_once)
        assert [rates_module._statistic(each, codec, parts, 20) for each in bound] == expected


@pytest.mark.parametrize("source", ["parquet_file", "csv_file", "duckdb_table", "postgres_table", "spark_frame"])
def test_replay_passes_for_streams(replays: Any, source: str, tmp_path: Path) -> None:
    """Each table of the replay is written and read in parts; engines differ in how they read, not in what follows."""

    def run(table: pa.Table, gate: Gate) -> Any:
        untyped = source in TEXT
        schema = None if untyped else SCHEMA
        parts = ORDERED[source](table, tmp_path)
        neighbours, epsilon = gate.budget.neighbours, gate.budget.epsilon
        return everything(
            parts, schema, gate=gate, neighbours=neighbours, epsilon=epsilon, seed=None, draw_seed=1, untyped=untyped
        )

    if source == "parquet_file":
        replays(run, mixed_table(200))
    else:
        few = ("empty", "ten times as long", "odd cells")
        replays(run, mixed_table(200), relations=(Neighbours.ADD_REMOVE,), others=few)


def test_parts_have_the_codes_of_the_table(tmp_path: Path) -> None:
    table = mixed_table()
    codec = Codec(SCHEMA, {"end": Difference(base="start")})
    for kept_bytes in (0, 3_000, 1 << 20):
        parts = PrivateCodes(EncodedParts(parquet_file(table, tmp_path), codec, kept_bytes=kept_bytes))
        for _ in range(2):
            assert open_codes(parts).equals(codec.encode(table))


def test_codes_are_kept_within_bounds(tmp_path: Path) -> None:
    class Counting(ParquetParts):
        asked: ClassVar[list[tuple[str, ...]]] = []

        def parts(self, names: Any = None) -> Any:
            self.asked.append(tuple(names))
            return super().parts(names)

    parquet_file(mixed_table(), tmp_path)
    source = Counting([tmp_path / "t.parquet"], private=True, part_rows=PART_ROWS)
    # The widest of three columns does not fit.
    narrow = SCHEMA.data_names[1:4]
    free = EncodedParts(source, Codec(SCHEMA))
    list(free.parts(narrow))
    sizes = {name: sum(each.nbytes for each in free._kept[name]) for name in narrow}
    Counting.asked.clear()
    assert max(sizes, key=lambda name: sizes[name]) == "age"
    bound = sizes["city"] + sizes["zone"] + 10
    encoded = EncodedParts(source, Codec(SCHEMA), kept_bytes=bound)
    for _ in range(3):
        list(encoded.parts(narrow))
    assert Counting.asked == [narrow, ("age",), ("age",)]
    assert 0 < sum(each.nbytes for held in encoded._kept.values() for each in held) <= bound


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.int64])
@pytest.mark.parametrize("rows", [0, 1, 5_000])
def test_packed_codes_come_back(kind: Any, rows: int) -> None:
    codes = np.random.default_rng(1).integers(0, min(np.iinfo(kind).max, 2**40), rows).astype(kind)
    packed = PackedCodes.of(codes)
    assert packed.unpack().dtype == codes.dtype
    assert np.array_equal(packed.unpack(), codes)
    assert PackedCodes.of(np.zeros(5_000, dtype=kind)).nbytes < 400


def test_what_is_expected_is_counted_in_one_pass(tmp_path: Path) -> None:
    class Counting(ParquetParts):
        passes = 0

        def parts(self, names: Any = None) -> Any:
            type(self).passes += 1
            return super().parts(names)

    parquet_file(mixed_table(), tmp_path)
    source = Counting([tmp_path / "t.parquet"], private=True, part_rows=PART_ROWS)
    codec = Codec(SCHEMA)
    pairs = [("city", "zone"), ("age", "pay"), ("city",)]
    asked = [Candidate(attributes=p, binning={n: CodeMap.identity(codec.sizes[n]) for n in p}) for p in pairs]

    def gate() -> Gate:
        return Gate(Budget(epsilon=float("inf"), delta=1e-6))

    streamed = StreamedMeasurer(PrivateCodes(EncodedParts(source, codec, kept_bytes=0)), codec.sizes, gate())
    memory = MemoryMeasurer(encode(PrivateTable(mixed_table()), codec), codec.sizes, gate())
    streamed.expect(asked)
    for pair in pairs:
        counts = streamed.marginal(pair, None, noise_multiplier=1.0)
        assert np.array_equal(counts, memory.marginal(pair, None, noise_multiplier=1.0))
    assert Counting.passes == 1
    streamed.marginal(("city",), None, noise_multiplier=1.0)
    assert Counting.passes == 2


def test_trusted_domains_are_those_of_the_table(tmp_path: Path) -> None:
    table = mixed_table().append_column("zip_code", pa.array(np.arange(ROWS) % 50))
    assert trusted_schema(PrivateTable(parquet_file(table, tmp_path))) == trusted_schema(PrivateTable(table))


@pytest.mark.parametrize("source", [*TYPED, *TEXT])
@pytest.mark.parametrize("rows", [0, 1, PART_ROWS, ROWS])
def test_streams_read_what_readers_read(source: str, rows: int, tmp_path: Path) -> None:
    table = mixed_table().slice(0, rows)
    parts = {**TYPED, **TEXT}[source](table, tmp_path)
    path = {"parquet_file": "t.parquet", "csv_file": "t.csv", "csv_gz": "t.csv.gz", "csv_zst": "t.csv.zst"}.get(source)
    whole = read_table(tmp_path / path, private=True) if path else table
    if source == "duckdb_query":
        whole = table.take(pa.compute.sort_indices(table, [("pay", "ascending"), ("end", "descending")]))
    read = list(parts.parts())
    if source in ("spark_frame", "postgres_view"):  # their rows come in no promised order
        order = [(name, "ascending") for name in table.column_names]
        found = pa.concat_tables(read)
        assert found.sort_by(order).equals(whole.cast(parts.schema).sort_by(order))
        return
    assert [each.num_rows for each in read[:-1]] == [PART_ROWS] * (len(read) - 1)
    assert pa.concat_tables(read).equals(whole.cast(parts.schema))
    names = ["end", "city"]
    assert pa.concat_tables(parts.parts(names)).equals(whole.cast(parts.schema).select(names))


def test_parts_are_cut_evenly() -> None:
    schema = pa.schema([("x", pa.int64())])
    sizes = [0, 3, 20, 1, 0, 6]
    rows = iter(range(30))
    batches = [pa.record_batch({"x": pa.array([next(rows) for _ in range(n)], pa.int64())}) for n in sizes]
    parts = list(cutting.cut_evenly(batches, schema, 7))
    assert [part.num_rows for part in parts] == [7, 7, 7, 7, 2]
    assert pa.concat_tables(parts)["x"].to_pylist() == list(range(30))
    assert [part.num_rows for part in cutting.cut_evenly([], schema, 7)] == [0]


def test_files_of_a_folder_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for number in (2, 0, 1):
        pq.write_table(pa.table({"x": [number]}), tmp_path / f"part-{number}.parquet")
    (tmp_path / "_SUCCESS").touch()
    for source in (tmp_path, tmp_path / "part-*.parquet"):
        assert read_table(source)["x"].to_pylist() == [0, 1, 2]
    pq.write_table(pa.table({"y": [1]}), tmp_path / "part-9.parquet")
    with pytest.raises(InputError, match="its columns are not those of part-0"):
        read_table(tmp_path)
    with pytest.raises(InputError, match="found no file that fits"):
        read_table(tmp_path / "other-*.parquet")


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    parts = parquet_file(mixed_table(), tmp_path)
    list(parts.parts(["age"]))
    pq.write_table(mixed_table(10), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="has changed since the run began"):
        list(parts.parts(["age"]))
    (tmp_path / "t.parquet").unlink()
    with pytest.raises(InputError, match="is gone since the run began"):
        list(parts.parts(["age"]))


def test_a_broken_csv_is_refused_at_once(tmp_path: Path) -> None:
    """What is broken for all rows is refused; a line that cannot be read is private, and becomes a row of nulls."""
    (tmp_path / "short.csv").write_text("a,b\n1,2\nsecret\n3,4\n")
    (part,) = CsvParts(tmp_path / "short.csv").parts()
    assert part.column("a").to_pylist() == ["1", None, "3"]
    with pytest.raises(InputError, match=r"short.csv:3: the row has 1 cells") as told:
        read_table(tmp_path / "short.csv")
    assert "secret" not in str(told.value)
    (tmp_path / "open.csv").write_text('a,"b\n1,2\n')
    with pytest.raises(InputError, match="a quote in the header is not closed"):
        CsvParts(tmp_path / "open.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 9_000)[:-20])
    with pytest.raises(InputError, match="gzip data is damaged"):
        CsvParts(tmp_path / "cut.csv.gz")


def test_a_corrupt_row_group_is_told_with_what_was_spent(tmp_path: Path) -> None:
    parquet_file(mixed_table(), tmp_path)
    path = tmp_path / "t.parquet"
    raw = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(5).column(4)
    start = group.data_page_offset
    raw[start : start + 12] = b"\xff" * 12
    path.write_bytes(bytes(raw))
    made = Synthesizer(SCHEMA, RULES, engine="streamed", seed=1)
    with pytest.raises(InputError, match="not a readable Parquet file") as told:
        made.fit(path)
    assert not any(str(value) in str(told.value) for value in ("Rome", "Oslo"))


def _call_large(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Read in parts whatever has so many bytes."""
    from kamino.io import registry

    files = tuple(replace(kind, large=kind.large and limit) for kind in registry.FILES)
    monkeypatch.setattr(registry, "FILES", files)
    others = [kind for kind in registry.DATABASES if kind.name != "duckdb"]
    monkeypatch.setattr(registry, "DATABASES", (replace(registry.DUCKDB, large=limit), *others))


def test_the_engine_is_chosen_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kamino.pipeline.engines import choose_engine, count_passes, describe_engine

    parquet_file(mixed_table(), tmp_path)
    csv_file(mixed_table(), tmp_path)
    path = tmp_path / "t.parquet"
    assert choose_engine(path, Settings()) == "memory"
    _call_large(monkeypatch, 1)
    assert choose_engine(path, Settings()) == "streamed"
    assert choose_engine(path, Settings(engine="memory")) == "memory"  # type: ignore[arg-type]
    assert choose_engine(mixed_table(), Settings()) == "memory"
    assert choose_engine(path, Settings.of("paper")) == "memory"
    for source, given, why in (
        (mixed_table(), {}, "only Parquet and CSV files, DuckDB, PostgreSQL and Spark"),
        (tmp_path / "t.csv", {"trust_domain": True}, "need all of them at once"),
        (path, {"preset": "paper"}, "trains on rows in memory"),
    ):
        with pytest.raises(InputError, match=why):
            Synthesizer(engine="streamed", **given).fit(source)  # type: ignore[arg-type]
    plan = Synthesizer(SCHEMA, RULES).dry_run(path)
    assert "in memory" in describe_engine(choose_engine(path, Settings(engine="memory")), plan)  # type: ignore[arg-type]
    assert "by Spark" in describe_engine(Engine.SPARK, plan)
    assert f"about {count_passes(plan)} passes" in describe_engine(choose_engine(path, Settings()), plan)


@pytest.mark.parametrize("source", ["t.csv", "t.parquet", "duckdb:///t.db#t"])
def test_what_is_told_of_the_engine_depends_on_no_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    """A dry run of the command prints the same of a file above the limit as of one below, whichever is read."""
    from kamino.cli.app import app
    from kamino.pipeline import engines

    parquet_file(mixed_table(), tmp_path)
    csv_file(mixed_table(), tmp_path)
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute(f"create table t as select * from '{tmp_path / 't.parquet'}'")
    (tmp_path / "s.yaml").write_text(SCHEMA.to_yaml())
    monkeypatch.chdir(tmp_path)
    chosen, choose = list[Engine](), engines.choose_engine
    monkeypatch.setattr(engines, "choose_engine", lambda *given: chosen.append(choose(*given)) or chosen[-1])
    printed = []
    for limit in (1 << 60, 1):
        _call_large(monkeypatch, limit)
        app(["synth", source, "-o", "o.csv", "-s", "s.yaml", "--dry-run"], standalone_mode=False)
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
    assert {"memory", "streamed"} == set(chosen), "both engines were there to be told"
    assert "in memory (--engine memory) or, if the table is large, in about" in " ".join(printed[0].out.split())


def test_a_model_does_not_tell_the_engine(tmp_path: Path) -> None:
    parquet_file(mixed_table(), tmp_path)
    drawn = []
    for engine in ("memory", "streamed"):
        made = Synthesizer(SCHEMA, RULES, engine=engine, seed=4).fit(tmp_path / "t.parquet")
        made.save(tmp_path / f"{engine}.kamino")
        drawn.append(made.sample(50))
    assert (tmp_path / "memory.kamino").read_bytes() == (tmp_path / "streamed.kamino").read_bytes()
    assert drawn[0].equals(drawn[1])


def test_some_columns_have_the_codes_of_all() -> None:
    table = mixed_table()
    codec = Codec(SCHEMA, {"end": Difference(base="start")})
    whole = codec.encode(table)
    for names in (("age",), ("end",), ("end", "city"), tuple(codec.plain)):
        needed = codec.columns_for(names)
        assert set(needed) <= {*names, "start"}
        some = codec.encode_some(table.select(list(needed)), names)
        assert tuple(some.columns) == names
        assert all(np.array_equal(some[name], whole[name]) for name in names)


def test_spark_counts_where_the_rows_are(tmp_path: Path) -> None:
    table, codec = mixed_table(), Codec(SCHEMA)
    pairs = [("city", "zone"), ("age", "pay"), ("start",)]
    asked = [Candidate(attributes=p, binning={n: CodeMap.identity(codec.sizes[n]) for n in p}) for p in pairs]
    counted = EncodedParts(spark_frame(table, tmp_path), codec).count(asked)
    coded = codec.encode(table)
    expected = count_candidates(asked, coded.columns, coded.num_rows)
    assert counted is not None
    assert all(np.array_equal(one, other) for one, other in zip(counted, expected, strict=True))
