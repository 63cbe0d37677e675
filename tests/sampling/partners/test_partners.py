"""The contract of `Partners`: every way to count, against trying every pair of rows by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.constraints.brute_force import violates
from tests.sampling.fakes import integers
from tests.sampling.strategies import OPERATORS, codecs, general, lines
from tests.trying import examples

from kamino.constraints import Constraints, DenialConstraint, count_violations
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.codes.recounting import decoded
from kamino.sampling.partners import DEAD, Block, Partners, counting, hashed, make_partners, rates_of
from kamino.sampling.partners.alone import Alone
from kamino.sampling.partners.discordant import Discordant
from kamino.sampling.partners.hashed import Hashed
from kamino.sampling.partners.kernel import Kernel, clashes_between
from kamino.sampling.partners.tabled import Tabled
from kamino.sampling.partners.violation_rates import rate_among
from kamino.schema import Boolean, Codec

NUM_ROWS = 9
WAYS = ("tabled", "dense", "sparse", "listed kernel", "drawn kernel")
Row = dict[str, object]


def made(way: str, constraint: DenialConstraint, codec: Codec, name: str, columns: dict[str, np.ndarray]) -> Partners:
    """The partners of a constraint, counted in one way; a way that does not fit gives way to the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MOST_COMBINATIONS", 10_000 if way == "tabled" else 0)
        patch.setattr(hashed, "_DENSE", 10_000 if way == "dense" else 0)
        patch.setattr(hashed, "_FEW_CELLS", 10_000 if way == "dense" else -1_000)
        if way.endswith("kernel"):
            patch.setattr(counting, "is_hashed", lambda constraint: False)
        listed = None if way == "drawn kernel" else np.arange(codec[name].size)
        return make_partners(constraint, Judge(codec), name, columns, NUM_ROWS, listed)


def by_hand(constraint: DenialConstraint, row: Row, others: list[Row]) -> int:
    if constraint.is_unary:
        return int(violates(constraint, row, row))
    return sum(violates(constraint, row, other) or violates(constraint, other, row) for other in others)


class Column:
    """A column of nine rows beside fixed ones, and what every candidate of a row clashes with, by hand."""

    def __init__(self, codec: Codec, constraint: DenialConstraint, name: str, rng: np.random.Generator) -> None:
        self.codec, self.constraint, self.name = codec, constraint, name
        self.columns = {n: rng.integers(0, codec[n].size, NUM_ROWS) for n in codec.attributes if n != name}
        self.codes = np.full(NUM_ROWS, DEAD)

    def values(self, row: int, code: int) -> Row:
        known = {n: self.codec[n].value_of(int(codes[row])) for n, codes in self.columns.items()}
        return known | {self.name: self.codec[self.name].value_of(code)}

    def expected(self, row: int, codes: np.ndarray) -> list[int]:
        others = [self.values(r, int(c)) for r, c in enumerate(self.codes) if c != DEAD and r != row]
        return [by_hand(self.constraint, self.values(row, int(code)), others) for code in codes]

    def block(self, rows: np.ndarray, line: np.ndarray, listed: bool) -> Block:
        outside = self.codes.copy()
        outside[rows] = DEAD
        candidates = np.broadcast_to(line, (len(rows), len(line)))
        return Block(rows=rows, candidates=candidates, listed=listed, outside=outside, inside=self.codes[rows])


def check(way: str, codec: Codec, constraint: DenialConstraint, seed: int) -> None:
    """Settle and take back random rows in random blocks; every count must be right at every moment."""
    rng = np.random.default_rng(seed)
    column = Column(codec, constraint, str(rng.choice(list(constraint.attributes))), rng)
    partners = made(way, constraint, codec, column.name, column.columns)
    every = np.arange(codec[column.name].size)
    if rng.random() < 0.5:
        column.codes = rng.integers(-1, len(every), NUM_ROWS)
        partners.load(column.codes)
    for _ in range(4):
        rows = rng.permutation(NUM_ROWS)[: rng.integers(1, 7)]
        line = rng.permutation(every) if way == "drawn kernel" else every
        block = column.block(rows, line, way != "drawn kernel")
        assert partners.of_block(block).tolist() == [column.expected(row, line) for row in rows.tolist()]
        partners.begin(block)
        for place, row in enumerate(rows.tolist()):
            if column.codes[row] != DEAD:
                partners.change(place, int(column.codes[row]), -1)
                column.codes[row] = DEAD
            assert partners.count(place).tolist() == column.expected(row, line)
            if rng.random() < 0.8:
                column.codes[row] = rng.integers(0, len(every))
                partners.change(place, int(column.codes[row]), 1)


@pytest.mark.parametrize("way", WAYS)
@examples(60, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 2**32))
def test_partners_agree_with_brute_force(way: str, data: st.DataObject, seed: int) -> None:
    codec = data.draw(codecs())
    numbers = [name for name in codec.attributes if not isinstance(codec.schema[name], Boolean)]
    any_line = st.one_of(lines(codec), general(numbers)) if len(numbers) > 1 else lines(codec)
    (constraint, *_) = Constraints.parse(data.draw(any_line))
    check(way, codec, constraint, seed)


ONE_SIDED = (None, "t1.c = 1", "t2.c != 1", "t1.c is null", "t2.b < 2", "t1.a <= t1.b", "t1.a > t2.b")


@pytest.mark.parametrize("way", ["tabled", "listed kernel", "drawn kernel"])
@pytest.mark.parametrize(("first", "second"), list(product(OPERATORS, repeat=2)))
def test_counts_follow_every_change(first: str, second: str, way: str) -> None:
    """All operators in pairs, with a third predicate on constants, nulls or other columns; nulls among the values."""
    codec = integers(a=-4, c=-3, b=-4)
    for number, third in enumerate(ONE_SIDED):
        predicates = [f"t1.a {first} t2.a", f"t1.b {second} t2.b", *([third] if third else [])]
        (constraint,) = Constraints.parse(f"not ({' and '.join(predicates)})")
        check(way, codec, constraint, number)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ["a -> b", "a, c -> b", "key (b)", "key (a, b)", "b -> a", "check (b < 3)"])
def test_equalities_follow_every_change(text: str, way: str) -> None:
    codec = integers(a=3, b=-4, c=-2)
    (constraint,) = Constraints.parse(text)
    for seed in range(12):
        check(way, codec, constraint, seed)


@pytest.mark.parametrize(
    ("text", "listed", "kind"),
    [
        ("a -> b", True, Tabled),
        ("a -> b", False, Hashed),
        ("not (t1.a < t2.a and t1.b > t2.b)", False, Discordant),
        ("not (t1.a <= t2.a and t1.b >= t2.b)", False, Kernel),
        ("check (b < 3)", True, Alone),
    ],
)
def test_all_ways_to_count_are_used(text: str, listed: bool, kind: type) -> None:
    codec = integers(a=9, b=7)
    (constraint,) = Constraints.parse(text)
    found = make_partners(constraint, Judge(codec), "b", {"a": np.arange(9)}, 9, np.arange(7) if listed else None)
    assert type(found) is kind


@examples(150, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 2**32))
def test_clashes_between_tables_agree_with_brute_force(data: st.DataObject, seed: int) -> None:
    codec, rng = data.draw(codecs()), np.random.default_rng(seed)
    (constraint, *_) = Constraints.parse(data.draw(lines(codec)))
    if constraint.is_unary:
        return
    left, right = ({n: rng.integers(0, codec[n].size, size) for n in codec.attributes} for size in (7, 12))
    rows, others = (
        [{n: codec[n].value_of(int(codes[i])) for n, codes in side.items()} for i in range(size)]
        for side, size in ((left, 7), (right, 12))
    )
    expected = [by_hand(constraint, row, others) for row in rows]
    assert clashes_between(constraint, Judge(codec), left, right).tolist() == expected


@pytest.mark.parametrize("text", ["a -> b", "key (b)", "check (b < 3)", "not (t1.a < t2.a and t1.b >= t2.b)"])
def test_rates_are_those_of_counting(text: str) -> None:
    codec, rng = integers(a=9, b=-7), np.random.default_rng(5)
    (constraint,) = Constraints.parse(text)
    table = {"a": rng.integers(0, 9, 200), "b": rng.integers(0, 8, 200)}
    violations = count_violations(decoded(codec, table, [constraint]), constraint)
    every = 200 if constraint.is_unary else 200 * 199 / 2
    assert rates_of(codec, table, [constraint])[constraint] == violations / every
    dead = {name: np.append(codes, DEAD) for name, codes in table.items()}
    assert rates_of(codec, dead, [constraint])[constraint] == violations / every


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(
    "text",
    ["a -> b", "not (t1.a > t2.a and t1.b < t2.b)", "not (t1.b = t2.b)", "not (t1.a > t2.b and t1.b <= t2.b)"],
)
def test_tables_follow_blocks_that_move(text: str, few: bool) -> None:
    """Counts of all listed codes, and rates, after blocks of rows took other codes, were taken back, or came."""
    (constraint,) = Constraints.parse(text)
    codec, rng = integers(a=4, b=-5), np.random.default_rng(0)
    columns = {"a": rng.integers(0, 4, 60)}
    listed = np.arange(codec["b"].size)
    partners = make_partners(constraint, Judge(codec), "b", columns, 60, listed)
    assert isinstance(partners, Tabled)
    codes = np.full(60, DEAD)
    for _ in range(12):
        rows = rng.permutation(60)[: 2 if few else 40]
        new = rng.integers(-1, codec["b"].size, len(rows))
        partners.move(rows, codes[rows], new)
        codes[rows] = new
        outside, candidates = codes.copy(), np.broadcast_to(listed, (len(rows), len(listed)))
        outside[rows] = DEAD
        block = Block(rows=rows, candidates=candidates, listed=False, outside=outside, inside=new)
        assert np.array_equal(partners.of_listed(rows, new), partners.of_block(block))
        assert partners.rate(codes) == pytest.approx(rate_among(partners, codes, is_unary=False))
