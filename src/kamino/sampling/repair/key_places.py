"""Which combinations of keys are taken, and where there is room for more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import TypeAlias

import numpy as np

from kamino.arrays import IntArray, stable_order
from kamino.sampling.codes.comparing import Mask

#: The code of each attribute of a row, or of some of them.
Row: TypeAlias = dict[str, int]


@dataclass(frozen=True)
class _Sorted:
    """Values in the order of what stands beside them, column after column."""

    rest: tuple[IntArray, ...]
    values: IntArray

    @staticmethod
    def of(rest: Sequence[IntArray], values: IntArray) -> _Sorted:
        order = stable_order(*rest) if rest else np.arange(len(values))
        return _Sorted(tuple(column[order] for column in rest), values[order])

    def beside(self, rest: tuple[int, ...]) -> IntArray:
        """The values that stand beside these."""
        low, high = 0, len(self.values)
        for column, code in zip(self.rest, rest, strict=False):
            part = column[low:high]
            low, high = low + int(np.searchsorted(part, code)), low + int(np.searchsorted(part, code, side="right"))
        return self.values[low:high]


class KeyPlaces:
    """The combinations that rows have taken of each key; a row with a null in a key takes none."""

    def __init__(
        self, keys: Sequence[tuple[str, ...]], sizes: Mapping[str, int], null: Mapping[str, int | None]
    ) -> None:
        self._keys, self._null = tuple(keys), null
        # By key, attribute and the values of the others, the values that are taken: as far as somebody asked.
        self._taken: dict[tuple[int, str], dict[tuple[int, ...], set[int]]] = {}
        self._first: dict[tuple[int, str], _Sorted] = {}
        self._rows: dict[tuple[int, str], Counter[int]] = {}
        self._most: dict[tuple[int, str], float] = {}
        for number, key in enumerate(keys):
            for name in key:
                rest = [each for each in key if each != name]
                self._taken[number, name], self._rows[number, name] = {}, Counter()
                self._first[number, name] = _Sorted((), np.zeros(0, dtype=np.int64))
                endless = any(null[each] is not None for each in rest)
                self._most[number, name] = inf if endless else prod(sizes[each] for each in rest)
        self._of = {name: [i for i, key in enumerate(keys) if name in key] for key in keys for name in key}
        self.order = sorted(self._of, key=lambda name: (-len(self._of[name]), sizes[name], name))

    def add_first(self, columns: Mapping[str, IntArray]) -> None:
        """Take what many rows have, before any other row takes anything.

        Guarantees:
            As adding them one by one.  [test_rows_added_at_once_are_those_added_one_by_one]
        """
        for number, key in enumerate(self._keys):
            whole = np.ones(len(columns[key[0]]), dtype=np.bool_)
            for name in key:
                null = self._null[name]
                whole &= True if null is None else columns[name] != null
            for name in key:
                rest = [columns[each][whole] for each in key if each != name]
                self._first[number, name] = _Sorted.of(rest, columns[name][whole])
                values, counts = np.unique(columns[name][whole], return_counts=True)
                self._rows[number, name].update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def _taken_with(self, number: int, name: str, rest: tuple[int, ...]) -> set[int]:
        """The values that are taken beside those of the others: a set to be changed."""
        known = self._taken[number, name]
        if rest not in known:
            known[rest] = set(self._first[number, name].beside(rest).tolist())
        return known[rest]

    def add(self, row: Row) -> None:
        """Take what a row has."""
        for number, name, rest in self._places(row):
            self._taken_with(number, name, rest).add(row[name])
            self._rows[number, name][row[name]] += 1

    def remove(self, row: Row) -> None:
        """Give back what a row has taken."""
        for number, name, rest in self._places(row):
            self._taken_with(number, name, rest).discard(row[name])
            self._rows[number, name][row[name]] -= 1

    def _places(self, row: Row) -> list[tuple[int, str, tuple[int, ...]]]:
        whole = [i for i, key in enumerate(self._keys) if all(row[name] != self._null[name] for name in key)]
        return [(i, name, self._rest(i, name, row)) for i in whole for name in self._keys[i]]

    def _rest(self, number: int, name: str, row: Row) -> tuple[int, ...]:
        return tuple(row[each] for each in self._keys[number] if each != name)

    def is_taken(self, row: Row, name: str) -> bool:
        """Whether a row has a combination that is taken, of a key that its value of `name` makes complete."""
        for number in self._of.get(name, ()):
            key = self._keys[number]
            is_whole = all(each in row and row[each] != self._null[each] for each in key)
            if is_whole and row[name] in self._taken_with(number, name, self._rest(number, name, row)):
                return True
        return False

    def taken(self, row: Row, name: str) -> set[int] | None:
        """The values that a row cannot have as the last of its keys; None where it ends no key."""
        found: set[int] | None = None
        for number in self._of.get(name, ()):
            others = [each for each in self._keys[number] if each != name]
            if all(each in row and row[each] != self._null[each] for each in others):
                found = (found or set()) | self._taken_with(number, name, self._rest(number, name, row))
        return found

    def has_room(self, name: str, code: int) -> bool:
        """Whether each key has a combination left in which a value may stand."""
        return all(self._rows[i, name][code] < self._most[i, name] for i in self._of.get(name, ()))

    def are_there(self, name: str, codes: IntArray) -> Mask:
        """Which values some row has in a key."""
        rows = [self._rows[number, name] for number in self._of.get(name, ())]
        return np.array([any(counter[code] for counter in rows) for code in codes.tolist()], dtype=np.bool_)
