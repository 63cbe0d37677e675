"""A contract: what some source declares of its tables, as rules of this language, and what it says beyond them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from kamino.constraints import Constraints
from kamino.constraints.derivation import Derivation
from kamino.constraints.group_rules import GroupRule, RowsRule
from kamino.constraints.language.parser import Statement
from kamino.constraints.language.printer import print_constraint, print_derivation, print_rule
from kamino.constraints.tree import SOFT, DenialConstraint, Place
from kamino.constraints.types import ValueType
from kamino.errors import ConstraintError
from kamino.limits import cut


@dataclass(frozen=True, kw_only=True)
class ContractTable:
    """A table with the columns that the source names; a type is None where it says none."""

    name: str
    columns: tuple[tuple[str, ValueType | None], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportedRule:
    """What one rule of the source became, with its own words and place. `note` says what changed on the way."""

    table: str
    statements: tuple[Statement, ...]
    text: str
    place: Place
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Columns whose values occur in columns of another table; no columns there means its primary key."""

    table: str
    columns: tuple[str, ...]
    to_table: str
    to_columns: tuple[str, ...]
    text: str
    place: Place


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """What is not carried over, in the source's words, with the reason and the place."""

    table: str
    text: str
    reason: str
    place: Place

    def __str__(self) -> str:
        named = f"{self.table}: " if self.table else ""
        return f"{self.place.source}:{self.place.line}: not carried over: {named}{self.text} ({self.reason})"


@dataclass(frozen=True, kw_only=True)
class Contract:
    """Tables, rules, references, and what was left out.

    Guarantees:
        Every rule of a source is in `rules`, `references`, the types of `tables` or `left_out`.
        [test_nothing_is_lost_in_silence]
    """

    tables: tuple[ContractTable, ...] = ()
    rules: tuple[ImportedRule, ...] = ()
    references: tuple[Reference, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The tables that anything is said of, each once."""
        spoken = [each.name for each in self.tables] + [each.table for each in self.rules]
        spoken += [each.table for each in self.references]
        return tuple(dict.fromkeys(spoken))

    def constraints(self, table: str | None = None) -> Constraints:
        """The rules of one table, each once; of all where none is named."""
        return collected(rule.statements for rule in self.rules if table is None or rule.table == table)


def collected(statements: Iterable[tuple[Statement, ...]]) -> Constraints:
    """Statements as one set of constraints, each once and derivations in order."""
    flat = dict.fromkeys(each for several in statements for each in several)
    return Constraints(
        tuple(each for each in flat if isinstance(each, DenialConstraint)),
        tuple(each for each in flat if isinstance(each, Derivation)),
        tuple(each for each in flat if isinstance(each, GroupRule | RowsRule)),
    )


def print_statement(statement: Statement) -> str:
    """One statement as a line of the language."""
    match statement:
        case DenialConstraint():
            return print_constraint(statement)
        case Derivation():
            return print_derivation(statement)
        case _:
            return print_rule(statement)


@dataclass
class Draft:
    """A contract in the making: a reader adds what it finds, and whatever cannot be said is kept as left out."""

    source: str
    tables: dict[str, dict[str, ValueType | None]] = field(default_factory=dict)
    rules: list[ImportedRule] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def column(self, table: str, name: str, kind: ValueType | None = None) -> None:
        """Note a column, and its type where one is said."""
        columns = self.tables.setdefault(table, {})
        columns[name] = kind or columns.get(name)

    def add(
        self,
        table: str,
        make: Callable[[], Iterable[Statement]],
        text: str,
        line: int = 0,
        *,
        soft: bool = False,
        note: str = "",
    ) -> None:
        """Add the rule that `make` makes; what it raises is the reason for leaving it out."""
        place = Place(self.source, line, 1)
        try:
            made = tuple(placed(each, place, soft=soft) for each in make())
            for each in made:
                print_statement(each)
        except (ConstraintError, RecursionError) as problem:
            reason = problem.message if isinstance(problem, ConstraintError) else "it is too deep"
            self.leave(table, text, reason, line)
            return
        except (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError):
            # A source may hold anything where an argument is expected: the rule is listed, the others are read.
            self.leave(table, text, "it is of another form than expected", line)
            return
        if not made:
            self.leave(table, text, "it says nothing of rows", line)
            return
        self.rules.append(ImportedRule(table=table, statements=made, text=cut(text), place=place, note=note))

    def refer(
        self, table: str, columns: Iterable[str], to_table: str, to_columns: Iterable[str], text: str, line: int = 0
    ) -> None:
        """Add a reference to another table."""
        self.references.append(
            Reference(
                table=table,
                columns=tuple(columns),
                to_table=to_table,
                to_columns=tuple(to_columns),
                text=cut(text),
                place=Place(self.source, line, 1),
            )
        )

    def leave(self, table: str, text: str, reason: str, line: int = 0) -> None:
        """List something that is not carried over."""
        place = Place(self.source, line, 1)
        self.left_out.append(LeftOut(table=table, text=cut(" ".join(text.split())), reason=reason, place=place))

    def contract(self) -> Contract:
        """What was found."""
        return Contract(
            tables=tuple(
                ContractTable(name=name, columns=tuple(columns.items())) for name, columns in self.tables.items()
            ),
            rules=tuple(self.rules),
            references=tuple(self.references),
            left_out=tuple(self.left_out),
        )


def placed(statement: Statement, place: Place, *, soft: bool) -> Statement:
    """The statement at the place of its source, soft where the source only warns."""
    if isinstance(statement, Derivation):
        return replace(statement, place=place)
    return replace(statement, place=place, strength=SOFT) if soft else replace(statement, place=place)
