"""What fails in the middle of a large run is told in a line, with what was spent; nothing half-written is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.contracts import servers

from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.errors import InputError
from kamino.io.streams.postgres_parts import PostgresParts
from kamino.pipeline import Synthesizer


def streamed() -> Synthesizer:
    return Synthesizer(constraints=TAX_CONSTRAINTS, trust_domain=True, engine="streamed", epsilon=1.0, seed=1)


def test_a_killed_server_is_told_with_what_was_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pgserver = pytest.importorskip("pgserver")
    psutil = pytest.importorskip("psutil")
    server = pgserver.get_server(tmp_path / "data", cleanup_mode=None)
    url = server.get_uri()
    servers.fill_postgres(url, tax(2_000), "people")
    passes = 0
    read = PostgresParts._batches

    def counting(self: PostgresParts, names: list[str]) -> Any:
        nonlocal passes
        passes += 1
        if passes == 14:
            main = psutil.Process(int((tmp_path / "data" / "postmaster.pid").read_text().split()[0]))
            for each in [main, *main.children(recursive=True)]:
                os.kill(each.pid, signal.SIGKILL)
        return read(self, names)

    monkeypatch.setattr(PostgresParts, "_batches", counting)
    # Nothing is kept between passes, so that the server is asked again and again.
    monkeypatch.setattr("kamino.engine.streamed.KEPT_BYTES", 0)
    monkeypatch.setattr("kamino.engine.streamed.EncodedParts.__init__.__kwdefaults__", {"kept_bytes": 0})
    with pytest.raises(InputError, match="the connection to the server was lost") as told:
        streamed().fit(url, query="people")
    assert "\n" not in str(told.value)
    assert any("made before this: epsilon" in note for note in told.value.__notes__)


def test_a_damaged_row_group_is_told_with_what_was_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(tax(20_000), path, row_group_size=5_000, compression="zstd")
    found = pq.ParquetFile(path).metadata.row_group(2).column(2)
    start, size = found.data_page_offset, found.total_compressed_size
    data = bytearray(path.read_bytes())
    data[start + 40 : start + size - 10] = bytes(size - 50)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"t\.parquet: not a readable Parquet file") as told:
        streamed().fit(path)
    assert "\n" not in str(told.value)


FULL_DISK = """
import resource, signal, sys
from kamino.errors import KaminoError
from kamino.pipeline import Synthesizer
from kamino.pipeline.output import in_blocks
in_blocks.BLOCK_ROWS, in_blocks.WHOLE_BLOCKS = 20_000, 1
made = Synthesizer.load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    made.write(sys.argv[2], 200_000, seed=1)
except KaminoError as problem:
    print(problem)
    sys.exit(3)
"""


def test_a_full_disk_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    """The limit on the size of a file stands for the disk: a write beyond it fails in the middle of the table."""
    Synthesizer(constraints=TAX_CONSTRAINTS, trust_domain=True, seed=1).fit(tax(1_000)).save(tmp_path / "m.kamino")
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "m.kamino"), str(out / "big.parquet")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout.count("\n") == 1
    assert "big.parquet" in ran.stdout
    assert list(out.iterdir()) == []


def test_a_snapshot_stays_as_it_was() -> None:
    url, table = servers.postgres(), pa.table({"x": [1, 2, 3]})
    servers.fill_postgres(url, table, "growing")
    parts = PostgresParts(url, "SELECT * FROM growing", table="growing", part_rows=2)
    assert parts.is_ordered
    before = pa.concat_tables(parts.parts())
    for statement in ("INSERT INTO growing VALUES (4)", "DELETE FROM growing WHERE x = 1"):
        servers.run_in_postgres(url, statement)
    assert pa.concat_tables(parts.parts()).equals(before)
    # A pass that is broken off does not disturb the next one.
    next(iter(parts.parts()))
    assert pa.concat_tables(parts.parts(["x"])).equals(before)
    parts._snapshot.close()


def test_a_snapshot_writes_nothing() -> None:
    url = servers.postgres()
    servers.fill_postgres(url, pa.table({"x": [1]}), "kept")
    parts = PostgresParts(url, "SELECT * FROM kept", table="kept")
    with pytest.raises(InputError, match="would change the database"):
        list(parts._snapshot.batches("WITH gone AS (DELETE FROM kept RETURNING x) SELECT * FROM gone"))
    parts._snapshot.close()
    for statement in ("COPY kept TO '/tmp/x'", "DELETE FROM kept", "SELECT 1; SELECT 2"):
        with pytest.raises(InputError, match="Expected a single SELECT"):
            PostgresParts(url, statement)


def test_streams_take_over_not_null(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER)")
        connection.execute("INSERT INTO t SELECT i % 5, i % 3 FROM range(500) r(i)")
    made = [
        Synthesizer(trust_domain=True, seed=1, engine=engine).fit(f"duckdb:///{path}#t").fitted
        for engine in ("memory", "streamed")
    ]
    assert [each.schema["a"].nullable for each in made] == [False, False]
    assert made[0].schema == made[1].schema
