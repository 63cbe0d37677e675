"""Whether a table exists, by trying: the oracle of refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import reject
from tests.constraints.brute_force import violates

from kamino.constraints import DenialConstraint
from kamino.schema import Codec


def table_exists(codec: Codec, constraints: list[DenialConstraint], num_rows: int) -> bool:
    """Whether some `num_rows` rows over the domains satisfy the constraints; only named attributes are looked at."""
    if num_rows == 0 or not constraints:
        return True
    names = sorted({name for c in constraints for name in c.attributes})
    domains = [[codec[name].value_of(code) for code in range(codec[name].size)] for name in names]
    rows = [dict(zip(names, values, strict=True)) for values in product(*domains)]
    rows = [row for row in rows if not any(c.is_unary and violates(c, row, row) for c in constraints)]
    pairs = [c for c in constraints if not c.is_unary]
    if num_rows == 1:
        return bool(rows)
    if any(not any(violates(c, row, row) for c in pairs) for row in rows):
        return True
    return _Search(rows, pairs).find(num_rows)


class _Search:
    """Looks for rows, all different, that are compatible with each other: a clique, by trying all.

    Each pair of rows is compared once. An example that takes too many tries is given up: others will do.
    """

    MOST = 2_000_000

    def __init__(self, rows: list[dict[str, Any]], pairs: list[DenialConstraint]) -> None:
        self._fits = [0] * len(rows)
        self._tries = 0
        for i, one in enumerate(rows):
            for j in range(i + 1, len(rows)):
                if not any(violates(c, one, rows[j]) or violates(c, rows[j], one) for c in pairs):
                    self._fits[i] |= 1 << j

    def find(self, wanted: int) -> bool:
        """Whether so many rows are compatible."""
        return self._extend((1 << len(self._fits)) - 1, wanted)

    def _extend(self, candidates: int, wanted: int) -> bool:
        if wanted == 0:
            return True
        while candidates.bit_count() >= wanted:
            self._tries += 1
            if self._tries > self.MOST:
                reject()
            lowest = candidates & -candidates
            candidates ^= lowest
            if self._extend(candidates & self._fits[lowest.bit_length() - 1], wanted - 1):
                return True
        return False
