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
from kamino.pipeline.stages import Stage, silent
from kamino.sampling import Sampling, SamplingPlan
from kamino.sampling.closed_world import can_close, why_not_closed

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
    mode = fitted.settings.sampling if ways.mode is None else ways.mode
    named = {name for c in fitted.constraints if not c.is_unary for name in c.attributes}
    return (
        num_rows > WHOLE_BLOCKS * BLOCK_ROWS
        and not given
        and not fitted.groups
        and mode is Sampling.CONSTRAINT_AWARE
        and why_not_closed(fitted.constraints) is None
        and not named & set(fitted.differences)
        and can_close(fitted.plan_for(num_rows))
    )


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
