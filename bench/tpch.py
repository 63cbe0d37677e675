"""Measure a whole run on TPC-H: orders joined with customer and nation, under four hard dependencies.

    python -m bench.tpch 1000000 10000000 --folder FOLDER                # print the figures
    python -m bench.tpch 1000000 10000000 --folder FOLDER --write docs/scale.md

DuckDB makes the tables (extension `tpch`) or, where it cannot fetch the extension, `tpchgen-cli` does; the join is
written as Parquet. A model is fitted by the streamed engine (domains public, epsilon 1), as many rows are drawn with
all four dependencies, and the violations in what was written are counted. The paper's Kamino takes about ten hours for
such a join. Each step is a process of its own; processor seconds are of all threads, memory is the peak.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.stepped import Measurement

RULES = """\
c_custkey -> c_nationkey
c_custkey -> c_mktsegment
c_nationkey -> n_name
n_name -> n_regionkey
"""
# Orders of scale factor 1.
_ORDERS = 1_500_000
_JOIN = """
    SELECT c_custkey, c_nationkey, c_mktsegment, n_name, n_regionkey, o_orderstatus, o_orderpriority,
        CAST(o_totalprice AS DOUBLE) AS o_totalprice, o_orderdate
    FROM {orders} JOIN {customer} ON o_custkey = c_custkey JOIN {nation} ON c_nationkey = n_nationkey
    ORDER BY o_orderkey LIMIT {rows}
"""


def joined(folder: Path, rows: int) -> Path:
    """Where the join of so many rows is."""
    return folder / f"tpch-{rows}.parquet"


def make(folder: Path, rows: int) -> str:
    """Write the join."""
    import duckdb

    scale = rows / _ORDERS * 1.001
    with duckdb.connect() as connection:
        try:
            connection.execute("INSTALL tpch; LOAD tpch")
            connection.execute(f"CALL dbgen(sf={scale})")
            names = {name: name for name in ("orders", "customer", "nation")}
        except duckdb.Error:
            tables = folder / f"tpch-tables-{rows}"
            tool = Path(sys.executable).parent / "tpchgen-cli"
            asked = [str(tool), "parquet", "-s", str(scale), f"--output-dir={tables}"]
            subprocess.run([*asked, "--tables=orders,customer,nation"], check=True, capture_output=True)
            names = {n: f"read_parquet('{tables}/{n}.parquet')" for n in ("orders", "customer", "nation")}
        query = _JOIN.format(rows=rows, **names)
        connection.execute(f"COPY ({query}) TO '{joined(folder, rows)}' (FORMAT parquet, COMPRESSION zstd)")
    return f"{joined(folder, rows).stat().st_size / 2**20:,.0f} MiB"


def fit(folder: Path, rows: int) -> str:
    """Fit by the streamed engine, and save the model."""
    from kamino import Synthesizer

    made = Synthesizer(constraints=RULES, trust_domain=True, seed=1, engine="streamed", unit="row")
    made.fit(joined(folder, rows)).save(folder / f"tpch-{rows}.kamino")
    return f"{len(made.ledger['entries'])} releases"


def draw(folder: Path, rows: int) -> str:
    """Draw as many rows; what was written is read back and counted."""
    from kamino import Synthesizer

    made = Synthesizer.load(folder / f"tpch-{rows}.kamino")
    written = made.write(folder / f"tpch-drawn-{rows}.parquet", rows, seed=3)
    return f"{sum(written.violations.values())} violations of four dependencies"


MEASUREMENT = Measurement(
    module="bench.tpch", about=__doc__, mark="tpch", steps={"make": make, "fit": fit, "draw": draw}
)

if __name__ == "__main__":
    MEASUREMENT.main()
