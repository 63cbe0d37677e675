"""What is said of the tables of a database, as data: rules within a table, along keys, of counts and of sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Column, Comparison, Operator
from kamino.schema.database import ForeignKey


def dotted(table: str, column: str) -> str:
    """The name of a column among those of all tables.

    >>> dotted("orders", "placed")
    'orders.placed'
    """
    return f"{table}.{column}"


@dataclass(frozen=True, kw_only=True)
class RowRule:
    """A denial constraint on one row of `table`, its owners and the public rows that they name.

    Columns are named with their tables. One that speaks of `table` alone is a rule of that table.
    """

    table: str
    constraint: DenialConstraint
    text: str

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it speaks of."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.constraint.attributes))


@dataclass(frozen=True, kw_only=True)
class PairRule:
    """A denial constraint on two rows of one table, which may have to belong to one owner. Columns are plain."""

    table: str
    constraint: DenialConstraint
    text: str


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """The rows of one owner are numbered 1 to n by `column`."""

    table: str
    column: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Cardinality:
    """Each row of `parent` has from `least` to `most` rows of `child`."""

    parent: str
    child: str
    least: int
    most: int
    text: str


@dataclass(frozen=True, kw_only=True)
class CountRule:
    """`column` of `parent` is how many rows of `child` hang on it, or how many of them meet `where`.

    `where` is a condition in the language of constraints on plain columns of the child; empty for all rows. `denied`
    says the same as denial constraints on the indicator of a row, named as `indicator` names it.
    """

    parent: str
    column: str
    child: str
    where: str
    denied: tuple[DenialConstraint, ...]
    text: str

    @property
    def indicator(self) -> str:
        """The column that says whether a row of the child counts."""
        return f"{self.child}.?{self.column}"


@dataclass(frozen=True, kw_only=True)
class Formula:
    """`column` of `table` is what an expression says of the row, its owners, what it names and what hangs on it."""

    table: str
    column: str
    sql: str
    text: str


@dataclass(frozen=True, kw_only=True)
class SqlCheck:
    """A condition of SQL that no row of `table` makes false, with its owners and the public rows that they name."""

    table: str
    sql: str
    tables: tuple[str, ...]
    columns: tuple[str, ...]
    text: str


@dataclass(frozen=True, kw_only=True)
class DatabaseRules:
    """All that is said of a database beside its schema."""

    rows: tuple[RowRule, ...] = ()
    pairs: tuple[PairRule, ...] = ()
    numberings: tuple[Numbering, ...] = ()
    cardinalities: tuple[Cardinality, ...] = ()
    counts: tuple[CountRule, ...] = ()
    formulas: tuple[Formula, ...] = ()
    checks: tuple[SqlCheck, ...] = ()
    references: tuple[ForeignKey, ...] = ()

    def texts(self) -> tuple[str, ...]:
        """Each rule as it was written, once."""
        return tuple(dict.fromkeys(each.text for each in self._all()))

    def _all(self) -> Iterator[RowRule | PairRule | Numbering | Cardinality | CountRule | Formula | SqlCheck]:
        yield from self.rows
        yield from self.pairs
        yield from self.numberings
        yield from self.cardinalities
        yield from self.counts
        yield from self.formulas
        yield from self.checks


def equal_on(constraint: DenialConstraint) -> frozenset[str]:
    """The columns on which two rows must agree to violate a constraint."""

    def same(each: object) -> bool:
        return (
            isinstance(each, Comparison)
            and each.op is Operator.EQ
            and isinstance(each.right, Column)
            and each.left.name == each.right.name
            and each.left.tuple != each.right.tuple
        )

    return frozenset(each.left.name for each in constraint.predicates if isinstance(each, Comparison) and same(each))
