"""The rules of a database, read from text: one a line, in the language of constraints with names such as orders.placed.

orders.customer references customers.id
check (orders.placed >= customers.born)
lines.zip -> lines.city
key (lines.order, lines.line_no)
each orders has 1..7 lines
number (lines.line_no)
count(persons where works = true) = households.workers
sum(lines.net) = orders.net
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.language.lexer import Token, tokenize
from kamino.constraints.tree import Column, Comparison, NullTest, Predicate
from kamino.databases.formula_lines import is_formula, read_formula
from kamino.databases.sql_checks import columns_of, is_check
from kamino.databases.table_rules import (
    Cardinality,
    CountRule,
    DatabaseRules,
    Formula,
    Numbering,
    PairRule,
    RowRule,
    SqlCheck,
    dotted,
)
from kamino.errors import ConstraintError, ConstraintErrors, KaminoError
from kamino.limits import MAX_CONSTRAINTS, MAX_LINE_CHARS, text_problem
from kamino.schema.database import Database, ForeignKey, Role
from kamino.schema.files.messages import did_you_mean

_NAME = r'(?:"(?:[^"]|"")*"|[^\W\d]\w*(?:-\w+)*)'
_DOTTED = rf"{_NAME}\s*\.\s*{_NAME}"
_REFERENCES = re.compile(rf"({_DOTTED}(?:\s*,\s*{_DOTTED})*)\s+references\s+({_DOTTED}(?:\s*,\s*{_DOTTED})*)\Z", re.I)
_NUMBER = re.compile(rf"number\s*\(\s*({_DOTTED})\s*\)\Z", re.I)
_EACH = re.compile(rf"each\s+({_NAME})\s+has\s+(?:(\d+)(?:\s*\.\.\s*(\d+))?)\s+({_NAME})\Z", re.I)
_COUNT = re.compile(rf"count\s*\(\s*({_NAME})(?:\s+where\s+(.+))?\s*\)\s*=\s*({_DOTTED})\Z", re.I | re.S)


def parse_rules(text: str, database: Database, *, source: str = "<rules>") -> DatabaseRules:
    """Read the rules of a database.

    Raises:
        ConstraintErrors: everything that is wrong, one line each.

    Guarantees:
        What is not understood is refused, with its line.  [test_bad_rules_are_refused_in_one_line]
    """
    problem = text_problem(text)
    if problem:
        raise ConstraintErrors([ConstraintError(problem, source=source, line=1, column=1)])
    errors: list[ConstraintError] = []
    found: list[Any] = []
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        try:
            found += _Line(raw.rstrip("\r"), database, source, number).rules()
        except KaminoError as fault:
            told = fault.message if isinstance(fault, ConstraintError) else str(fault).splitlines()[0]
            errors.append(ConstraintError(told, source=source, line=number, column=1))
    if len(found) > MAX_CONSTRAINTS:
        errors.append(
            ConstraintError(f"found more than {MAX_CONSTRAINTS} rules, expected fewer", source=source, line=1)
        )
    if errors:
        raise ConstraintErrors(errors)
    return DatabaseRules(
        rows=tuple(each for each in found if isinstance(each, RowRule)),
        pairs=tuple(each for each in found if isinstance(each, PairRule)),
        numberings=tuple(each for each in found if isinstance(each, Numbering)),
        cardinalities=tuple(each for each in found if isinstance(each, Cardinality)),
        counts=tuple(each for each in found if isinstance(each, CountRule)),
        formulas=tuple(each for each in found if isinstance(each, Formula)),
        checks=tuple(each for each in found if isinstance(each, SqlCheck)),
        references=tuple(each for each in found if isinstance(each, ForeignKey)),
    )


class _Line:
    """One line of rules."""

    def __init__(self, text: str, database: Database, source: str, number: int) -> None:
        if len(text) > MAX_LINE_CHARS:
            raise ConstraintError(
                f"found a line of {len(text)} characters, expected at most {MAX_LINE_CHARS}; split it"
            )
        self.database, self.source, self.number = database, source, number
        self.text = _without_comment(text).strip()

    def rules(self) -> Sequence[Any]:
        """What the line says; nothing for a blank line or a comment."""
        if not self.text:
            return ()
        readers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Sequence[Any]]], ...] = (
            (_REFERENCES, self._references),
            (_NUMBER, self._numbering),
            (_EACH, self._cardinality),
            (_COUNT, self._count),
        )
        for pattern, read in readers:
            match = pattern.match(self.text)
            if match is not None:
                return read(match)
        if is_formula(self.text):
            return (read_formula(self.text, self.database),)
        return self._constraints()

    def _references(self, match: re.Match[str]) -> Sequence[ForeignKey]:
        sides = [[self._column(each) for each in re.findall(_DOTTED, part)] for part in match.groups()]
        tables = [list(dict.fromkeys(table for table, _ in side)) for side in sides]
        if any(len(names) > 1 for names in tables):
            raise ConstraintError("found columns of several tables on one side, expected those of one")
        (child,), (parent,) = tables
        key = ForeignKey(
            table=child, columns=tuple(c for _, c in sides[0]), references=parent, to=tuple(c for _, c in sides[1])
        )
        if key not in self.database[child].foreign_keys:
            raise ConstraintError(f"found {key}, which the schema does not have; add it to tables.{child}.foreign_keys")
        return (key,)

    def _numbering(self, match: re.Match[str]) -> Sequence[Numbering]:
        table, column = self._column(match[1])
        if self.database[table].role is not Role.OWNED:
            raise ConstraintError(f"found numbers of {table}, expected a table that is owned by another")
        if self.database[table].known[column].type != "integer":
            raise ConstraintError(f"found numbers in {table}.{column}, expected an attribute of type integer")
        return (Numbering(table=table, column=column, text=self.text),)

    def _cardinality(self, match: re.Match[str]) -> Sequence[Cardinality]:
        parent, child = self._table(match[1]), self._table(match[4])
        self._check_owned(child, parent)
        least = int(match[2])
        most = int(match[3]) if match[3] else least
        if least > most:
            raise ConstraintError(f"found {least}..{most}, expected the smaller number first")
        return (Cardinality(parent=parent, child=child, least=least, most=most, text=self.text),)

    def _count(self, match: re.Match[str]) -> Sequence[CountRule]:
        child, (parent, column) = self._table(match[1]), self._column(match[3])
        self._check_owned(child, parent)
        if self.database[parent].known[column].type != "integer":
            raise ConstraintError(f"found a count in {parent}.{column}, expected an attribute of type integer")
        where = (match[2] or "").strip()
        rule = CountRule(parent=parent, column=column, child=child, where=where, denied=(), text=self.text)
        if not where:
            return (rule,)
        told = "".join(_qualified(tokenize(where, source="", line=0), child, self.database[child].known.names))
        flag = f'"{rule.indicator}"'
        lines = f"not ({flag} = false and ({told}))\nnot ({flag} = true and not ({told}))"
        return (replace(rule, denied=tuple(Constraints.parse(lines, source=self.source))),)

    def _constraints(self) -> Sequence[RowRule | PairRule | SqlCheck]:
        try:
            tokens = tokenize(self.text, source=self.source, line=self.number)
            text = "".join(_joined(tokens, self.database))
            parsed = Constraints.parse(text, source=self.source)
        except KaminoError:
            if not is_check(self.text):
                raise
            return (self._check(),)
        names = {name.partition(".")[0] for each in parsed for name in each.attributes}
        if not all(isinstance(p, Comparison | NullTest) for each in parsed for p in each.predicates):
            # Arithmetic is kept by drawing anew what breaks it.
            if is_check(self.text) and all(each.is_unary for each in parsed):
                return (self._check(),)
            raise ConstraintError("found arithmetic in a rule on two rows of a database, expected plain columns there")
        is_public = any(n in self.database.tables and self.database[n].role is Role.PUBLIC for n in names)
        if is_public and is_check(self.text) and all(each.is_unary for each in parsed):
            return (self._check(),)
        return [self._sorted(each) for each in parsed]

    def _check(self) -> SqlCheck:
        """A check that the language of constraints does not say, or one with public columns, as a condition of SQL."""
        sql, columns = columns_of(self.text)
        for table, column in columns:
            self._check_column(table, column)
        tables = tuple(dict.fromkeys(table for table, _ in columns))
        names = tuple(dict.fromkeys(dotted(table, column) for table, column in columns))
        return SqlCheck(table=self._lowest(tables), sql=sql, tables=tables, columns=names, text=self.text)

    def _sorted(self, constraint: DenialConstraint) -> RowRule | PairRule:
        if not constraint.is_hard:
            raise ConstraintError("found a soft rule of a database, expected hard ones; soft ones are for one table")
        if constraint.reference is not None:
            raise ConstraintError(
                "found `using` in a database, expected a public table with a foreign key in its place"
            )
        for name in constraint.attributes:
            if "." not in name:
                raise ConstraintError(f"found {name!r} without its table, expected a name such as orders.{name}")
            table, _, column = name.partition(".")
            self._check_column(table, column)
        tables = tuple(dict.fromkeys(name.partition(".")[0] for name in constraint.attributes))
        if constraint.is_unary:
            return RowRule(table=self._lowest(tables), constraint=constraint, text=self.text)
        if len(tables) > 1:
            raise ConstraintError(
                f"found two rows of {' and '.join(tables)}, expected two of one table, or one row and those above it"
            )
        if self.database[tables[0]].role is Role.PUBLIC:
            raise ConstraintError(f"found a rule of the public table {tables[0]}, which stays as it is; take it out")
        return PairRule(table=tables[0], constraint=_plain(constraint), text=self.text)

    def _lowest(self, tables: Sequence[str]) -> str:
        """The private table on whose rows a rule speaks: all others are above it, or public and named by it or them."""
        private = [each for each in tables if self.database[each].role is not Role.PUBLIC]
        naming = [n for n in self.database.private if any(k.references in tables for k in self.database.named_keys(n))]
        if not private and len(naming) == 1 and len(tables) == 1:
            private = naming
        if not private:
            raise ConstraintError(f"found a rule of public tables only ({', '.join(tables)}), which stay as they are")
        lowest = max(private, key=lambda each: len(self.database.path(each)))
        path = self.database.path(lowest)
        for each in private:
            if each not in path:
                raise ConstraintError(f"found {each} beside {lowest}, expected tables along one path of keys")
        for each in tables:
            if self.database[each].role is Role.PUBLIC:
                self._check_named(each, path)
        return lowest

    def _check_named(self, public: str, path: Sequence[str]) -> None:
        keys = [k for name in path for k in self.database.named_keys(name) if k.references == public]
        if len(keys) != 1:
            found = "no foreign key" if not keys else f"{len(keys)} foreign keys"
            raise ConstraintError(
                f"found {found} from {path[-1]} to {public}, expected one that says which row is meant"
            )

    def _check_owned(self, child: str, parent: str) -> None:
        owner = self.database[child].owner
        if owner is None or owner.references != parent:
            raise ConstraintError(f"found {child} with {parent}, expected a table and what is owned by it")

    def _table(self, text: str) -> str:
        name = _unquoted(text)
        if name not in self.database.tables:
            known = self.database.tables
            raise ConstraintError(f"found no table {name!r}.{did_you_mean(name, known)} Tables: {', '.join(known)}")
        return name

    def _column(self, text: str) -> tuple[str, str]:
        match = re.fullmatch(rf"({_NAME})\s*\.\s*({_NAME})", text.strip())
        assert match is not None, "the patterns hold dotted names"
        table, column = self._table(match[1]), _unquoted(match[2])
        self._check_column(table, column)
        return table, column

    def _check_column(self, table: str, column: str) -> None:
        schema = self.database[self._table(f'"{table}"')].schema
        if schema is not None and column not in schema:
            raise ConstraintError(f"found no column {column!r} in {table}.{did_you_mean(column, schema)}")


def _without_comment(text: str) -> str:
    """The line without what follows a # outside of quotes."""
    quote = ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#":
            return text[:place]
    return text


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def _written(token: Token) -> str:
    if token.kind == "quoted":
        return '"' + token.text.replace('"', '""') + '"'
    return "'" + token.text.replace("'", "''") + "'" if token.kind == "string" else token.text


def _is_dot(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].kind == "punct" and tokens[place].text == "."


def _joined(tokens: Sequence[Token], database: Database) -> list[str]:
    """The line with each name of a table and a column as one quoted name."""
    found: list[str] = []
    place = 0
    while place < len(tokens) - 1:
        token = tokens[place]
        is_name = token.kind in ("name", "quoted")
        # A table may be called t1: then it has a column behind it, and a tuple variable has a table and a column.
        is_variable = token.keyword in ("t1", "t2") and (
            _is_dot(tokens, place + 3) or token.text not in database.tables
        )
        if is_name and is_variable and _is_dot(tokens, place + 1):
            found.append(f" {token.text}.")
            place += 2
            continue
        if is_name and _is_dot(tokens, place + 1):
            table, column = token.text, tokens[place + 2].text
            if table not in database.tables:
                known = database.tables
                raise ConstraintError(
                    f"found no table {table!r}.{did_you_mean(table, known)} Tables: {', '.join(known)}"
                )
            whole = dotted(table, column).replace('"', '""')
            found.append(f'"{whole}"' if found and found[-1].endswith(".") else f' "{whole}"')
            place += 3
            continue
        found.append(f" {_written(token)}")
        place += 1
    return found


def _qualified(tokens: Sequence[Token], table: str, names: Sequence[str]) -> list[str]:
    """A condition on the columns of one table, with each name as one quoted name with the table."""
    found = []
    for token in tokens[:-1]:
        is_name = token.kind == "quoted" or (token.kind == "name" and not (token.keyword and token.text not in names))
        if is_name and token.text not in names:
            raise ConstraintError(f"found no column {token.text!r} in {table}.{did_you_mean(token.text, names)}")
        whole = dotted(table, token.text).replace('"', '""')
        found.append(f' "{whole}"' if is_name else f" {_written(token)}")
    return found


def _plain(constraint: DenialConstraint) -> DenialConstraint:
    """A constraint on one table with the names of its columns alone."""

    def plain(column: Column) -> Column:
        return replace(column, name=column.name.partition(".")[2])

    def of(predicate: Predicate) -> Predicate:
        match predicate:
            case Comparison(left=left, right=right):
                return replace(predicate, left=plain(left), right=plain(right) if isinstance(right, Column) else right)
            case NullTest(column=column):
                return replace(predicate, column=plain(column))
            case _:
                raise ConstraintError("found arithmetic in a rule of a database on two rows, expected plain columns")

    return constraint.with_predicates(tuple(of(each) for each in constraint.predicates))
