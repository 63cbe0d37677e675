"""Families drawn from the models of their levels: roots, then the rows of each owner, table by table.

The first row of each owner is drawn given its context, the others given one that is there already, chosen at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import Constraints, DenialConstraint, print_constraint
from kamino.constraints.counting.count import violations_per_row
from kamino.databases.family_layout import beside_name, owner_name
from kamino.databases.fitting_levels import FittedDatabase, FittedLevel
from kamino.databases.level_model import LevelModel
from kamino.databases.sql_checks import false_rows, keys_read
from kamino.databases.table_rules import SqlCheck
from kamino.errors import SamplingError
from kamino.model.protocol import Conditional
from kamino.pipeline.plan.bound_schema import schema_types
from kamino.sampling import DrawOptions, SamplingPlan, build_plan
from kamino.sampling.sampler import draw_table
from kamino.schema import Attribute, Codec, Integer, Schema

#: How often a row that breaks a rule is drawn anew.
REDRAWN = 20
#: How many rows are drawn at once for one that breaks a rule again and again.
TRIED = 200
#: So many rows of an owner are drawn one after the other; after them, twice as many each time.
ONE_BY_ONE = 8


@dataclass(kw_only=True, eq=False)
class DrawnTable:
    """The rows of one table as codes, with the row of the owner and the number within it."""

    columns: dict[str, IntArray]
    owner: IntArray
    number: IntArray

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.owner)


@dataclass(kw_only=True, eq=False)
class Drawer:
    """Draws families of a fitted database, all levels of them.

    Guarantees:
        Numbers of children and rows agree.  [test_numbers_of_children_are_rows]
    """

    fitted: FittedDatabase
    rng: np.random.Generator
    _plans: dict[str, tuple[SamplingPlan, Codec]] = field(default_factory=dict)

    def draw(self, num_families: int, *, until: str | None = None) -> dict[str, DrawnTable]:
        """Draw so many families; of their tables those that come first, up to one, if it is named."""
        layout = self.fitted.layout
        drawn: dict[str, DrawnTable] = {}
        for level in layout.levels:
            if level.table == layout.database.root:
                nobody = np.zeros(num_families, dtype=np.int64)
                columns = self._draw(self.fitted.first[level.table], {}, np.arange(num_families))
                drawn[level.table] = DrawnTable(columns=columns, owner=nobody, number=nobody)
            else:
                drawn[level.table] = self._children(level.table, drawn)
            if level.table == until:
                break
        return drawn

    def _children(self, name: str, drawn: Mapping[str, DrawnTable]) -> DrawnTable:
        """Draw the rows of a table, for all rows of its owner."""
        layout, first = self.fitted.layout, self.fitted.first[name]
        owner_table = layout.database[name].owner
        assert owner_table is not None, "the root has no owner"
        owners = drawn[owner_table.references]
        count_column = layout.level(owner_table.references).counts[name]
        counts = self.values(count_column, owners.columns[count_column])
        owner = np.repeat(np.arange(owners.num_rows), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        context = self.context_of(first, drawn, owner)
        size = len(owner)
        table = DrawnTable(
            columns={n: np.zeros(size, dtype=np.int64) for n in first.level.own}, owner=owner, number=number
        )
        for column in first.level.numbers:
            table.columns[column] = self.number_codes(column, number + 1)
        self._place(first, table, context, counts)
        if not first.tilts:
            self._fill(first, table, context, np.arange(size))
            return table
        starts = np.cumsum(counts) - counts
        done = 0
        most = int(counts.max(initial=0))
        while done < most:
            many = 1 if done < ONE_BY_ONE else done
            rows = np.flatnonzero((number >= done) & (number < done + many))
            if done == 0:
                self._fill(first, table, context, rows)
            else:
                other = starts[owner[rows]] + (self.rng.random(len(rows)) * done).astype(np.int64)
                self._fill(first, table, context, rows, {c: table.columns[c][other] for c in first.level.own})
            done += many
        return table

    def context_of(self, fitted: FittedLevel, drawn: Mapping[str, DrawnTable], owner: IntArray) -> dict[str, IntArray]:
        """The codes of the context of each row of a level."""
        level, database = fitted.level, self.fitted.layout.database
        found: dict[str, IntArray] = {}
        rows = owner
        for table in level.path[-2::-1]:
            for name in self.fitted.first[table].level.own:
                found[name] = drawn[table].columns[name][rows]
            if drawn[table].num_rows:
                rows = drawn[table].owner[rows]
        for table in level.beside:
            link = database[table].owner
            assert link is not None, "what is beside has an owner"
            chosen = _one_of_each(drawn[table].owner, drawn[link.references].num_rows, self.rng)[owner]
            for name in self.fitted.first[table].level.own:
                shown = beside_name(table, name)
                codes = drawn[table].columns[name]
                picked = codes[np.maximum(chosen, 0)] if len(codes) else np.zeros(len(owner), dtype=np.int64)
                found[shown] = null_or(self.fitted.attributes, name, shown, picked, chosen < 0)
        return found

    def values(self, name: str, codes: IntArray) -> IntArray:
        """The whole numbers that the codes of a column stand for."""
        attribute = self.fitted.attributes[name]
        assert isinstance(attribute, Integer)
        return codes * (attribute.step or 1) + int(attribute.min or 0)

    def number_codes(self, name: str, numbers: IntArray) -> IntArray:
        """The codes of whole numbers."""
        attribute = self.fitted.attributes[name]
        assert isinstance(attribute, Integer)
        last = (int(attribute.max or 0) - int(attribute.min or 0)) // (attribute.step or 1)
        return np.clip((numbers - int(attribute.min or 0)) // (attribute.step or 1), 0, last)

    def _place(self, fitted: FittedLevel, table: DrawnTable, context: Mapping[str, IntArray], counts: IntArray) -> None:
        """Say which rows count in a number of their owner: as many as it says, the likeliest ones by chance."""
        for flag, rule in fitted.level.placed.items():
            known = self._coded(fitted, {**context, **table.columns}, np.arange(table.num_rows))
            found = fitted.model.conditional(flag, known, table.num_rows)
            chance = _log_odds(found)
            noisy = chance + self.rng.logistic(size=table.num_rows)
            owner_level = self.fitted.first[rule.parent].level
            column = next(n for n in owner_level.own if n == f"{rule.parent}.{rule.column}")
            wanted = self.values(column, context[column])
            order = np.lexsort((-noisy, table.owner))
            rank = np.empty(table.num_rows, dtype=np.int64)
            rank[order] = np.arange(table.num_rows)
            rank -= np.repeat(np.cumsum(counts) - counts, counts)
            table.columns[flag] = (rank < wanted).astype(np.int64)

    def draw_rows(self, fitted: FittedLevel, given: Mapping[str, IntArray], num_rows: int) -> dict[str, IntArray]:
        """Draw so many rows of a level, of which the context is given; all own columns as plain codes."""
        found = self._draw(fitted, given, np.arange(num_rows), _nobody(fitted, num_rows))
        return {name: found.get(name, given.get(name, np.zeros(0, dtype=np.int64))) for name in fitted.level.own}

    def chance_of(self, fitted: FittedLevel, flag: str, given: Mapping[str, IntArray], num_rows: int) -> FloatArray:
        """The chance that rows count in a number of their owner."""
        known = self._coded(fitted, given, np.arange(num_rows))
        odds: FloatArray = 1 / (1 + np.exp(-_log_odds(fitted.model.conditional(flag, known, num_rows))))
        return odds

    def _fill(
        self,
        fitted: FittedLevel,
        table: DrawnTable,
        context: Mapping[str, IntArray],
        rows: IntArray,
        other: Mapping[str, IntArray] | None = None,
    ) -> None:
        """Draw the own columns of some rows; tilted by another row of the same owner, where there is one."""
        given = {n: c[rows] for n, c in context.items()}
        for name in (*fitted.level.numbers, *fitted.level.placed):
            given[name] = table.columns[name][rows]
        if other is not None:
            other = fitted.codec.as_distances({**given, **other})
        found = self._draw(fitted, given, rows, table.owner[rows], other)
        for name in fitted.level.drawn:
            table.columns[name][rows] = found[name]

    def _draw(
        self,
        fitted: FittedLevel,
        given: Mapping[str, IntArray],
        rows: IntArray,
        owner: IntArray | None = None,
        other: Mapping[str, IntArray] | None = None,
    ) -> dict[str, IntArray]:
        """Draw the own columns of rows whose context is given; all as plain codes."""
        checks = self.fitted.layout.redrawn(fitted.level)
        if not checks and not fitted.redrawn:
            return self._draw_once(fitted, given, owner, len(rows), other)
        if fitted.level.pairs:
            return self._draw_more(fitted, checks, len(rows))
        found = self._draw_once(fitted, given, owner, len(rows), other)
        left = np.arange(len(rows))
        for turn in range(REDRAWN):
            here = {n: c[left] for n, c in {**given, **found}.items()}
            left = left[self._breaks(fitted, checks, here, len(left))]
            if not len(left):
                return found
            # Rows that fail often are few; each is drawn many times at once, without its siblings.
            many = 1 if turn < REDRAWN // 2 else TRIED
            tried = np.repeat(left, many)
            again = {n: c[tried] for n, c in given.items()}
            beside = None if other is None or many > 1 else {n: c[tried] for n, c in other.items()}
            new = self._draw_once(fitted, again, None, len(tried), beside)
            if many > 1:
                good = np.flatnonzero(~self._breaks(fitted, checks, {**again, **new}, len(tried)))[::-1]
                chosen = np.arange(len(left)) * many
                chosen[good // many] = good
                new = {n: c[chosen] for n, c in new.items()}
            for name, codes in new.items():
                found[name][left] = codes
        raise self._in_vain(fitted, checks, len(left))

    def _draw_more(self, fitted: FittedLevel, checks: Sequence[SqlCheck], num_rows: int) -> dict[str, IntArray]:
        """Draw rows of the root until enough are there that break no check; leaving some out breaks no rule on two."""
        wanted = num_rows
        for _ in range(REDRAWN):
            found = self._draw_once(fitted, {}, None, wanted)
            good = np.flatnonzero(~self._breaks(fitted, checks, found, wanted))
            if len(good) >= num_rows:
                return {n: c[good[:num_rows]] for n, c in found.items()}
            wanted = int(1.02 * num_rows * wanted / max(len(good), wanted / 4, 1)) + 10
        raise self._in_vain(fitted, checks, num_rows - len(good))

    def _in_vain(self, fitted: FittedLevel, checks: Sequence[SqlCheck], left: int) -> SamplingError:
        return SamplingError(
            f"found {left} rows of {fitted.level.table} that break a rule after {REDRAWN} draws each: "
            f"{'; '.join([c.text for c in checks] + [print_constraint(c) for c in fitted.redrawn])}"
        )

    def _breaks(
        self, fitted: FittedLevel, checks: Sequence[SqlCheck], codes: Mapping[str, IntArray], num_rows: int
    ) -> NDArray[np.bool_]:
        """Which rows break a rule that the drawing does not keep by itself."""
        database = self.fitted.layout.database
        names = {n for check in checks for n in keys_read(check, database)}
        names |= {n for constraint in fitted.redrawn for n in constraint.attributes}
        arrays = {n: fitted.codec.plain[n].decode(codes[n]) for n in sorted(names)}
        wide = pa.table({**arrays, "#": pa.array(np.arange(num_rows))})
        found = np.zeros(num_rows, dtype=np.bool_)
        for constraint in fitted.redrawn:
            found |= violations_per_row(wide, constraint) > 0
        if checks:
            found |= false_rows(checks, database, wide, self.fitted.layout.public)
        return found

    def _draw_once(
        self,
        fitted: FittedLevel,
        given: Mapping[str, IntArray],
        owner: IntArray | None,
        num_rows: int,
        other: Mapping[str, IntArray] | None = None,
    ) -> dict[str, IntArray]:
        plan, codec = self._plan(fitted)
        prefix = {name: given[name] for name in (*fitted.context, *fitted.level.placed)}
        coded = codec.as_distances(prefix)
        sequence = tuple(plan.sequence)
        if fitted.level.pairs and owner is not None:
            coded = {owner_name(fitted.level.table): owner, **coded}
        prefix_codes = {name: coded[name] for name in sequence[: len(coded)]}
        model = LevelModel(fitted.model, sequence, fitted.tilts if other is not None else {}, other or {})
        found = draw_table(plan, model, codec, num_rows, self.rng, DrawOptions(prefix=prefix_codes))
        return {name: codes for name, codes in codec.as_values(found).items() if name in fitted.level.own}

    def _coded(self, fitted: FittedLevel, plain: Mapping[str, IntArray], rows: IntArray) -> dict[str, IntArray]:
        names = [n for n in fitted.context if n in plain]
        return fitted.codec.as_distances({n: plain[n][rows] for n in names})

    def _plan(self, fitted: FittedLevel) -> tuple[SamplingPlan, Codec]:
        level = fitted.level
        key = level.table
        if key not in self._plans:
            sequence = (*fitted.context, *fitted.own)
            codec = fitted.codec
            if level.pairs and len(level.path) > 1:
                owner = owner_name(level.table)
                sequence = (owner, *sequence)
                whole = {owner: Integer(min=0, max=2**40), **fitted.schema.attributes}
                codec = Codec(Schema(attributes=whole), fitted.differences)
            rules = (*fitted.rules, *level.pairs)
            self._plans[key] = build_plan(codec, _bound(rules, codec), sequence=sequence), codec
        return self._plans[key]


def null_or(
    attributes: Mapping[str, Attribute], name: str, shown: str, codes: IntArray, absent: NDArray[np.bool_]
) -> IntArray:
    """The codes of a column as those of one that may be null, and null where there is no row."""
    own, wide = (Codec(Schema(attributes={n: attributes[n]}))[n].null_code for n in (name, shown))
    assert wide is not None, "a table beside may have no rows"
    found: IntArray = np.where(absent | (codes == own if own is not None else False), wide, codes)
    return found


def _nobody(fitted: FittedLevel, num_rows: int) -> IntArray | None:
    """Owners of rows that belong to different ones."""
    return np.arange(num_rows) if fitted.level.pairs and len(fitted.level.path) > 1 else None


def _bound(rules: tuple[DenialConstraint, ...], codec: Codec) -> Constraints:
    return Constraints(rules).bind(schema_types(codec.schema))


def _one_of_each(owner: IntArray, num_owners: int, rng: np.random.Generator) -> IntArray:
    """A random row of each owner, -1 for one that has none."""
    found = np.full(num_owners, -1, dtype=np.int64)
    order = rng.permutation(len(owner))
    found[owner[order]] = order
    return found


def _log_odds(found: Conditional) -> FloatArray:
    """The log odds of true against false, for each row."""
    dense = found.dense()
    odds = dense[:, 1] - dense[:, 0]
    odds = np.nan_to_num(odds, nan=0.0, posinf=50.0, neginf=-50.0)
    result: NDArray[np.float64] = odds[found.context]
    return result
