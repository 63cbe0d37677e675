"""Whether a table exists, by trying: the oracle of refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

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
    return _extend(rows, pairs, num_rows)


def _extend(candidates: list[dict[str, Any]], pairs: list[DenialConstraint], wanted: int) -> bool:
    """Whether `wanted` of the candidates, all different, are compatible with each other."""
    if wanted == 0:
        return True
    while len(candidates) >= wanted:
        row, *candidates = candidates
        fit = [r for r in candidates if not any(violates(c, row, r) or violates(c, r, row) for c in pairs)]
        if _extend(fit, pairs, wanted - 1):
            return True
    return False
