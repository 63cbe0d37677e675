"""Measure counting by a PostgreSQL server against counting here: one pass over the built-in table, all pairs.

    python -m bench.pushdown 1000000 --folder FOLDER                     # print the figures
    python -m bench.pushdown 1000000 --folder FOLDER --write docs/scale.md

Both count the same marginals, those of all pairs of columns in at most 32 bins. The server is given the best case: the
columns are stored as codes of bins already, and one query with GROUPING SETS counts all pairs. Here, rows are read from
the server through a cursor, encoded from the schema and counted; then once more, from the codes that were kept.
Processor seconds of the server's process are in the last column. Needs `pgserver`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.stepped import Measurement
from kamino.datasets import tax
from kamino.engine.streamed import EncodedParts, StreamedMeasurer
from kamino.io.streams.postgres_parts import PostgresParts
from kamino.model.protocol import Candidate, CodeMap
from kamino.privacy import Budget, Gate
from kamino.privacy.private import PrivateCodes
from kamino.schema import Codec, draft_schema

BINS = 32


def binned(codec: Codec) -> dict[str, CodeMap]:
    """Each attribute in bins of equal width."""
    found = {}
    for name, size in codec.sizes.items():
        bins = min(size, BINS)
        starts = np.arange(bins, dtype=np.int64) * size // bins
        found[name] = CodeMap(size=size, bins=bins, starts=starts, labels=np.arange(bins, dtype=np.int64))
    return found


def here(folder: Path, rows: int) -> str:
    """Read, encode and count; then count again what was kept."""
    table = tax(rows, seed=7)
    codec = Codec(draft_schema(table, trust_domain=True, codes=True))
    views = binned(codec)
    asked = [Candidate(attributes=pair, binning={n: views[n] for n in pair}) for pair in combinations(views, 2)]
    with _server(folder) as (url, connection):
        _fill(connection, "people", table)
        source = PostgresParts(url, "SELECT * FROM people", table="people")
        codes = PrivateCodes(EncodedParts(source, codec))
        measurer = StreamedMeasurer(codes, codec.sizes, Gate(Budget(epsilon=float("inf"), delta=1e-6)))
        server, told = _backends(connection), []
        for what in ("first pass", "next pass"):
            begin, before = _seconds(server), time.process_time()
            measurer.expect(asked)
            told.append(
                f"{what} {time.process_time() - before:.1f} s here, {_seconds(server) - begin:.1f} s in the server"
            )
        source._snapshot.close()
    return "; ".join(told)


def there(folder: Path, rows: int) -> str:
    """Let the server count."""
    table = tax(rows, seed=7)
    codec = Codec(draft_schema(table, trust_domain=True, codes=True))
    coded, views = codec.encode(table), binned(codec)
    names = list(views)
    bins = pa.table({name: views[name](coded[name]).astype(np.int16) for name in names})
    sets = ", ".join(f"({first}, {second})" for first, second in combinations(names, 2))
    chosen = ", ".join(names)
    with _server(folder) as (_, connection):
        _fill(connection, "bins", bins)
        server = _backends(connection)
        with connection.cursor() as cursor:
            cursor.execute("SET max_parallel_workers_per_gather = 0")
            cursor.execute("SET work_mem = '256MB'")
            begin = _seconds(server)
            cursor.execute(f"SELECT {chosen}, grouping({chosen}), count(*) FROM bins GROUP BY GROUPING SETS ({sets})")
            cells = cursor.fetch_arrow_table().num_rows
            spent = _seconds(server) - begin
    return f"each pass {spent:.1f} s in the server, {cells:,} cells"


@contextmanager
def _server(folder: Path) -> Iterator[tuple[str, Any]]:
    import pgserver
    from adbc_driver_postgresql import dbapi

    server = pgserver.get_server(tempfile.mkdtemp(dir=folder), cleanup_mode="delete")
    try:
        with dbapi.connect(server.get_uri(), autocommit=True) as connection:
            yield server.get_uri(), connection
    finally:
        server.cleanup()


def _fill(connection: Any, name: str, table: pa.Table) -> None:
    with connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="create")
        cursor.execute(f"ANALYZE {name}")


def _backends(connection: Any) -> list[Any]:
    """The processes of the server that serve somebody."""
    import psutil

    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
        return [psutil.Process(pid) for (pid,) in cursor.fetchall()]


def _seconds(processes: list[Any]) -> float:
    return float(sum(sum(each.cpu_times()[:2]) for each in processes))


MEASUREMENT = Measurement(module="bench.pushdown", about=__doc__, mark="pushdown", steps={"here": here, "there": there})

if __name__ == "__main__":
    MEASUREMENT.main()
