"""Measure what grows with the rows: fitting, drawing and checking the built-in table at several sizes.

    python -m bench.scale 1000000 10000000 --folder FOLDER               # print the figures
    python -m bench.scale 1000000 10000000 --folder FOLDER --write docs/scale.md

For each size, the table is written as Parquet, block by block; a model is fitted to it by the streamed engine (domains
public, epsilon 1), as many rows are drawn from it with all six constraints, and `kamino check` counts the violations in
what was drawn; DuckDB counts the five dependencies by GROUP BY beside it. Each is a process of its own with one thread
for linear algebra; processor seconds are of all threads, memory is the peak of the process.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from bench.stepped import Measurement
from kamino.datasets import TAX_CONSTRAINTS, tax_blocks

LEFT_SIDES = (("zip", "city"), ("zip", "state"), ("area_code", "state"))
PAIRS = (("state", "has_child", "child_exemp"), ("state", "marital_status", "single_exemp"))


def private(folder: Path, rows: int) -> Path:
    """Where the table of so many rows is."""
    return folder / f"tax-{rows}.parquet"


def make(folder: Path, rows: int) -> str:
    """Write the table, a block at a time."""
    writer = None
    for block in tax_blocks(rows, seed=7):
        writer = writer or pq.ParquetWriter(private(folder, rows), block.schema, compression="zstd")
        writer.write_table(block, row_group_size=1 << 19)
    if writer is not None:
        writer.close()
    return f"{private(folder, rows).stat().st_size / 2**20:,.0f} MiB"


def fit(folder: Path, rows: int) -> str:
    """Fit by the streamed engine, and save the model."""
    from kamino import Synthesizer

    made = Synthesizer(constraints=TAX_CONSTRAINTS, trust_domain=True, seed=1, engine="streamed")
    made.fit(private(folder, rows)).save(folder / f"tax-{rows}.kamino")
    return f"{len(made.ledger['entries'])} releases" if "entries" in made.ledger else ""


def draw(folder: Path, rows: int) -> str:
    """Draw as many rows, and count what they break."""
    from kamino import Synthesizer

    made = Synthesizer.load(folder / f"tax-{rows}.kamino")
    written = made.write(folder / f"drawn-{rows}.parquet", rows, seed=3)
    return f"{sum(written.violations.values())} violations in {written.path.stat().st_size / 2**20:,.0f} MiB"


def check(folder: Path, rows: int) -> str:
    """Count the violations of all constraints in what was drawn."""
    from kamino.constraints import Constraints, value_types
    from kamino.evaluate.checking import check_parts
    from kamino.io.streams.sources import open_stream

    table = open_stream(folder / f"drawn-{rows}.parquet")
    rules = Constraints.parse(TAX_CONSTRAINTS, types=value_types(table.schema.empty_table()))
    found = check_parts(table, rules)
    return f"{sum(each.violations for each in found.checks)} violations of {len(found.checks)}"


def duckdb(folder: Path, rows: int) -> str:
    """Count the groups that break a dependency, by GROUP BY."""
    import duckdb as database

    broken = 0
    source = folder / f"drawn-{rows}.parquet"
    for *left, right in (*LEFT_SIDES, *PAIRS):
        keys = ", ".join(left)
        query = (
            f"SELECT count(*) FROM (SELECT {keys} FROM read_parquet('{source}') GROUP BY {keys} "
            f"HAVING count(DISTINCT {right}) > 1)"
        )
        relation = database.sql(query)
        assert relation is not None, "a SELECT gives a relation"
        broken += relation.fetchall()[0][0]
    return f"{broken} broken groups, five dependencies"


MEASUREMENT = Measurement(
    module="bench.scale",
    about=__doc__,
    mark="figures",
    steps={"make": make, "fit": fit, "draw": draw, "check": check, "duckdb": duckdb},
)

if __name__ == "__main__":
    MEASUREMENT.main()
