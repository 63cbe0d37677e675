"""Which combinations of keys are taken, and where there is room for more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf, prod
from typing import TypeAlias

import numpy as np

from kamino.arrays import IntArray
from kamino.sampling.codes.comparing import Mask

#: The code of each attribute of a row, or of some of them.
Row: TypeAlias = dict[str, int]


class KeyPlaces:
    """The combinations that rows have taken of each key; a row with a null in a key takes none."""

    def __init__(
        self, keys: Sequence[tuple[str, ...]], sizes: Mapping[str, int], null: Mapping[str, int | None]
    ) -> None:
        self._keys, self._null = tuple(keys), null
        # By key, attribute and the values of the others, the values that are taken.
        self._taken: dict[tuple[int, str], dict[tuple[int, ...], set[int]]] = {}
        self._rows: dict[tuple[int, str], Counter[int]] = {}
        self._most: dict[tuple[int, str], float] = {}
        for number, key in enumerate(keys):
            for name in key:
                rest = [each for each in key if each != name]
                self._taken[number, name], self._rows[number, name] = {}, Counter()
                endless = any(null[each] is not None for each in rest)
                self._most[number, name] = inf if endless else prod(sizes[each] for each in rest)
        self._of = {name: [i for i, key in enumerate(keys) if name in key] for key in keys for name in key}
        self.order = sorted(self._of, key=lambda name: (-len(self._of[name]), sizes[name], name))

    def add(self, row: Row) -> None:
        """Take what a row has."""
        for number, name, rest in self._places(row):
            self._taken[number, name].setdefault(rest, set()).add(row[name])
            self._rows[number, name][row[name]] += 1

    def remove(self, row: Row) -> None:
        """Give back what a row has taken."""
        for number, name, rest in self._places(row):
            self._taken[number, name][rest].discard(row[name])
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
            if all(each in row and row[each] != self._null[each] for each in key):
                taken = self._taken[number, name].get(self._rest(number, name, row))
                if taken is not None and row[name] in taken:
                    return True
        return False

    def taken(self, row: Row, name: str) -> set[int] | None:
        """The values that a row cannot have as the last of its keys; None where it ends no key."""
        found: set[int] | None = None
        for number in self._of.get(name, ()):
            others = [each for each in self._keys[number] if each != name]
            if all(each in row and row[each] != self._null[each] for each in others):
                found = (found or set()) | self._taken[number, name].get(self._rest(number, name, row), set())
        return found

    def has_room(self, name: str, code: int) -> bool:
        """Whether each key has a combination left in which a value may stand."""
        return all(self._rows[i, name][code] < self._most[i, name] for i in self._of.get(name, ()))

    def are_there(self, name: str, codes: IntArray) -> Mask:
        """Which values some row has in a key."""
        rows = [self._rows[number, name] for number in self._of.get(name, ())]
        return np.array([any(counter[code] for counter in rows) for code in codes.tolist()], dtype=np.bool_)
