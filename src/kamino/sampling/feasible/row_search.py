"""All rows that satisfy constraints on single rows, found attribute by attribute; for small domains and small sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Comparison, Constant, Operator, is_cross
from kamino.sampling.codes.comparing import Codes, Judge, Mask

# How many partial rows are followed at once, and how many codes of one attribute are tried.
MAX_ROWS = 40_000
MAX_CODES = 512
# How many combinations of independent choices are laid out at least; all of them, where there are no more.
MOST_JOINED = 4_000


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
    wanted = [c for c in constraints if c.is_unary or (repeatable and not spares_copies(c))]
    names = sorted({name for c in constraints for name in c.attributes}, key=lambda name: judge.codec[name].size)
    parts = []
    for group in _connected(names, wanted):
        parts.append(_search(judge, group, [c for c in wanted if set(c.attributes) <= set(group)], constraints))
        if not parts[-1].num_rows:
            # Without a choice for some attributes there is no row, whatever the others are.
            nothing = {name: np.zeros(0, np.int64) for name in names}
            return FoundRows(columns=nothing, num_rows=0, complete=parts[-1].complete)
    return _joined(parts)


def _search(
    judge: Judge, group: Sequence[str], wanted: Sequence[DenialConstraint], constraints: Sequence[DenialConstraint]
) -> FoundRows:
    """Find the choices for attributes that constraints on single rows tie together, one attribute after the other."""
    columns: dict[str, Codes] = {}
    num_rows, complete = 1, True
    for name in _order_names(judge, group, wanted):
        codes, whole = tried_codes(judge, name, constraints)
        complete &= whole
        if num_rows * len(codes) > 50 * MAX_ROWS:
            keep = np.linspace(0, num_rows - 1, max(1, 50 * MAX_ROWS // len(codes))).astype(np.int64)
            columns, num_rows, complete = {n: c[keep] for n, c in columns.items()}, len(keep), False
        here = {*columns, name}
        checked = [c for c in wanted if name in c.attributes and here.issuperset(c.attributes)]
        chosen = _allowed(judge, checked, columns, num_rows, name, codes)
        if len(chosen) > MAX_ROWS:
            chosen, complete = chosen[np.linspace(0, len(chosen) - 1, MAX_ROWS).astype(np.int64)], False
        columns = {each: column[chosen // len(codes)] for each, column in columns.items()}
        columns[name] = codes[chosen % len(codes)]
        num_rows = len(chosen)
        if num_rows == 0:
            break
    return FoundRows(columns=columns, num_rows=num_rows, complete=complete)


def _allowed(
    judge: Judge,
    checked: Sequence[DenialConstraint],
    columns: Mapping[str, Codes],
    num_rows: int,
    name: str,
    codes: Codes,
) -> Codes:
    """Return which combinations of a partial row and a code satisfy constraints, as row * number of codes + code.

    Only the columns that the constraints speak of are laid out for all combinations.
    """
    spoken = {each for c in checked for each in c.attributes} - {name}
    every = {each: np.repeat(columns[each], len(codes)) for each in spoken}
    every[name] = np.tile(codes, num_rows) if checked else codes
    good = np.ones(num_rows * len(codes), dtype=np.bool_)
    for constraint in checked:
        good &= ~judge.violates(constraint, every, every)
    return np.flatnonzero(good)


def _joined(parts: Sequence[FoundRows]) -> FoundRows:
    """Return all combinations of choices that do not depend on each other, or some of them, spread evenly."""
    limit = max(MOST_JOINED, MAX_ROWS // max(len(parts), 1))
    columns: dict[str, Codes] = {}
    num_rows, complete = 1, True
    for part in parts:
        total = num_rows * part.num_rows
        spread = len(parts) > 1 and total > limit
        chosen = np.linspace(0, total - 1, limit).astype(np.int64) if spread else np.arange(total, dtype=np.int64)
        columns = {name: column[chosen // part.num_rows] for name, column in columns.items()}
        columns |= {name: column[chosen % part.num_rows] for name, column in part.columns.items()}
        num_rows, complete = len(chosen), complete and part.complete and not spread
    return FoundRows(columns=columns, num_rows=num_rows, complete=complete)


def spares_copies(constraint: DenialConstraint) -> bool:
    """Whether no row violates a constraint on pairs together with its copy: it asks for two values of one attribute."""
    return any(
        isinstance(p, Comparison)
        and is_cross(p)
        and p.op in (Operator.NE, Operator.LT, Operator.GT)
        and {column.name for column in p.columns} == {p.left.name}
        for p in constraint.predicates
    )


def _connected(names: Sequence[str], constraints: Sequence[DenialConstraint]) -> list[list[str]]:
    """Split attributes into groups that no constraint connects, in the order of the names."""
    group_of = {name: [name] for name in names}
    for constraint in constraints:
        together = [name for name in names if any(name in group_of[each] for each in constraint.attributes)]
        for name in together:
            group_of[name] = together
    found: list[list[str]] = []
    for name in names:
        if not any(name in group for group in found):
            found.append(group_of[name])
    return found


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


def _order_names(judge: Judge, names: Sequence[str], constraints: Sequence[DenialConstraint]) -> list[str]:
    """Put attributes that share constraints next to each other, so that filters act early."""
    left = sorted(names, key=lambda name: judge.codec[name].size)
    order: list[str] = []
    while left:
        near = [name for name in left if any({name, *order[-1:]} <= set(c.attributes) for c in constraints)]
        order.append((near or left)[0])
        left.remove(order[-1])
    return order
