"""Tables that are made from their rules: columns are numbers that keep them, dressed as values of some type at the end.

A dress keeps the order of numbers, so that what holds between the numbers of a column holds between its values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints
from kamino.schema import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema

Codes: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

FIRST_DAY = dt.date(2015, 1, 1)
FIRST_INSTANT = dt.datetime(2015, 1, 1)
# Texts of a column, at most.
MOST_TEXTS = 4_000


class Kind(Enum):
    """How numbers are dressed."""

    TEXT = "text"
    CODE = "code"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    ID = "id"


@dataclass(kw_only=True)
class Column:
    """Numbers from 0 to `size` - 1 and how they are dressed; `base` is added to them, and rows of `null` have none."""

    name: str
    codes: Codes
    size: int
    kind: Kind
    base: int = 0
    decimals: int = 2
    null: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    repeats: bool = False

    def value(self, code: int) -> Any:
        """The value of a number."""
        match self.kind:
            case Kind.TEXT:
                return f"{self.name}{code:05d}"
            case Kind.CODE | Kind.INTEGER:
                return self.base + code
            case Kind.REAL:
                return Decimal(self.base + code).scaleb(-self.decimals)
            case Kind.BOOLEAN:
                return bool(code)
            case Kind.DATE:
                return FIRST_DAY + dt.timedelta(days=self.base + code)
            case Kind.DATETIME:
                return FIRST_INSTANT + dt.timedelta(seconds=self.base + code)
            case Kind.ID:
                return f"id-{code:09d}"

    def literal(self, code: int) -> str:
        """The value as a constraint spells it."""
        value = self.value(code)
        match self.kind:
            case Kind.TEXT | Kind.ID:
                return f"'{value}'"
            case Kind.BOOLEAN:
                return "true" if value else "false"
            case Kind.DATE:
                return f"date '{value}'"
            case Kind.DATETIME:
                return f"timestamp '{value}'"
            case _:
                return str(value)

    def attribute(self) -> Attribute:
        """The column as a schema declares it."""
        nullable, low, high = self.null is not None, self.value(0), self.value(self.size - 1)
        match self.kind:
            case Kind.TEXT | Kind.CODE:
                return Categorical(values=[self.value(code) for code in range(self.size)], nullable=nullable)
            case Kind.INTEGER:
                return Integer(min=low, max=high, nullable=nullable)
            case Kind.REAL:
                return Real(min=low, max=high, decimals=self.decimals, nullable=nullable)
            case Kind.BOOLEAN:
                return Boolean(nullable=nullable)
            case Kind.DATE:
                return Date(min=low, max=high, nullable=nullable)
            case Kind.DATETIME:
                return Datetime(min=low, max=high, nullable=nullable)
            case Kind.ID:
                return Key(repeats=self.repeats)

    def array(self) -> pa.Array:
        """The column as Arrow has it."""
        values = [self.value(code) for code in self.codes.tolist()]
        if self.kind is Kind.REAL:
            values = [float(value) for value in values]
        return pa.array(values, mask=self.null)


@dataclass(kw_only=True)
class TrueTable:
    """A table that satisfies its rules, and the schema that it was made by."""

    schema: Schema
    rules: tuple[str, ...]
    table: pa.Table

    @property
    def constraints(self) -> Constraints:
        """The rules, read."""
        return Constraints.parse("\n".join(self.rules))


@dataclass(kw_only=True)
class Making:
    """A table under way."""

    rng: np.random.Generator
    rows: int
    columns: dict[str, Column] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    #: Columns of which constraints ask whether they are null: more nulls would break them.
    asked: set[str] = field(default_factory=set)

    def chance(self, share: float) -> bool:
        """Heads or tails."""
        return bool(self.rng.random() < share)

    def pick(self, options: Sequence[Any]) -> Any:
        """One of some things."""
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """A number between both, mostly a small one."""
        return round(float(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def add(
        self,
        codes: Codes,
        size: int,
        *,
        kinds: Sequence[Kind] | None = None,
        like: Column | None = None,
        ordered: bool = False,
    ) -> Column:
        """A new column of numbers below `size`, dressed at random, or `like` another, so that both can be compared."""
        name = f"c{len(self.columns)}"
        if like is not None:
            column = Column(name=name, codes=codes, size=size, kind=like.kind, base=like.base, decimals=like.decimals)
        else:
            kind = self.pick(kinds if kinds is not None else self._kinds(size, ordered=ordered))
            base = self.pick([0, 0, 1, 17, -5, 1_000]) if kind not in (Kind.TEXT, Kind.BOOLEAN, Kind.ID) else 0
            decimals = self.pick([0, 1, 2, 4])
            column = Column(name=name, codes=codes, size=size, kind=kind, base=base, decimals=decimals)
        self.columns[name] = column
        return column

    def _kinds(self, size: int, *, ordered: bool) -> list[Kind]:
        kinds = [Kind.INTEGER]
        if size <= 10**12:
            kinds.append(Kind.REAL)
        if size <= 20_000:
            kinds.append(Kind.DATE)
        if size <= 10**9:
            kinds.append(Kind.DATETIME)
        if size <= MOST_TEXTS and not ordered:
            kinds += [Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.CODE]
        if size == 2:
            kinds += [Kind.BOOLEAN] * 4
        return kinds

    def skewed(self, size: int, rows: int | None = None) -> Codes:
        """Random numbers below `size`, some of them frequent."""
        rows = self.rows if rows is None else rows
        if size > 100_000 or self.chance(0.3):
            return self.rng.integers(0, size, rows)
        weights = self.rng.gamma(0.7, size=size) + 1e-3
        return self.rng.choice(size, rows, p=weights / weights.sum()).astype(np.int64)

    def free(self, low: int = 2, high: int = 60, **how: Any) -> Column:
        """A column of its own, of between so many values."""
        size = max(2, self.number(low, high))
        return self.add(self.skewed(size), size, **how)

    def some(self, most: int = 2_000) -> Column:
        """A column to start from: one that is there, or a new one."""
        known = [c for c in self.columns.values() if c.size <= most and c.kind is not Kind.ID]
        return self.pick(known) if known and self.chance(0.6) else self.free(high=min(most, 60))

    def mapped(self, *left: Column, size: int) -> Codes:
        """Numbers below `size` that follow from those of other columns."""
        return self.rng.integers(0, size, len(self.joint(*left)))[self.joint(*left)]

    def joint(self, *columns: Column) -> Codes:
        """One number for each combination of values that occurs."""
        if not columns:
            return np.zeros(self.rows, dtype=np.int64)
        return np.unique(np.stack([c.codes for c in columns]), axis=1, return_inverse=True)[1].reshape(-1)

    def rising(self, x: Column, groups: Sequence[Column], size: int) -> Codes:
        """Numbers below `size` that do not fall where x rises, within each group."""
        group = self.joint(*groups)
        place = np.lexsort((self.rng.random(self.rows), x.codes, group))
        result = np.zeros(self.rows, dtype=np.int64)
        for rows in np.split(place, np.flatnonzero(np.diff(group[place])) + 1):
            result[rows] = np.sort(self.rng.integers(0, size, len(rows)))
        return result

    def done(self, nulls: float) -> TrueTable:
        """The table, with nulls here and there: they break no rule that does not ask for them."""
        for column in self.columns.values():
            if column.kind is not Kind.ID and column.name not in self.asked and self.chance(nulls):
                column.null = self.rng.random(self.rows) < self.pick([0.01, 0.1, 0.4])
        return TrueTable(
            schema=Schema(attributes={name: column.attribute() for name, column in self.columns.items()}),
            rules=tuple(dict.fromkeys(self.rules)),
            table=pa.table({name: column.array() for name, column in self.columns.items()}),
        )


Motif: TypeAlias = Callable[[Making], None]
