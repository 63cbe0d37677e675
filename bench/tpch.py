"""Measure a whole run on TPC-H: orders joined with customer and nation, under four hard dependencies.

    python -m bench.tpch 1000000 10000000 --folder FOLDER                # print the figures
    python -m bench.tpch 1000000 10000000 --folder FOLDER --write docs/scale.md

DuckDB makes the tables (extension `tpch`) or, where it cannot fetch the extension, `tpchgen-cli` does; the join is
written as Parquet. A model is fitted by the streamed engine (domains public, epsilon 1), as many rows are drawn with
all four dependencies, and the violations in what was written are counted. The paper's Kamino takes about ten hours for
such a join. Each step is a process of its own; processor seconds are of all threads, memory is the peak.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.scale import Cost, as_table

HERE = Path(__file__).resolve().parent.parent
START, END = "<!-- tpch -->", "<!-- end of tpch -->"
STEPS = ("make", "fit", "draw")
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


def measure(step: str, folder: Path, rows: int) -> Cost:
    """Run one step in a process of its own."""
    command = [sys.executable, "-m", "bench.tpch", "--step", step, str(rows), "--folder", str(folder)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE / 'src'}:{HERE}"}
    begin = time.perf_counter()
    ran = subprocess.run(command, cwd=HERE, env=env, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - begin
    if ran.returncode:
        raise SystemExit(f"{step} at {rows:,} rows failed:\n{ran.stderr}")
    return Cost(step=step, rows=rows, wall=wall, **json.loads(ran.stdout.splitlines()[-1]))


def run_step(step: str, folder: Path, rows: int) -> None:
    """Do one step, and say what it took."""
    note = {"make": make, "fit": fit, "draw": draw}[step](folder, rows)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "mebibytes": used.ru_maxrss / 1024, "note": note}))


def main(given: Sequence[str] | None = None) -> None:
    """Measure the sizes that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+", type=int)
    parser.add_argument("--folder", type=Path, required=True, help="where tables and models go; they are kept")
    parser.add_argument("--write", type=Path, help="put the figures into this page")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.step:
        run_step(asked.step, asked.folder, asked.rows[0])
        return
    costs = []
    for rows in asked.rows:
        for step in STEPS:
            costs.append(measure(step, asked.folder, rows))
            print(as_table(costs[-1:]).splitlines()[-1], flush=True)
    if asked.write:
        page = asked.write.read_text(encoding="utf-8")
        new = f"{START}\n{as_table(costs)}\n{END}"
        asked.write.write_text(re.sub(f"{START}.*{END}", new, page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
