"""Measure a whole run on TPC-H: orders joined with customer and nation, under four hard dependencies.

    python -m bench.tpch 1000000 10000000 --folder FOLDER                # print the figures
    python -m bench.tpch 1000000 10000000 --folder FOLDER --write docs/scale.md

`tpchgen-cli` (dependency group `bench`: `pip install --group bench`) makes the tables or, where it is not installed,
DuckDB does, which fetches its extension `tpch`; the join is written as Parquet. A model is fitted by the streamed
engine (domains public, epsilon 1), as many rows are drawn with all four dependencies, and the violations in what was
written are counted. The paper's Kamino takes ten hours for a million rows. Each step is a process of its own;
processor seconds are of all threads, memory is the peak.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.stepped import Measurement

RULES = """\
c_custkey -> c_nationkey
c_custkey -> c_mktsegment
c_nationkey -> n_name
n_name -> n_regionkey
"""
# Orders of scale factor 1.
_ORDERS = 1_500_000
_TABLES = ("orders", "customer", "nation")
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
        names = _by_tpchgen(folder / f"tpch-tables-{rows}", scale) or _by_duckdb(connection, scale)
        query = _JOIN.format(rows=rows, **names)
        connection.execute(f"COPY ({query}) TO '{joined(folder, rows)}' (FORMAT parquet, COMPRESSION zstd)")
    shutil.rmtree(folder / f"tpch-tables-{rows}", ignore_errors=True)
    return f"{joined(folder, rows).stat().st_size / 2**20:,.0f} MiB"


def _by_tpchgen(tables: Path, scale: float) -> dict[str, str]:
    """Make the tables by the tool, if it is there; how a query names them."""
    tool = shutil.which("tpchgen-cli", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if tool is None:
        return {}
    asked = [tool, "parquet", "-s", str(scale), f"--output-dir={tables}", f"--tables={','.join(_TABLES)}"]
    subprocess.run(asked, check=True, capture_output=True)
    return {name: f"read_parquet('{tables}/{name}.parquet')" for name in _TABLES}


def _by_duckdb(connection: Any, scale: float) -> dict[str, str]:
    """Make the tables by DuckDB's extension."""
    import duckdb

    try:
        connection.execute("INSTALL tpch; LOAD tpch")
    except duckdb.Error:
        raise SystemExit(
            "found neither tpchgen-cli nor DuckDB's extension tpch; pip install --group bench (pip 25.1 or newer), or: "
            "pip install tpchgen-cli"
        ) from None
    connection.execute(f"CALL dbgen(sf={scale})")
    return {name: name for name in _TABLES}


def synth(folder: Path, rows: int) -> str:
    """Fit by the streamed engine and draw as many rows, as `kamino synth` does; what was written is counted."""
    from kamino import Synthesizer

    made = Synthesizer(constraints=RULES, trust_domain=True, seed=1, engine="streamed", unit="row")
    made.fit(joined(folder, rows))
    fitted = time.process_time()
    written = made.write(folder / f"tpch-drawn-{rows}.parquet", rows, seed=3)
    parts = f"{fitted:,.1f} CPU s to fit, {time.process_time() - fitted:,.1f} to draw and count"
    return f"{parts}; {len(made.ledger['entries'])} releases; {sum(written.violations.values())} violations"


def check(folder: Path, rows: int) -> str:
    """Count violations in the file once more, as `kamino check` does on a large one."""
    from typer.testing import CliRunner

    from kamino.cli.app import app

    (folder / "tpch.dc").write_text(RULES, encoding="utf-8")
    asked = ["check", str(folder / f"tpch-drawn-{rows}.parquet"), "-c", str(folder / "tpch.dc"), "--engine", "streamed"]
    ran = CliRunner().invoke(app, asked)
    return "no violation of four dependencies" if ran.exit_code == 0 else "violations, or an error"


MEASUREMENT = Measurement(
    module="bench.tpch", about=__doc__, mark="tpch", steps={"make": make, "synth": synth, "check": check}
)

if __name__ == "__main__":
    MEASUREMENT.main()
