"""True tables, fitted and drawn: what was violated, what was refused, and what it cost."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

import numpy as np
from tests.sampling.true_tables.making import TrueTable
from tests.sampling.true_tables.motifs import true_table

from kamino.constraints import count_violations
from kamino.pipeline import Synthesizer
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output import in_blocks
from kamino.pipeline.output.drawn_table import draw_columns
from kamino.schema import CodedTable

EPSILONS = (0.1, 1.0, math.inf)
FEWEST_COLUMNS, MOST_COLUMNS = 2, 60


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one table at one epsilon, drawn in one way."""

    seed: int
    number: int
    epsilon: float
    way: str
    columns: int
    rules: int
    seconds: float
    violations: int = 0
    fault: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the table was drawn, and kept its rules."""
        return not self.violations and not self.fault


def table_of(seed: int, number: int, rows: int, most_columns: int = MOST_COLUMNS) -> tuple[TrueTable, int]:
    """The table of a number, and how many of its rows are fitted: the rest only shows that so many can be drawn."""
    rng = np.random.default_rng([seed, number])
    columns = round(float(np.exp(rng.uniform(np.log(FEWEST_COLUMNS), np.log(most_columns + 1)))))
    fitted = int(rng.choice([rows, rows, rows // 3, max(rows // 100, 1)]))
    return true_table(rng, rows=rows, columns=min(columns, most_columns)), fitted


def run(seed: int, number: int, epsilon: float, rows: int, most_columns: int = MOST_COLUMNS) -> Iterator[Outcome]:
    """Fit a table and draw it in memory, then in blocks where this can be."""
    made, fitted_rows = table_of(seed, number, rows, most_columns)
    facts = {"seed": seed, "number": number, "epsilon": epsilon}
    facts |= {"columns": made.table.num_columns, "rules": len(made.rules)}
    begin = time.process_time()
    try:
        synthesizer = Synthesizer(
            made.schema, made.constraints, epsilon=epsilon, delta=1e-6, unit="row", seed=number, accept=True
        )
        fitted = synthesizer.fit(made.table.slice(0, fitted_rows), num_rows=rows, progress=False).fitted
    except Exception:
        yield Outcome(way="fit", seconds=time.process_time() - begin, fault=traceback.format_exc(), **facts)
        return
    fitting = time.process_time() - begin
    for way in ("memory", "blocks"):
        begin = time.process_time()
        try:
            codes = _drawn(fitted, rows, way, number)
        except Exception:
            seconds = fitting + time.process_time() - begin
            yield Outcome(way=way, seconds=seconds, fault=traceback.format_exc(), **facts)
            continue
        if codes is None:
            return
        seconds = fitting + time.process_time() - begin
        yield Outcome(way=way, seconds=seconds, violations=_violations(made, fitted, codes, rows), **facts)


def _drawn(fitted: Fitted, rows: int, way: str, seed: int) -> dict[str, np.ndarray] | None:
    """A table drawn as a whole, or in blocks of a quarter of it; None if it cannot be drawn in blocks."""
    rng = np.random.default_rng(seed)
    if way == "memory":
        return draw_columns(fitted, rows, rng)
    with mock.patch.multiple(in_blocks, BLOCK_ROWS=max(rows // 4, 1), WHOLE_BLOCKS=1):
        if not in_blocks.in_blocks(fitted, rows):
            return None
        blocks = list(in_blocks.draw_in_blocks(fitted, rows, rng))
    return {name: np.concatenate([np.asarray(block[name]) for block in blocks]) for name in blocks[0]}


def _violations(made: TrueTable, fitted: Fitted, codes: dict[str, np.ndarray], rows: int) -> int:
    table = fitted.codec.decode(CodedTable(columns=codes, num_rows=rows))
    assert table.num_rows == rows
    return sum(count_violations(table, rule) for rule in made.constraints if rule.is_hard)
