"""Rows drawn from the levels that are fitted already: what the next level is told of its context, at no cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import IntArray
from kamino.databases.drawing import Drawer, null_or
from kamino.databases.family_layout import Level, beside_name, count_name
from kamino.databases.fitting_levels import FittedDatabase, FittedLevel
from kamino.databases.siblings import PairRows
from kamino.model.marginal.known_rows import KnownRows
from kamino.schema import Codec

#: So many families are drawn: the error of their counts is then below that of what is measured; fewer where there are
#: few, whose noise is larger.
FAMILIES, FOR_EACH, LEAST = 60_000, 20, 400
#: So many are enough for pairs, of which whole rows are gone through again and again.
PAIRS = 40_000


@dataclass(kw_only=True, eq=False)
class _Chain:
    """Families of which one row of each table on a path is drawn; plain codes by name."""

    columns: dict[str, IntArray]

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        self.columns = {name: codes[kept] for name, codes in self.columns.items()}


def _number(fitted: FittedDatabase, most: int) -> int:
    """How many families are drawn: follows from the noisy number of families."""
    return int(min(max(FOR_EACH * fitted.num_families, LEAST), most))


def known_rows(fitted: FittedDatabase, level: Level, codec: Codec, rng: np.random.Generator) -> KnownRows | None:
    """What is known of its context before a level is fitted.

    None where no family has such a row, as far as the models of its owners tell.
    """
    drawer = Drawer(fitted=fitted, rng=rng)
    chain = _context(fitted, drawer, level, 1)
    if chain is None:
        return None
    weight = fitted.layout.rows * fitted.num_families / _number(fitted, FAMILIES)
    number = _numbers(fitted, level, chain, rng)
    for name in level.numbers:
        chain.columns[name] = drawer.number_codes(name, number + 1)
    names = (*level.context, *level.numbers)
    own = frozenset(level.drawn)
    coded = codec.as_distances({name: chain.columns[name] for name in names})
    return KnownRows(columns=coded, weight=weight, sides=(own, own | frozenset(names)))


def pair_rows(fitted: FittedDatabase, level: Level, rng: np.random.Generator) -> PairRows | None:
    """Pairs of rows of one owner, one of each family, as they are drawn without heed of each other.

    None where no owner has two, as far as the models tell.
    """
    drawer, first = Drawer(fitted=fitted, rng=rng), fitted.first[level.table]
    drawn = drawer.draw(_number(fitted, PAIRS), until=level.table)
    table = drawn[level.table]
    counts = np.bincount(table.owner, minlength=drawn[level.path[-2]].num_rows)
    home = np.arange(len(counts))
    for name in level.path[-2:0:-1]:
        home = drawn[name].owner[home]
    # Of each family one owner, and of that two rows.
    able = rng.permutation(np.flatnonzero(counts >= 2))
    owners = able[np.unique(home[able], return_index=True)[1]]
    if not len(owners):
        return None
    starts, sizes = (np.cumsum(counts) - counts)[owners], counts[owners]
    one = (rng.random(len(owners)) * sizes).astype(np.int64)
    away = 1 + (rng.random(len(owners)) * (sizes - 1)).astype(np.int64)
    pair = starts + one, starts + (one + away) % sizes
    own_rows, other_rows = np.concatenate(pair), np.concatenate(pair[::-1])
    context = drawer.context_of(first, drawn, table.owner)
    own, other = (
        first.codec.as_distances({n: c[rows] for n, c in {**context, **table.columns}.items()})
        for rows in (own_rows, other_rows)
    )
    known = {name: own[name] for name in (*level.context, *level.numbers, *level.placed)}
    return PairRows(known=known, own=own, other=other)


def _context(fitted: FittedDatabase, drawer: Drawer, level: Level, least: int) -> _Chain | None:
    """One row of each table above a level, in families that have `least` rows of it or more."""
    rules = fitted.layout.rules
    root = fitted.first[level.path[0]]
    chain = _Chain(columns=drawer.draw_rows(root, {}, _number(fitted, FAMILIES)))
    for i, name in enumerate(level.path[1:], start=1):
        count = count_name(level.path[i - 1], name, rules)
        last = i == len(level.path) - 1
        chain.keep(drawer.values(count, chain.columns[count]) >= (least if last else 1))
        if chain.num_rows == 0:
            return None
        below = fitted.layout.level(name)
        _add_all_beside(fitted, drawer, chain, below)
        if not last:
            number = _numbers(fitted, below, chain, drawer.rng)
            chain.columns |= _one(drawer, fitted.first[name], chain, number, drawer.rng)
    return chain


def _add_all_beside(fitted: FittedDatabase, drawer: Drawer, chain: _Chain, level: Level) -> None:
    for other in level.beside:
        owner = fitted.layout.database[other].owner
        assert owner is not None, "what is beside has an owner"
        _add_beside(fitted, drawer, chain, other, count_name(owner.references, other, fitted.layout.rules))


def _add_beside(fitted: FittedDatabase, drawer: Drawer, chain: _Chain, name: str, count: str) -> None:
    """Add one row of a table beside, null where there is none."""
    level = fitted.layout.level(name)
    _add_all_beside(fitted, drawer, chain, level)
    number = _numbers(fitted, level, chain, drawer.rng)
    found = _one(drawer, fitted.first[name], chain, number, drawer.rng)
    absent = drawer.values(count, chain.columns[count]) == 0
    for column, codes in found.items():
        shown = beside_name(name, column)
        chain.columns[shown] = null_or(fitted.attributes, column, shown, codes, absent)


def _numbers(fitted: FittedDatabase, level: Level, chain: _Chain, rng: np.random.Generator) -> IntArray:
    """The number of a row of an owner, from 0 on."""
    count = count_name(level.path[-2], level.table, fitted.layout.rules)
    sizes = np.maximum(Drawer(fitted=fitted, rng=rng).values(count, chain.columns[count]), 1)
    return (rng.random(len(sizes)) * sizes).astype(np.int64)


def _one(
    drawer: Drawer, level: FittedLevel, chain: _Chain, number: IntArray, rng: np.random.Generator
) -> dict[str, IntArray]:
    """One row of a level for each family of a chain."""
    given = {name: chain.columns[name] for name in level.level.context}
    for name in level.level.numbers:
        given[name] = drawer.number_codes(name, number + 1)
    for flag in level.level.placed:
        chance = drawer.chance_of(level, flag, given, chain.num_rows)
        given[flag] = (rng.random(chain.num_rows) < chance).astype(np.int64)
    found = drawer.draw_rows(level, given, chain.num_rows)
    return {**found, **{name: given[name] for name in (*level.level.numbers, *level.level.placed)}}
