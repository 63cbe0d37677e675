"""Measure a fit by Spark, and rows drawn by its workers.

    python -m bench.spark 5000000 --folder FOLDER                        # print the figures
    python -m bench.spark 5000000 --folder FOLDER --write docs/scale.md

The built-in table is written as Parquet and read as a table of Spark with two cores of this machine, `local[2]`, which
encodes and counts it (domains public, epsilon 1). As many rows are then drawn with all six constraints by two workers
of Spark, by four, and by two processes without Spark: what they write must be the same to the byte. Processor seconds
and memory of a row are those of the process that was started; those of Spark are in the last column.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from bench.scale import make, private
from bench.stepped import Measurement
from kamino.datasets import TAX_CONSTRAINTS


def fit(folder: Path, rows: int) -> str:
    """Fit where the rows are, and save the model."""
    from kamino import Synthesizer
    from kamino.io.streams.spark_session import spark_session

    session = _quiet(spark_session("spark://local[2]"))
    made = Synthesizer(constraints=TAX_CONSTRAINTS, trust_domain=True, seed=1)
    made.fit(session.read.parquet(str(private(folder, rows)))).save(folder / f"spark-{rows}.kamino")
    return f"{len(made.ledger['entries'])} releases; {_others()}"


def same_model(folder: Path, rows: int) -> str:
    """Fit by the streamed engine, and compare the two models."""
    from kamino import Synthesizer

    made = Synthesizer(constraints=TAX_CONSTRAINTS, trust_domain=True, seed=1, engine="streamed")
    made.fit(private(folder, rows)).save(folder / f"streamed-{rows}.kamino")
    models = [(folder / f"{name}-{rows}.kamino").read_bytes() for name in ("spark", "streamed")]
    return "the same model file" if models[0] == models[1] else "another model file"


def by_two(folder: Path, rows: int) -> str:
    """Draw by two workers of Spark."""
    return _draw(folder, rows, "spark://local[2]")


def by_four(folder: Path, rows: int) -> str:
    """Draw by four workers of Spark."""
    return _draw(folder, rows, "spark://local[4]")


def by_processes(folder: Path, rows: int) -> str:
    """Draw by two processes of this machine."""
    return _draw(folder, rows, "2")


def _draw(folder: Path, rows: int, workers: str) -> str:
    from kamino import Synthesizer

    if workers.startswith("spark:"):
        from kamino.io.streams.spark_session import spark_session

        _quiet(spark_session(workers))
    made = Synthesizer.load(folder / f"streamed-{rows}.kamino")
    written = made.write(folder / f"spark-drawn-{rows}.parquet", rows, seed=3, workers=workers)
    digest = hashlib.sha256(written.path.read_bytes()).hexdigest()
    return f"{sum(written.violations.values())} violations, sha256 {digest[:12]}; {_others()}"


def _quiet(session: Any) -> Any:
    session.sparkContext.setLogLevel("OFF")
    return session


def _others() -> str:
    """Processor seconds and memory of all processes below this one, as they are now."""
    import psutil

    found = psutil.Process().children(recursive=True)
    times = [each.cpu_times() for each in found]
    seconds = sum(each.user + each.system + each.children_user + each.children_system for each in times)
    memory = sum(each.memory_info().rss for each in found) / 2**20
    return f"{seconds:,.1f} CPU s and {memory:,.0f} MiB in {len(found)} other processes"


MEASUREMENT = Measurement(
    module="bench.spark",
    about=__doc__,
    mark="spark",
    steps={
        "make": make,
        "fit": fit,
        "same_model": same_model,
        "by_two": by_two,
        "by_four": by_four,
        "by_processes": by_processes,
    },
)

if __name__ == "__main__":
    MEASUREMENT.main()
