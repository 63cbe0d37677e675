"""Repair: rows that break a hard constraint give way to rows that do not. Never fewer rows than asked.

Most tables never come here, because the steps already keep the constraints they end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kamino.constraints import DenialConstraint, print_constraint
from kamino.errors import SamplingError
from kamino.model.protocol import IntArray
from kamino.sampling.comparing import Columns, Judge, Mask
from kamino.sampling.existence import Answer, find_table
from kamino.sampling.index import ViolationIndex
from kamino.sampling.refusal import unsatisfiable
from kamino.sampling.row_search import FoundRows, find_rows
from kamino.sampling.violations import broken_constraints, violations_by_row

Table = dict[str, IntArray]
_TRIES = 400


def repair(
    judge: Judge, columns: Columns, hard: Sequence[DenialConstraint], num_rows: int, rng: np.random.Generator
) -> Table:
    """Return the table with every hard constraint kept, changing as few rows as it can.

    Raises:
        SamplingError: no such table exists, or none was found; the constraints are named.

    Guarantees:
        What it returns has as many rows as asked and no violation.  [test_repair_leaves_no_violation]
        A table without violations comes back as it is.  [test_repair_leaves_clean_tables_alone]
    """
    table = {name: codes.copy() for name, codes in columns.items()}
    broken = broken_constraints(judge.codec, table, hard)
    if not broken:
        return table
    kept = _keep_most(judge, table, hard)
    if not _refill(judge, table, hard, kept, rng):
        _start_over(judge, table, hard, num_rows)
    left = broken_constraints(judge.codec, table, hard)
    if left:
        raise _not_found(left)
    return table


def _keep_most(judge: Judge, table: Table, hard: Sequence[DenialConstraint]) -> Mask:
    """Keep the rows without violations, then, those with fewest first, all that still fit."""
    counts = violations_by_row(judge.codec, table, hard)
    kept: Mask = counts == 0
    alone = [c for c in hard if c.is_unary]
    indexes = [ViolationIndex(c, judge) for c in hard if not c.is_unary]
    for index in indexes:
        index.add_many(table, np.flatnonzero(kept))
    bad = np.flatnonzero(~kept)
    for constraint in alone:
        bad = bad[~judge.violates(constraint, *[{n: table[n][bad] for n in constraint.attributes}] * 2)]
    for row in bad[np.argsort(counts[bad], kind="stable")]:
        if _fits(indexes, {name: codes[row : row + 1] for name, codes in table.items()}):
            kept[row] = True
            _settle(indexes, table, int(row))
    return kept


def _fits(indexes: Sequence[ViolationIndex], row: Columns) -> bool:
    return all(index.count(row)[0] == 0 for index in indexes)


def _settle(indexes: Sequence[ViolationIndex], table: Columns, row: int) -> None:
    for index in indexes:
        index.add({name: int(table[name][row]) for name in index.attributes})


def _refill(judge: Judge, table: Table, hard: Sequence[DenialConstraint], kept: Mask, rng: np.random.Generator) -> bool:
    """Fill the rows that were not kept: with copies of kept rows, or with fresh rows that fit; say if it worked."""
    rows, empty = np.flatnonzero(kept), np.flatnonzero(~kept)
    pairs = [c for c in hard if not c.is_unary]
    if len(rows):
        mine = {name: codes[rows] for name, codes in table.items()}
        repeatable = np.ones(len(rows), dtype=np.bool_)
        for constraint in pairs:
            repeatable &= ~judge.violates(constraint, mine, mine)
        if repeatable.any():
            _copy(table, rng.choice(rows[repeatable], len(empty)), empty)
            return True
    indexes = [ViolationIndex(c, judge) for c in pairs]
    for index in indexes:
        index.add_many(table, rows)
    return _fill_fresh(judge, table, hard, empty, indexes, rng)


def _copy(table: Table, source: IntArray, target: IntArray) -> None:
    for codes in table.values():
        codes[target] = codes[source]


def _fill_fresh(
    judge: Judge,
    table: Table,
    hard: Sequence[DenialConstraint],
    empty: IntArray,
    indexes: Sequence[ViolationIndex],
    rng: np.random.Generator,
) -> bool:
    """Fill rows one by one with variants of what stood there, then with any rows that satisfy the checks."""
    alone = [c for c in hard if c.is_unary]
    spare = find_rows(judge, hard, repeatable=False)
    for row in empty:
        variants = _variants(judge, table, int(row), hard, rng)
        chosen = _first_fit(judge, variants, alone, indexes)
        if chosen is None and spare.num_rows:
            chosen = _first_fit(judge, _from_spare(table, int(row), spare, rng), alone, indexes)
        if chosen is None:
            return False
        for name, code in chosen.items():
            table[name][row] = code
        _settle(indexes, table, int(row))
    return True


def _variants(
    judge: Judge, table: Table, row: int, hard: Sequence[DenialConstraint], rng: np.random.Generator
) -> Table:
    """Return the row with the attributes of constraints that it breaks with its own copy drawn anew, at random."""
    one = {name: codes[row : row + 1] for name, codes in table.items()}
    changed = {n for c in hard if not c.is_unary and judge.violates(c, one, one)[0] for n in c.attributes}
    result = {name: np.repeat(codes, _TRIES) for name, codes in one.items()}
    for name in changed:
        result[name] = rng.integers(0, judge.codec[name].size, _TRIES)
    return result


def _from_spare(table: Table, row: int, spare: FoundRows, rng: np.random.Generator) -> Table:
    order = rng.permutation(spare.num_rows)[: 4 * _TRIES]
    found = spare.take(order)
    return {name: found[name] if name in found else np.repeat(codes[row], len(order)) for name, codes in table.items()}


def _first_fit(
    judge: Judge, variants: Table, alone: Sequence[DenialConstraint], indexes: Sequence[ViolationIndex]
) -> Mapping[str, int] | None:
    fits = np.ones(len(next(iter(variants.values()))), dtype=np.bool_)
    for constraint in alone:
        fits &= ~judge.violates(constraint, variants, variants)
    for index in indexes:
        fits &= index.count(variants) == 0
    if not fits.any():
        return None
    place = int(np.argmax(fits))
    return {name: int(codes[place]) for name, codes in variants.items()}


def _start_over(judge: Judge, table: Table, hard: Sequence[DenialConstraint], num_rows: int) -> None:
    """Put a table that is known to satisfy the constraints in the place of the constrained columns."""
    witness = find_table(judge, hard, num_rows)
    if witness.answer is Answer.NO:
        raise unsatisfiable(judge, hard, num_rows)
    if witness.answer is Answer.UNKNOWN:
        raise _not_found(hard)
    for name, codes in witness.columns.items():
        table[name] = codes.copy()


def _not_found(constraints: Sequence[DenialConstraint]) -> SamplingError:
    lines = "\n".join(f"  {print_constraint(constraint)}" for constraint in constraints)
    return SamplingError(
        "no table was found that satisfies these constraints together (there may be one):\n"
        f"{lines}\nAsk for fewer rows, widen a domain, or drop or soften a constraint."
    )
