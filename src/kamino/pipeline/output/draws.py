"""Drawing tables from a fitted model, one after the other: how many rows, by which random numbers, to where."""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kamino.errors import InputError
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.conditions import Given, one_record
from kamino.pipeline.output.drawn_table import Ways, draw
from kamino.pipeline.output.in_blocks import in_blocks, takes_blocks
from kamino.pipeline.output.writing import WrittenTable, write_drawn
from kamino.pipeline.plan.hopeless import refuse_beyond_a_day, refuse_beyond_memory

if TYPE_CHECKING:
    from kamino.io.databases.catalogue import Catalogue
    from kamino.pipeline.verifying.signatures import Sign


@dataclass(kw_only=True)
class RandomSource:
    """The random numbers of tables that are drawn: those of the operating system, unless there is a seed.

    `seed` is that of a test; `draw_seed` belongs to a run in a durable ledger, whose tables are the same when it goes
    on. Counts how many tables were drawn.
    """

    seed: int | None = None
    draw_seed: int | None = None
    num_draws: int = field(default=0)

    def next(self, seed: int | None = None, draw_number: int = 0) -> np.random.Generator:
        """The source for the next table; `seed` and `draw_number` choose one of the tables of a seed."""
        chosen = seed if seed is not None else self.seed
        key = None if chosen is None else [chosen, draw_number]
        if chosen is None and self.draw_seed is not None:
            # The first draw of a run that went on is the first draw of that run; later ones differ from it.
            key = [self.draw_seed, draw_number, self.num_draws]
            self.num_draws += 1
        return np.random.default_rng(key)


@dataclass(frozen=True, kw_only=True)
class DrawRequest:
    """Which rows to draw. `draw_number` says, with a seed, which of its tables."""

    num_rows: int | None = None
    given: Given | None = None
    seed: int | None = None
    draw_number: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", one_record(self.given))
        for name in ("num_rows", "seed", "draw_number"):
            number = getattr(self, name)
            if number is not None and (isinstance(number, bool) or not isinstance(number, numbers.Integral)):
                raise InputError(f"found {name} {number!r} of type {type(number).__name__}; expected a whole number")
            if name != "num_rows" and number is not None and number < 0:
                raise InputError(f"found {name} {number}; expected 0 or more")


def draw_frame(fitted: Fitted, asked: DrawRequest, source: RandomSource, ways: Ways = Ways()) -> pa.Table:
    """Draw a table into memory."""
    rows, rng = rows_and_source(fitted, asked, source)
    return draw(fitted, rows, rng, given=asked.given, ways=ways)


def draw_into(
    fitted: Fitted,
    path: str | os.PathLike[str],
    asked: DrawRequest,
    source: RandomSource,
    ways: Ways = Ways(),
    *,
    sign: Sign | None = None,
    catalogue: Catalogue | None = None,
) -> WrittenTable:
    """Draw a table into a file or a database, with its certificate; types of a database are those of `catalogue`."""
    rows, rng = rows_and_source(fitted, asked, source, to_file=not asked.given and takes_blocks(path))
    return write_drawn(fitted, path, rows, rng, given=asked.given, ways=ways, sign=sign, catalogue=catalogue)


def rows_and_source(
    fitted: Fitted, asked: DrawRequest, source: RandomSource, *, to_file: bool = False
) -> tuple[int, np.random.Generator]:
    """How many rows to draw, and the random numbers; what no memory holds and no day draws is refused."""
    rows = asked.num_rows
    if not (to_file and rows is not None and in_blocks(fitted, rows)):
        refuse_beyond_memory(rows, len(fitted.schema))
    refuse_beyond_a_day(rows, len(fitted.schema))
    return fitted.num_rows if rows is None else rows, source.next(asked.seed, asked.draw_number)
