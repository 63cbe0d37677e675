"""All rows that satisfy constraints on single rows, found attribute by attribute; for small domains and small sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Comparison, Constant
from kamino.sampling.codes.comparing import Codes, Judge, Mask

# How many partial rows are followed at once, and how many codes of one attribute are tried.
MAX_ROWS = 40_000
MAX_CODES = 512


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundRows:
    """Rows as codes; `complete` says that there are no others."""

    columns: dict[str, Codes]
    num_rows: int
    complete: bool

    def take(self, where: Mask | Codes) -> dict[str, Codes]:
        """Return the chosen rows."""
        return {name: codes[where] for name, codes in self.columns.items()}


def find_rows(judge: Judge, constraints: Sequence[DenialConstraint], *, repeatable: bool) -> FoundRows:
    """Return rows over the attributes of `constraints` that satisfy those on single rows.

    With `repeatable`, only rows of which a table may hold any number of copies: no constraint on pairs is violated by
    a row and its copy.

    Guarantees:
        Every row found satisfies the constraints; where `complete`, none is missing.  [test_found_rows_are_all_rows]
    """
    wanted = [c for c in constraints if c.is_unary or repeatable]
    names = _order_names(judge, constraints)
    columns: dict[str, Codes] = {}
    num_rows, complete = 1, True
    for name in names:
        codes, whole = tried_codes(judge, name, constraints)
        complete &= whole
        if num_rows * len(codes) > 50 * MAX_ROWS:
            keep = np.linspace(0, num_rows - 1, max(1, 50 * MAX_ROWS // len(codes))).astype(np.int64)
            columns, num_rows, complete = {n: c[keep] for n, c in columns.items()}, len(keep), False
        columns = {each: np.repeat(column, len(codes)) for each, column in columns.items()}
        columns[name] = np.tile(codes, num_rows)
        good = np.ones(num_rows * len(codes), dtype=np.bool_)
        for constraint in wanted:
            if name in constraint.attributes and columns.keys() >= set(constraint.attributes):
                good &= ~judge.violates(constraint, columns, columns)
        chosen = np.flatnonzero(good)
        if len(chosen) > MAX_ROWS:
            chosen, complete = chosen[np.linspace(0, len(chosen) - 1, MAX_ROWS).astype(np.int64)], False
        columns = {each: column[chosen] for each, column in columns.items()}
        num_rows = len(chosen)
        if num_rows == 0:
            break
    if num_rows == 0:
        columns = {name: np.zeros(0, np.int64) for name in names}
    return FoundRows(columns=columns, num_rows=num_rows, complete=complete)


def tried_codes(judge: Judge, name: str, constraints: Sequence[DenialConstraint]) -> tuple[Codes, bool]:
    """Return the codes worth trying: all of a small domain, else null, the ends, and those near constants."""
    codec = judge.codec[name]
    if codec.size <= MAX_CODES:
        return np.arange(codec.size, dtype=np.int64), True
    chosen = set(np.linspace(0, codec.num_values - 1, 33).astype(np.int64).tolist())
    for constraint in constraints:
        for predicate in constraint.predicates:
            match predicate:
                case Comparison(left=left, right=Constant(value=value)) if left.name == name:
                    place = codec.position(value) if codec.ordered else codec.code_of(value)
                    if place is not None:
                        chosen |= set(range(floor(place) - 1, ceil(place) + 2))
    chosen |= {1, codec.num_values - 2}
    if codec.null_code is not None:
        chosen.add(codec.null_code)
    return np.array(sorted(code for code in chosen if 0 <= code < codec.size), dtype=np.int64), False


def _order_names(judge: Judge, constraints: Sequence[DenialConstraint]) -> list[str]:
    """Put attributes that share constraints next to each other, so that filters act early."""
    left = sorted({name for c in constraints for name in c.attributes}, key=lambda name: judge.codec[name].size)
    order: list[str] = []
    while left:
        near = [name for name in left if any({name, *order[-1:]} <= set(c.attributes) for c in constraints)]
        order.append((near or left)[0])
        left.remove(order[-1])
    return order
