"""The constraints of one table, read from text and checked against its schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kamino.constraints.binding import bind
from kamino.constraints.language.ddl import parse_ddl
from kamino.constraints.language.legacy import is_legacy, parse_legacy
from kamino.constraints.language.parser import parse_line
from kamino.constraints.language.printer import print_constraint
from kamino.constraints.tree import DenialConstraint
from kamino.constraints.types import ValueTypes
from kamino.errors import ConstraintError, ConstraintErrors


@dataclass(frozen=True)
class Constraints:
    r"""An ordered set of denial constraints.

    >>> rules = Constraints.parse("zip -> city, state  # one place\nsoft: key (name)")
    >>> print(rules)
    zip -> city
    zip -> state
    soft: key (name)

    Guarantees:
        Printing and parsing again gives the same constraints.  [test_print_then_parse_is_identity]
    """

    items: tuple[DenialConstraint, ...] = ()

    def __iter__(self) -> Iterator[DenialConstraint]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        return "\n".join(print_constraint(constraint) for constraint in self.items)

    @classmethod
    def parse(cls, text: str, *, source: str = "<text>", types: ValueTypes | None = None) -> Constraints:
        """Read constraints, one a line; with `types`, also check names, types and constants.

        Raises `ConstraintErrors` with everything that is wrong in the text.
        """
        found: list[DenialConstraint] = []
        errors: list[ConstraintError] = []
        for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
            line = raw.rstrip("\r")
            read = parse_legacy if is_legacy(line) else parse_line
            try:
                found += read(line, source=source, line=number)
            except ConstraintError as problem:
                errors.append(problem)
        return _checked(tuple(found), errors, types)

    @classmethod
    def from_ddl(cls, sql: str, *, dialect: str | None = None, source: str = "<ddl>") -> Constraints:
        """Read primary key, unique, not null and check from one `CREATE TABLE` statement.

        >>> print(Constraints.from_ddl("create table t (id int primary key, age int check (age >= 0))"))
        check (id is not null)
        key (id)
        check (age >= 0)
        """
        return cls(parse_ddl(sql, dialect=dialect, source=source))

    def bind(self, types: ValueTypes) -> Constraints:
        """The same constraints with constants of the attributes' types; `ConstraintErrors` if any does not fit."""
        return _checked(self.items, [], types)


def _checked(
    found: tuple[DenialConstraint, ...], errors: list[ConstraintError], types: ValueTypes | None
) -> Constraints:
    if types is not None:
        pairs = [bind(constraint, types) for constraint in found]
        errors = errors + [error for _, wrong in pairs for error in wrong]
        found = tuple(bound for bound, _ in pairs)
    if errors:
        raise ConstraintErrors(list({str(error): error for error in errors}.values()))
    return Constraints(found)
