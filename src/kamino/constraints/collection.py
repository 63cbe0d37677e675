"""The constraints of one table, read from text and checked against its schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kamino.constraints.binding import bind, bind_derivation, bind_group_rule
from kamino.constraints.derivation import Derivation, in_order
from kamino.constraints.group_rules import GroupRule, RowsRule
from kamino.constraints.language.legacy import is_legacy, parse_legacy
from kamino.constraints.language.parser import Statement, parse_line
from kamino.constraints.language.printer import print_constraint, print_derivation, print_rule
from kamino.constraints.tree import DenialConstraint
from kamino.constraints.types import ValueTypes
from kamino.errors import ConstraintError, ConstraintErrors
from kamino.limits import MAX_CONSTRAINTS, MAX_FAULTS, MAX_LINE_CHARS, text_problem


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
    derivations: tuple[Derivation, ...] = ()
    group_rules: tuple[GroupRule | RowsRule, ...] = ()

    def __iter__(self) -> Iterator[DenialConstraint]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        return "\n".join(
            [
                *map(print_derivation, self.derivations),
                *map(print_constraint, self.items),
                *map(print_rule, self.group_rules),
            ]
        )

    @classmethod
    def parse(cls, text: str, *, source: str = "<text>", types: ValueTypes | None = None) -> Constraints:
        """Read constraints, one a line; with `types`, also check names, types and constants.

        Raises `ConstraintErrors` with everything that is wrong in the text, up to a number that people can mend.

        Guarantees:
            A text beyond a limit is refused within seconds.  [test_hostile_rules_are_refused_at_once]
        """
        problem = text_problem(text)
        if problem:
            raise ConstraintErrors([ConstraintError(problem, source=source, line=1, column=1)])
        found: list[Statement] = []
        errors: list[ConstraintError] = []
        for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
            line = raw.rstrip("\r")
            read = parse_legacy if is_legacy(line[:MAX_LINE_CHARS]) else parse_line
            try:
                _check_line(line, source, number)
                found += read(line, source=source, line=number)
            except ConstraintError as fault:
                errors.append(fault)
            if len(errors) > MAX_FAULTS or len(found) > MAX_CONSTRAINTS:
                break
        made = cls(
            tuple(each for each in found if isinstance(each, DenialConstraint)),
            tuple(each for each in found if isinstance(each, Derivation)),
            tuple(each for each in found if isinstance(each, GroupRule | RowsRule)),
        )
        return _checked(made, errors, types)

    @classmethod
    def from_ddl(cls, sql: str, *, dialect: str | None = None, source: str = "<ddl>") -> Constraints:
        """Read primary key, unique, not null and check from one `CREATE TABLE` statement.

        >>> print(Constraints.from_ddl("create table t (id int primary key, age int check (age >= 0))"))
        check (id is not null)
        key (id)
        check (age >= 0)
        """
        from kamino.constraints.language.ddl import parse_ddl  # sqlglot is slow to import

        return cls(parse_ddl(sql, dialect=dialect, source=source))

    @classmethod
    def split_ddl(
        cls, sql: str, *, dialect: str | None = None, source: str = "<ddl>"
    ) -> tuple[Constraints, tuple[str, ...]]:
        """Read one `CREATE TABLE` statement, and list what of it is no constraint here: other checks, references, …

        >>> found, left_out = Constraints.split_ddl("create table t (a int check (a > 0), b int references u (c))")
        >>> print(found, left_out)
        check (a > 0) ('b: REFERENCES u (c)',)
        """
        from kamino.constraints.language.ddl import split_ddl  # sqlglot is slow to import

        found, left_out = split_ddl(sql, dialect=dialect, source=source)
        return cls(found), left_out

    def bind(self, types: ValueTypes) -> Constraints:
        """The same constraints with constants of the attributes' types; `ConstraintErrors` if any does not fit."""
        return _checked(self, [], types)


def _check_line(line: str, source: str, number: int) -> None:
    if len(line) > MAX_LINE_CHARS:
        raise ConstraintError(
            f"found a line of {len(line)} characters, expected at most {MAX_LINE_CHARS}; split it",
            source=source,
            line=number,
            column=1,
        )


def _too_many(found: tuple[DenialConstraint, ...]) -> list[ConstraintError]:
    if len(found) <= MAX_CONSTRAINTS:
        return []
    at = found[-1].place
    return [
        ConstraintError(
            f"found more than {MAX_CONSTRAINTS} constraints, expected fewer; keep those that matter",
            source=at.source,
            line=at.line,
            column=at.column,
        )
    ]


def _checked(made: Constraints, errors: list[ConstraintError], types: ValueTypes | None) -> Constraints:
    errors = errors + _too_many(made.items)
    try:
        made = replace(made, derivations=in_order(made.derivations))
    except ConstraintError as fault:
        errors.append(fault)
    if types is not None and len(errors) <= MAX_FAULTS:
        made = _bound(made, errors, types)
    if errors:
        raise ConstraintErrors(_listed(errors))
    return made


def _bound(made: Constraints, errors: list[ConstraintError], types: ValueTypes) -> Constraints:
    """The constraints with typed constants; what does not fit is put among the errors."""
    derivations = []
    for derivation in made.derivations:
        bound_one, found, wrong = bind_derivation(derivation, types)
        derivations.append(bound_one)
        types = {**types, derivation.target: found} if types.get(derivation.target) is None else types
        errors += wrong
    items, rules = [], []
    for constraint in made.items[:MAX_CONSTRAINTS]:
        bound, wrong = bind(constraint, types)
        items.append(bound)
        errors += wrong
        if len(errors) > MAX_FAULTS:
            break
    for rule in made.group_rules:
        bound_rule, wrong = bind_group_rule(rule, types)
        rules.append(bound_rule)
        errors += wrong
    return Constraints(tuple(items), tuple(derivations), tuple(rules))


def _listed(errors: list[ConstraintError]) -> list[ConstraintError]:
    """Each fault once; of very many the first, and that there are more."""
    distinct = sorted({str(error): error for error in errors}.values(), key=lambda error: (error.line, error.column))
    if len(distinct) <= MAX_FAULTS:
        return distinct
    last = distinct[MAX_FAULTS - 1]
    more = ConstraintError(
        "found more faults after these; mend them first", source=last.source, line=last.line, column=last.column
    )
    return [*distinct[:MAX_FAULTS], more]
