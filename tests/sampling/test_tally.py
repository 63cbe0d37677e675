"""Counts that are kept up to date, against trying every settled row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.constraints.brute_force import violates
from tests.sampling.fakes import integers
from tests.sampling.strategies import codecs, lines

from kamino.constraints import Constraints, DenialConstraint
from kamino.sampling import hashed, tally
from kamino.sampling.block import Block
from kamino.sampling.comparing import Judge
from kamino.sampling.steps.task import DEAD
from kamino.sampling.tally import Tally, make_tally
from kamino.schema import Codec


def expected(
    codec: Codec, constraint: DenialConstraint, columns: dict[str, np.ndarray], name: str, codes: np.ndarray, row: int
) -> list[int]:
    """For each code of `name`, with how many settled rows the row would clash."""

    def values(at: int, code: int) -> dict[str, object]:
        return {n: codec[n].value_of(int(c[at])) for n, c in columns.items()} | {name: codec[name].value_of(code)}

    others = [values(at, int(code)) for at, code in enumerate(codes) if code != DEAD and at != row]
    found = []
    for code in range(codec[name].size):
        mine = values(row, code)
        if constraint.is_unary:
            found.append(int(violates(constraint, mine, mine)))
        else:
            found.append(sum(violates(constraint, mine, o) or violates(constraint, o, mine) for o in others))
    return found


def settle(kept: Tally, rows: np.ndarray, candidates: np.ndarray, listed: bool, codes: np.ndarray) -> None:
    """Announce a block; outside stands all that is not in it."""
    outside = codes.copy()
    outside[rows] = DEAD
    kept.begin(Block(rows=rows, candidates=candidates, listed=listed, outside=outside, inside=codes[rows]))


def check(codec: Codec, constraint: DenialConstraint, seed: int, *, tabled: bool, dense: bool, listed: bool) -> None:
    """Settle and take back random rows of nine in random blocks; every count must be right."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(constraint.attributes)))
    columns = {n: rng.integers(0, codec[n].size, 9) for n in codec.attributes if n != name}
    every = np.arange(codec[name].size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "MOST_COMBINATIONS", 10_000 if tabled else 0)
        patch.setattr(hashed, "_DENSE", 10_000 if dense else 0)
        kept = make_tally(constraint, Judge(codec), name, columns, 9, every if listed else None)
    codes = np.full(9, DEAD)
    for _ in range(4):
        rows = rng.permutation(9)[: rng.integers(1, 7)]
        line = every if listed else rng.permutation(every)
        settle(kept, rows, np.broadcast_to(line, (len(rows), len(line))), listed, codes)
        for place, row in enumerate(rows.tolist()):
            if codes[row] != DEAD:
                kept.change(place, int(codes[row]), -1)
                codes[row] = DEAD
            wanted = expected(codec, constraint, columns, name, codes, row)
            assert kept.count(place).tolist() == [wanted[code] for code in line]
            if rng.random() < 0.8:
                codes[row] = rng.integers(0, codec[name].size)
                kept.change(place, int(codes[row]), 1)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans())
def test_tallies_agree_with_brute_force(
    data: st.DataObject, seed: int, tabled: bool, dense: bool, listed: bool
) -> None:
    codec = data.draw(codecs())
    (constraint,) = Constraints.parse(data.draw(lines(codec)))
    check(codec, constraint, seed, tabled=tabled, dense=dense, listed=listed)


@pytest.mark.parametrize("way", ["tabled", "listed", "drawn"])
@pytest.mark.parametrize(
    "text",
    [
        "not (t1.a < t2.a and t1.b > t2.b)",
        "not (t1.a <= t2.a and t1.b >= t2.b and t1.c != t2.c)",
        "not (t1.c = t2.c and t1.a > t2.a and t1.b <= 2)",
        "not (t1.a < t2.b and t1.c > t2.c)",
        "not (t1.a != t2.a and t1.b < t2.b and t2.c > 0)",
    ],
)
def test_both_directions_count(text: str, way: str) -> None:
    codec = integers(a=3, b=-4, c=3)
    (constraint,) = Constraints.parse(text)
    for seed in range(12):
        check(codec, constraint, seed, tabled=way == "tabled", dense=True, listed=way != "drawn")
