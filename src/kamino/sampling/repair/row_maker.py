"""Rows that fit beside others under keys, dependencies and whatever else, put together from what these rows have.

Where a key is hard no row can be copied. But what stands beside its values can: attributes that no key ties together
(clusters) have common rows already, and any row of one cluster may stand beside any of another, as long as keys find a
new combination. So values of keys are chosen first, each where its key has room; dependencies tell what follows from
them; the rest of each cluster is taken from a row with the same values where there is one, and put together value by
value where there is none. What orders and other constraints say is looked at in the end, and another row is tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np

from kamino.arrays import IntArray, stable_order
from kamino.constraints import ConstraintClass, DenialConstraint
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.partners.kernel import clashes_between
from kamino.sampling.plan.shapes import order_of, shape_of
from kamino.sampling.repair.key_places import KeyPlaces, Row

# Rows are tried so often; of each kind of candidate for a value, so many.
_TRIES = 40
_CANDIDATES = 6
# Domains up to this size are listed, to leave out values that single checks forbid and those that are taken.
_LISTED = 1 << 12

_Map: TypeAlias = dict[tuple[int, ...], list[int]]


class RowMaker:
    """Rows that stand together so far, and rows that fit beside them.

    Guarantees:
        What it makes violates nothing beside the rows that it was told of.  [test_made_rows_fit]
    """

    def __init__(
        self, judge: Judge, hard: Sequence[DenialConstraint], names: Sequence[str], room: int, rng: np.random.Generator
    ) -> None:
        self._judge, self._rng, self._names = judge, rng, tuple(names)
        self._null = {name: judge.codec[name].null_code for name in names}
        self._checks = [c for c in hard if c.is_unary]
        pairs = [c for c in hard if not c.is_unary]
        dependencies = [d for c in pairs if (d := shape_of(c)[1]) is not None]
        self._dependencies = [(tuple(sorted(d.left)), d.right) for d in dependencies]
        self._maps: list[_Map] = [{} for _ in self._dependencies]
        keys = [c for c in pairs if shape_of(c)[0] is ConstraintClass.KEY]
        self._values = {name: self._allowed(name) for name in names}
        self._keys = KeyPlaces([tuple(sorted(c.attributes)) for c in keys], self._sizes(), self._null)
        self._others = [c for c in pairs if c not in keys and shape_of(c)[1] is None]
        self._tying = [c for c in hard if c not in keys]
        self._clusters = connected(names, self._tying)
        self._settled = {name: np.zeros(room, dtype=np.int64) for name in names}
        self._places = np.zeros(room, dtype=np.int64)
        self._count = 0

    def _allowed(self, name: str) -> IntArray | None:
        """The values that checks on an attribute alone allow; None if there are too many to list."""
        size = self._judge.codec[name].num_values
        if size > _LISTED:
            return None
        columns = {name: np.arange(size, dtype=np.int64)}
        good = np.ones(size, dtype=np.bool_)
        for check in self._checks:
            if check.attributes == (name,):
                good &= ~self._judge.violates(check, columns, columns)
        return np.flatnonzero(good)

    def _sizes(self) -> dict[str, int]:
        """How many values attributes can have: no more than any attribute that they follow from."""
        codec = self._judge.codec
        sizes = {n: codec[n].num_values if listed is None else len(listed) for n, listed in self._values.items()}
        firm = [
            (left[0], right) for left, right in self._dependencies if len(left) == 1 and self._null[left[0]] is None
        ]
        for _ in firm:
            for left, right in firm:
                sizes[right] = min(sizes[right], sizes[left])
        return sizes

    def add_first(self, columns: Mapping[str, IntArray], places: IntArray) -> None:
        """Settle many rows at these places of their table, before any other.

        Guarantees:
            As settling them one by one.  [test_rows_added_at_once_are_those_added_one_by_one]
        """
        self._count = len(places)
        self._places[: self._count] = places
        for name in self._names:
            self._settled[name][: self._count] = columns[name]
        self._keys.add_first(columns)
        for (left, right), known in zip(self._dependencies, self._maps, strict=True):
            there = np.ones(self._count, dtype=np.bool_)
            for name in (*left, right):
                null = self._null[name]
                there &= True if null is None else columns[name] != null
            order = stable_order(*(columns[name][there] for name in left))
            sides = [columns[name][there][order] for name in (*left, right)]
            new = np.ones(len(order), dtype=np.bool_)
            if len(order):
                new[1:] = np.logical_or.reduce([np.diff(side) != 0 for side in sides[:-1]])
            begin = np.flatnonzero(new)
            lines = zip(*(side[begin].tolist() for side in sides), strict=True)
            for line, number in zip(lines, np.diff(np.append(begin, len(order))).tolist(), strict=True):
                known[line[:-1]] = [line[-1], number]

    def add(self, row: Row, place: int) -> None:
        """Settle a row, which stands at this place of its table."""
        self._places[self._count] = place
        for name, code in row.items():
            self._settled[name][self._count] = code
        self._count += 1
        self._keys.add(row)
        for (left, right), known in zip(self._dependencies, self._maps, strict=True):
            if self._are_there(row, (*left, right)):
                known.setdefault(tuple(row[name] for name in left), [row[right], 0])[1] += 1

    def drop(self) -> tuple[Row, int]:
        """Take back a random row; return it and its place in the table."""
        chosen = int(self._rng.integers(self._count))
        row = {name: int(codes[chosen]) for name, codes in self._settled.items()}
        place = int(self._places[chosen])
        self._count -= 1
        for codes in (*self._settled.values(), self._places):
            codes[chosen] = codes[self._count]
        self._keys.remove(row)
        for (left, right), known in zip(self._dependencies, self._maps, strict=True):
            if self._are_there(row, (*left, right)):
                entry = known[tuple(row[name] for name in left)]
                entry[1] -= 1
                if entry[1] == 0:
                    del known[tuple(row[name] for name in left)]
        return row, place

    def write(self, table: dict[str, IntArray]) -> None:
        """Put the settled rows in their places."""
        for name, codes in self._settled.items():
            table[name][self._places[: self._count]] = codes[: self._count]

    @property
    def count(self) -> int:
        """How many rows stand together."""
        return self._count

    def make(self, own: Row) -> Row | None:
        """Return a row that fits, with as much of `own` as can be; None if none was found."""
        for number in range(_TRIES):
            row = self._try(own if number < _TRIES // 2 else {})
            if row is not None:
                return row
        return None

    def _try(self, own: Row) -> Row | None:
        row: Row = {}
        for name in self._keys.order:
            if name not in row and not self._choose(row, name, self._for_keys(row, name, own)):
                return None
        for cluster in self._clusters:
            if not self._complete(row, cluster, own):
                return None
        return row

    def _complete(self, row: Row, cluster: Sequence[str], own: Row) -> bool:
        """Fill a cluster: as a row with the same values so far has it, or value by value."""
        there = [name for name in cluster if name in row]
        alike = self._rows_with(row, there)
        for place in self._some(alike, 2):
            filled = dict(row)
            if all(
                name in filled or self._put(filled, name, int(self._settled[name][place])) for name in cluster
            ) and self._holds(filled, row):
                row.update(filled)
                return True
        while names := [name for name in cluster if name not in row]:
            name = max(names, key=lambda each: self._ties(row, each))
            if not self._choose(row, name, self._for_cluster(row, name, own)):
                return False
        return True

    def _ties(self, row: Row, name: str) -> int:
        """How many constraints on an attribute compare it with nothing but what is there."""
        return sum(row.keys() >= set(c.attributes) - {name} for c in self._tying if name in c.attributes)

    def _choose(self, row: Row, name: str, candidates: Iterator[int]) -> bool:
        """Take the first candidate with which nothing contradicts, and what follows from it."""
        for code in candidates:
            filled = dict(row)
            if self._put(filled, name, code) and self._holds(filled, row):
                row.update(filled)
                return True
        return False

    def _put(self, row: Row, name: str, code: int) -> bool:
        """Enter a value and what follows from it by dependencies; say whether all of it goes together."""
        stack = [(name, code)]
        while stack:
            name, code = stack.pop()
            if name in row:
                if row[name] != code:
                    return False
                continue
            row[name] = code
            for (left, right), known in zip(self._dependencies, self._maps, strict=True):
                if (name != right and name not in left) or not self._are_there(row, left):
                    continue
                entry = known.get(tuple(row[each] for each in left))
                if entry is None:
                    continue
                if right not in row:
                    # What may be null need not follow.
                    stack += [(right, entry[0])] if self._null[right] is None else []
                elif row[right] not in (entry[0], self._null[right]):
                    return False
            if self._keys.is_taken(row, name):
                return False
        return True

    def _for_keys(self, row: Row, name: str, own: Row) -> Iterator[int]:
        """Values for an attribute of a key, where the key has room for them."""
        if name in own and self._keys.has_room(name, own[name]):
            yield own[name]
        taken = self._keys.taken(row, name)
        listed = self._values[name]
        if taken is not None and listed is not None:
            free = np.setdiff1d(listed, np.fromiter(taken, dtype=np.int64, count=len(taken)))
            yield from self._some(free[self._keys.are_there(name, free)], _CANDIDATES)
            yield from self._some(free, _CANDIDATES)
        else:
            known, any_ = dict.fromkeys(self._known(name, 20 * _CANDIDATES)), self._any(name, 20 * _CANDIDATES)
            # Values that are there have common rows; where dependencies leave these no room, only new ones help.
            for codes in (known, any_) if self._rng.random() < 0.5 else (any_, known):
                yield from islice((code for code in codes if self._keys.has_room(name, code)), _CANDIDATES)
        yield from self._or_null(name)

    def _for_cluster(self, row: Row, name: str, own: Row) -> Iterator[int]:
        """Values for an attribute: those of rows that share values which constraints compare with it, then others."""
        for (left, right), known in zip(self._dependencies, self._maps, strict=True):
            if right == name and self._are_there(row, left):
                yield from known.get(tuple(row[each] for each in left), [])[:1]
        if name in own:
            yield own[name]
        for constraint in self._tying:
            shared = [each for each in constraint.attributes if each in row]
            if name in constraint.attributes and shared:
                yield from self._settled[name][self._some(self._rows_with(row, shared), _CANDIDATES)].tolist()
                yield from self._between(row, name, constraint)
        yield from self._known(name, _CANDIDATES)
        yield from self._any(name, _CANDIDATES)
        yield from self._or_null(name)

    def _between(self, row: Row, name: str, constraint: DenialConstraint) -> list[int]:
        """Values that keep an order: those of the next rows below and above."""
        order = order_of(constraint, name)
        if order is None or not self._are_there(row, (order.earlier, *order.groups)):
            return []
        rows = self._rows_with(row, order.groups)
        keys = self._judge.codec[order.earlier].order_keys
        heights = keys(self._settled[order.earlier][rows])
        own = keys(np.array([row[order.earlier]], dtype=np.int64))[0]
        below, above = rows[heights <= own], rows[heights >= own]
        nearest = [below[np.argmax(heights[heights <= own])]] if len(below) else []
        nearest += [above[np.argmin(heights[heights >= own])]] if len(above) else []
        return [int(self._settled[name][each]) for each in nearest]

    def _known(self, name: str, number: int) -> list[int]:
        """What some random settled rows have."""
        if self._count == 0:
            return []
        return [int(code) for code in self._settled[name][self._rng.integers(0, self._count, number)]]

    def _any(self, name: str, number: int) -> list[int]:
        listed = self._values[name]
        if listed is None:
            return [int(code) for code in self._rng.integers(0, self._judge.codec[name].num_values, number)]
        return self._some(listed, number)

    def _or_null(self, name: str) -> list[int]:
        null = self._null[name]
        return [] if null is None else [null]

    def _some(self, codes: IntArray, number: int) -> list[int]:
        """A few of them, at random."""
        if len(codes) <= number:
            return [int(code) for code in self._rng.permutation(codes)]
        return [int(code) for code in codes[self._rng.integers(0, len(codes), number)]]

    def _rows_with(self, row: Row, names: Collection[str]) -> IntArray:
        """The settled rows with the same values of some attributes."""
        same = np.ones(self._count, dtype=np.bool_)
        for name in names:
            same &= self._settled[name][: self._count] == row[name]
        return np.flatnonzero(same)

    def _are_there(self, row: Row, names: Collection[str]) -> bool:
        return all(name in row and row[name] != self._null[name] for name in names)

    def _holds(self, row: Row, before: Row) -> bool:
        """Whether a row keeps what neither keys nor dependencies say, as far as it could not be told before."""
        for constraint in (*self._checks, *self._others):
            names = constraint.attributes
            if not row.keys() >= set(names) or before.keys() >= set(names):
                continue
            one = {name: np.array([row[name]], dtype=np.int64) for name in names}
            if constraint.is_unary:
                if self._judge.violates(constraint, one, one)[0]:
                    return False
                continue
            settled = {name: self._settled[name][: self._count] for name in names}
            if clashes_between(constraint, self._judge, one, settled)[0]:
                return False
        return True


def connected(names: Sequence[str], constraints: Sequence[DenialConstraint]) -> list[list[str]]:
    """Split attributes into groups that no constraint connects, in the order of the names."""
    group_of: dict[str, list[str]] = {name: [name] for name in names}
    for constraint in constraints:
        joined = [name for name in names if any(name in group_of[each] for each in constraint.attributes)]
        for name in joined:
            group_of[name] = joined
    return list({id(group): group for group in group_of.values()}.values())
