"""Parts of values, such as the month of a date or the last digits of a number, and maps that follow them.

A part is a public fact of the schema. That another attribute follows it is measured, and then known of every value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kamino.errors import ModelError
from kamino.model.protocol import CodeMap, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A part of an attribute's values: its bins, and the number that each bin stands for.

    Null, where there is one, has the last bin of `map`, and no number.
    """

    name: str
    map: CodeMap
    numbers: IntArray

    @property
    def count(self) -> int:
        """How many values the part has, null aside."""
        return len(self.numbers)


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownMap:
    """The map of a dependency: codes of `left` from `starts[i]` on have the code `values[i]` of `right`, or -1.

    -1 says that nothing is known.
    """

    left: str
    right: str
    starts: IntArray
    values: IntArray

    def __post_init__(self) -> None:
        if len(self.starts) == 0 or len(self.starts) != len(self.values) or self.starts[0] != 0:
            raise ModelError("a known map needs one value for each run, and a first run that starts at code 0.")
        if np.any(np.diff(self.starts) <= 0) or self.values.min() < -1:
            raise ModelError("the runs of a known map must ascend, and its values be codes or -1.")

    def __call__(self, codes: IntArray) -> IntArray:
        """Return the code of the right side for each code of the left side, or -1."""
        return self.values[np.searchsorted(self.starts, codes, side="right") - 1]
