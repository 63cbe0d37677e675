"""Drawing a table that is too long to be held: block by block, each by itself, in a world that the first one fixes.

The result depends on the random numbers and on the size of a block, and on nothing else: each block has a stream of its
own, so that blocks can be drawn in any order and anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from kamino.arrays import IntArray
from kamino.io.databases.storing import DatabaseTable
from kamino.io.formats.compressed import kind_of
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.block_workers import ALONE, Block, BlockJob, draw_by_workers
from kamino.pipeline.output.block_world import BlockWorld
from kamino.pipeline.output.drawn_table import Ways, draw_codes
from kamino.pipeline.plan.hopeless import memory_of
from kamino.pipeline.plan.run_plan import RunPlan, what_binds
from kamino.pipeline.stages import Stage, silent
from kamino.sampling import SamplingPlan

#: Rows of a block.
BLOCK_ROWS = 1 << 20
#: Tables of more blocks than this are drawn block by block; shorter ones are drawn as a whole.
WHOLE_BLOCKS = 4


def takes_blocks(path: str | os.PathLike[str]) -> bool:
    """Whether a table can be written to this place block by block: a database, or a file of this kind."""
    return DatabaseTable.of(path) is not None or kind_of(Path(path)) in (".csv", ".parquet")


def in_blocks(fitted: Fitted, num_rows: int, *, given: object = None, ways: Ways = Ways()) -> bool:
    """Whether a table is drawn block by block: it is long, and nothing that is asked for binds all its rows together.

    Guarantees:
        It follows from what is asked for and from public facts.  [test_what_binds_all_rows_is_drawn_as_a_whole]
    """
    return is_long(num_rows) and _what_binds(fitted, num_rows, given, ways) is None


def is_long(num_rows: int | None) -> bool:
    """Whether a table has more rows than are drawn as a whole without need."""
    return num_rows is not None and num_rows > WHOLE_BLOCKS * BLOCK_ROWS


def why_whole(
    fitted: Fitted, path: str | os.PathLike[str], num_rows: int, *, given: object = None, ways: Ways = Ways()
) -> str | None:
    """Say why a long table is drawn as a whole, and what that takes; None for a short one, and one drawn in blocks.

    Guarantees:
        Whoever asks for a long table is told where it is held in memory.  [test_drawing_as_a_whole_is_told]
    """
    if not is_long(num_rows):
        return None
    reason = _what_binds(fitted, num_rows, given, ways)
    if reason is None and not takes_blocks(path):
        reason = f"a file that ends in {Path(path).suffix} is written at once"
    return None if reason is None else whole_text(num_rows, len(fitted.schema), reason)


def whole_text(num_rows: int, num_columns: int, reason: str) -> str:
    """Say that a table is drawn as a whole."""
    needed = memory_of(num_rows, num_columns) / 2**30
    return f"{num_rows:,} rows are drawn as a whole, in about {needed:,.1f} GiB of memory, not in blocks: {reason}"


def why_plan_whole(plan: RunPlan) -> str | None:
    """Say why a long table of a plan will be drawn as a whole, as far as the plan can tell; see `why_whole`."""
    if plan.num_rows is None or not is_long(plan.num_rows) or not plan.is_complete or plan.what_binds is None:
        return None
    return whole_text(plan.num_rows, len(plan.known), plan.what_binds)


def _what_binds(fitted: Fitted, num_rows: int, given: object, ways: Ways) -> str | None:
    """What binds all rows together, in words; None if nothing does."""
    if given:
        return "rows with a condition (given) are drawn together"
    mode = fitted.settings.sampling if ways.mode is None else ways.mode
    binding = what_binds(fitted.constraints, lambda: fitted.plan_for(num_rows), mode, bool(fitted.groups))
    if binding is not None:
        return binding
    named = {name for c in fitted.constraints if not c.is_unary for name in c.attributes}
    close = sorted(named & set(fitted.differences))
    return f"{', '.join(close)}: dates that are drawn by their distance, in a constraint on pairs" if close else None


def draw_in_blocks(fitted: Fitted, num_rows: int, rng: np.random.Generator, ways: Ways = Ways()) -> Iterator[Block]:
    """Draw the codes of a table block by block.

    Guarantees:
        Exactly as many rows as asked for, and no hard constraint is violated by rows of any blocks.
        [test_blocks_keep_all_constraints_together]
        A block depends on its number and on the first one only.  [test_blocks_do_not_depend_on_each_other]
    """
    root = int(rng.integers(2**63))
    plan = fitted.plan_for(num_rows)
    starts = range(0, num_rows, BLOCK_ROWS)
    ways.progress(Stage.SAMPLE, 0, len(starts))
    first = draw_codes(
        fitted,
        min(BLOCK_ROWS, num_rows),
        np.random.default_rng([root, 0]),
        replace(ways, progress=silent, check=True),
    )
    yield dict(first)
    if ways.workers == ALONE:
        later = _by_itself(fitted, plan, first, num_rows, root)
    else:
        later = draw_by_workers(BlockJob.of(fitted, first, num_rows, BLOCK_ROWS, root), ways.workers)
    for number, block in enumerate(later, start=1):
        ways.progress(Stage.SAMPLE, number, len(starts))
        yield block


def _by_itself(
    fitted: Fitted, plan: SamplingPlan, first: Mapping[str, IntArray], num_rows: int, root: int
) -> Iterator[Block]:
    """Draw the later blocks in this process."""
    world = BlockWorld.of(fitted, plan, first, root)
    for number, start in enumerate(range(BLOCK_ROWS, num_rows, BLOCK_ROWS), start=1):
        yield dict(world.draw(fitted, number, min(BLOCK_ROWS, num_rows - start), root))
