"""Repair: rows that break a hard constraint give way to rows that do not. Never fewer rows than asked.

Most tables never come here, because the steps already keep the constraints they end. Rows become copies of others where
they can; where a key forbids that, the attributes that constraints connect with it are put together anew, and others
stay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import ConstraintClass, DenialConstraint, print_constraint
from kamino.errors import SamplingError
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.sampling.codes.recounting import broken_constraints, violations_by_row
from kamino.sampling.feasible.existence import Answer, find_table
from kamino.sampling.feasible.refusal import unsatisfiable
from kamino.sampling.feasible.row_search import FoundRows, find_rows
from kamino.sampling.partners import DEAD, Block, make_partners
from kamino.sampling.partners.kernel import clashes_between
from kamino.sampling.plan.shapes import shape_of
from kamino.sampling.repair.key_places import Row
from kamino.sampling.repair.row_maker import RowMaker, connected

Table = dict[str, IntArray]
_TRIES = 400
# How often rows give way where no row fits, and how many at a time.
_WAYS_OUT, _GIVING_WAY = 60, 20
# Rows of a table in which some are put together anew, at most: all of them are listed, which takes kilobytes a row.
_MOST_MADE = 1 << 18
# Rows that broke a constraint are looked at in blocks, for speed alone.
_BLOCK = 256


def repair(
    judge: Judge,
    columns: Columns,
    hard: Sequence[DenialConstraint],
    num_rows: int,
    rng: np.random.Generator,
    fixed: Collection[str] = (),
) -> Table:
    """Return the table with every hard constraint kept, changing as few rows as it can, and no column of `fixed`.

    Raises:
        SamplingError: no such table exists, or none was found; the constraints are named.

    Guarantees:
        What it returns has as many rows as asked and no violation.  [test_repair_leaves_no_violation]
        A table without violations comes back as it is.  [test_repair_leaves_clean_tables_alone]
        Fixed columns stay as they are.  [test_fixed_columns_stay]
    """
    table = {name: codes.copy() for name, codes in columns.items()}
    broken = broken_constraints(judge.codec, table, hard)
    if not broken:
        return table
    if not fixed and any(shape_of(c)[0] is ConstraintClass.KEY for c in hard):
        _repair_parts(judge, table, hard, rng)
        broken = broken_constraints(judge.codec, table, hard)
        if not broken:
            return table
    work = _Repair(judge=judge, table=table, hard=tuple(hard), fixed=frozenset(fixed), rng=rng)
    if not work.refill(work.keep_most()):
        if fixed:
            raise _not_found(broken)
        _start_over(judge, table, hard, num_rows)
    left = broken_constraints(judge.codec, table, hard)
    if left:
        raise _not_found(left)
    return table


def _repair_parts(judge: Judge, table: Table, hard: Sequence[DenialConstraint], rng: np.random.Generator) -> None:
    """Repair groups of attributes that no constraint connects, each group by itself; columns of other groups stay.

    Guarantees:
        Rows of a table that satisfies its rules are found.  [test_true_tables_are_drawn]
    """
    names = sorted({name for constraint in hard for name in constraint.attributes})
    for part in connected(names, hard):
        own = tuple(c for c in hard if set(c.attributes) <= set(part))
        columns = {name: table[name] for name in part}
        if broken_constraints(judge.codec, columns, own):
            work = _Repair(judge=judge, table=columns, hard=own, fixed=frozenset(), rng=rng)
            kept = work.keep_most()
            if not work.copy_kept(kept) and len(kept) <= _MOST_MADE:
                work.make_rows(kept)
            table.update(columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Repair:
    """A table under repair; `refill` changes it."""

    judge: Judge
    table: Table
    hard: tuple[DenialConstraint, ...]
    fixed: frozenset[str]
    rng: np.random.Generator

    @property
    def pairs(self) -> list[DenialConstraint]:
        return [c for c in self.hard if not c.is_unary]

    def keep_most(self) -> Mask:
        """Keep the rows without violations, then, those with fewest first, all that still fit."""
        counts = violations_by_row(self.judge.codec, self.table, self.hard)
        kept: Mask = counts == 0
        bad = np.flatnonzero(~kept)
        bad = bad[~self._breaks_checks({name: codes[bad] for name, codes in self.table.items()})]
        bad = bad[np.argsort(counts[bad], kind="stable")]
        counters = [(make_partners(c, self.judge, c.attributes[-1], self.table, len(kept)), c) for c in self.pairs]
        for partners, constraint in counters:
            partners.load(np.where(kept, self.table[constraint.attributes[-1]], DEAD))
        for start in range(0, len(bad), _BLOCK):
            rows = bad[start : start + _BLOCK]
            codes = [self.table[constraint.attributes[-1]] for _, constraint in counters]
            for (partners, _), column in zip(counters, codes, strict=True):
                partners.begin(
                    Block(
                        rows=rows,
                        candidates=column[rows][:, None],
                        listed=False,
                        outside=np.where(kept, column, DEAD),
                        inside=np.full(len(rows), DEAD, dtype=np.int64),
                    )
                )
            for place, row in enumerate(rows.tolist()):
                if all(partners.count(place)[0] == 0 for partners, _ in counters):
                    kept[row] = True
                    for (partners, _), column in zip(counters, codes, strict=True):
                        partners.change(place, int(column[row]), 1)
        return kept

    def refill(self, kept: Mask) -> bool:
        """Fill the rows that were not kept: with copies of kept rows, or with rows that fit; say if it worked."""
        if not self.fixed and self.copy_kept(kept):
            return True
        spare = find_rows(self.judge, self.hard, repeatable=False)
        for row in np.flatnonzero(~kept).tolist():
            if not self._fill(row, kept, spare):
                return False
            kept[row] = True
        return True

    def copy_kept(self, kept: Mask) -> bool:
        """Fill the rows that were not kept with copies of kept rows; say if there are rows that may be copied."""
        rows, empty = np.flatnonzero(kept), np.flatnonzero(~kept)
        settled = {name: codes[rows] for name, codes in self.table.items()}
        repeatable = np.ones(len(rows), dtype=np.bool_)
        for constraint in self.pairs:
            repeatable &= ~self.judge.violates(constraint, settled, settled)
        if not repeatable.any():
            return False
        source = self.rng.choice(rows[repeatable], len(empty))
        for codes in self.table.values():
            codes[empty] = codes[source]
        return True

    def make_rows(self, kept: Mask) -> None:
        """Fill the rows that were not kept with rows that fit; where none is found, others give way now and then."""
        names = sorted(self.table)
        maker = RowMaker(self.judge, self.hard, names, len(kept), self.rng)

        def at(row: int) -> tuple[Row, int]:
            return {name: int(self.table[name][row]) for name in names}, row

        there = np.flatnonzero(kept)
        maker.add_first({name: self.table[name][there] for name in names}, there)
        wanting = [at(row) for row in np.flatnonzero(~kept).tolist()]
        ways_out = _WAYS_OUT
        while wanting and ways_out:
            own, place = wanting[-1]
            made = maker.make(own)
            if made is not None:
                wanting.pop()
                maker.add(made, place)
                continue
            ways_out -= 1
            wanting += [maker.drop() for _ in range(min(_GIVING_WAY, maker.count))]
        if not wanting:
            maker.write(self.table)

    def _fill(self, row: int, kept: Mask, spare: FoundRows) -> bool:
        """Fill one row with a variant of what stands there, or with any row that satisfies the checks."""
        if self._take_first(row, self._variants(row), kept):
            return True
        if self.fixed and self._take_first(row, self._like_kept(row, kept), kept):
            return True
        return bool(spare.num_rows) and self._take_first(row, self._from_spare(row, spare), kept)

    def _variants(self, row: int) -> Table:
        """Return the row with the attributes of constraints that it breaks with its own copy drawn anew, at random."""
        one = {name: codes[row : row + 1] for name, codes in self.table.items()}
        changed = {n for c in self.pairs if self.judge.violates(c, one, one)[0] for n in c.attributes}
        if self.fixed:
            changed = {n for c in self.hard for n in c.attributes}
        result = {name: np.repeat(codes, _TRIES) for name, codes in one.items()}
        for name in sorted(changed - self.fixed):
            result[name] = self.rng.integers(0, self.judge.codec[name].size, _TRIES)
        return result

    def _like_kept(self, row: int, kept: Mask) -> Table:
        """Return the row's fixed values, beside the other values of kept rows: first of those most like it."""
        rows = np.flatnonzero(kept)
        alike = np.sum([self.table[name][rows] == self.table[name][row] for name in sorted(self.fixed)], axis=0)
        rows = rows[np.argsort(-alike, kind="stable")][: 4 * _TRIES]
        return {
            name: np.repeat(codes[row], len(rows)) if name in self.fixed else codes[rows]
            for name, codes in self.table.items()
        }

    def _from_spare(self, row: int, spare: FoundRows) -> Table:
        order = self.rng.permutation(spare.num_rows)[: 4 * _TRIES]
        found = spare.take(order)
        return {
            name: found[name] if name in found and name not in self.fixed else np.repeat(codes[row], len(order))
            for name, codes in self.table.items()
        }

    def _take_first(self, row: int, variants: Table, kept: Mask) -> bool:
        """Put the first variant that fits into the row; say if there is one."""
        fits = np.flatnonzero(~self._breaks_checks(variants))
        settled = {name: codes[kept] for name, codes in self.table.items()}
        for constraint in self.pairs:
            if len(fits) == 0:
                return False
            left = {name: variants[name][fits] for name in constraint.attributes}
            fits = fits[clashes_between(constraint, self.judge, left, settled) == 0]
        if len(fits) == 0:
            return False
        for name, codes in variants.items():
            self.table[name][row] = codes[fits[0]]
        return True

    def _breaks_checks(self, rows: Table) -> Mask:
        broken = np.zeros(len(next(iter(rows.values()))), dtype=np.bool_)
        for constraint in self.hard:
            if constraint.is_unary:
                broken |= self.judge.violates(constraint, rows, rows)
        return broken


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
