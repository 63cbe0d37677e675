"""From tables to levels: which columns of a family are modelled together, and what is said of them. Public facts only.

A level is one private table, seen from its families: its own columns, given a *context* of what is drawn before them,
which is the columns of its owners, how many rows they own, and one row of each table beside it. Names of columns are
those of rules: `orders.placed`. `lines[other].price` is that of another row of the same owner, `notes[one].kind` that
of one row of a table beside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Column, Comparison, NullTest, Operator, Predicate
from kamino.databases.formula_lines import CompiledFormula, in_order
from kamino.databases.implied_domains import narrowed
from kamino.databases.sql_checks import keys_read
from kamino.databases.table_rules import CountRule, DatabaseRules, SqlCheck, dotted
from kamino.engine.families import ColumnOf, CountOf, MeetsOf, Sample, SampleColumn
from kamino.errors import SchemaError
from kamino.schema import Attribute, Boolean, Categorical, Integer, Key
from kamino.schema.database import Database, ForeignKey

#: Samples of each family, where it has more rows than one: four take half of the chance of choosing off, at no noise.
ROWS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """One private table as it is modelled.

    `context` and `own` say what each column is in a sample of families; `numbers` are own columns that number the rows
    of an owner, `placed` those that say whether a row counts in a number of its owner, and are drawn first. `counts`
    are the own columns that say how many rows of each child there are.
    """

    table: str
    path: tuple[str, ...]
    beside: tuple[str, ...]
    context: Mapping[str, SampleColumn]
    own: Mapping[str, SampleColumn]
    numbers: tuple[str, ...]
    placed: Mapping[str, CountRule]
    counts: Mapping[str, str]
    rules: tuple[DenialConstraint, ...]
    pairs: tuple[DenialConstraint, ...]
    siblings: bool

    @property
    def drawn(self) -> tuple[str, ...]:
        """The own columns that are drawn by the model: all but numbers."""
        return tuple(name for name in self.own if name not in self.numbers)

    def sample(self, rows: int) -> Sample:
        """What is asked of families for this level."""
        columns = {**self.context, **self.own}
        return Sample(path=self.path, columns=columns, rows=rows, beside=self.beside)

    def pair_sample(self, rows: int) -> Sample:
        """The same for pairs of rows of one owner: another one, and one."""
        other = {other_name(self.table, name): each for name, each in self.own.items()}
        own = {name: replace(each, second=True) for name, each in self.own.items()}
        return Sample(
            path=self.path, columns={**self.context, **other, **own}, rows=rows, pairs=True, beside=self.beside
        )


def other_name(table: str, name: str) -> str:
    """The name of a column of another row of the same owner.

    >>> other_name("lines", "lines.price")
    'lines[other].price'
    """
    return f"{table}[other].{name.removeprefix(f'{table}.')}"


def beside_name(table: str, name: str) -> str:
    """The name of a column of one row of a table beside."""
    return f"{table}[one].{name.removeprefix(f'{table}.')}"


def count_name(parent: str, child: str, rules: DatabaseRules) -> str:
    """The column that says how many rows of `child` a row of `parent` owns: a column of the parent, or one beside."""
    for rule in rules.counts:
        if (rule.parent, rule.child, rule.where) == (parent, child, ""):
            return dotted(parent, rule.column)
    return dotted(parent, f"#{child}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The levels of a database, each after those that it is drawn from, and the attributes of all columns.

    `domains` are the values of foreign keys to public tables: the keys of these.
    """

    database: Database
    rules: DatabaseRules
    public: Mapping[str, pa.Table] = field(repr=False)
    levels: tuple[Level, ...]
    attributes: Mapping[str, Attribute]

    @property
    def rows(self) -> int:
        """How many samples of a family are counted."""
        return ROWS if len(self.levels) > 1 else 1

    @cached_property
    def matched(self) -> tuple[ForeignKey, ...]:
        """The foreign keys of several columns to public tables: their rows are chosen when the others are drawn."""
        return tuple(k for name in self.database.private for k in self.database.named_keys(name) if len(k.columns) > 1)

    @cached_property
    def matching(self) -> frozenset[str]:
        """The texts of the checks by which rows of public tables are chosen."""
        chosen = {(k.table, k.references) for k in self.matched}
        return frozenset(c.text for c in self.rules.checks if any((c.table, name) in chosen for name in c.tables))

    def redrawn(self, level: Level) -> tuple[SqlCheck, ...]:
        """The checks of SQL on the rows of a level for which rows are drawn anew."""
        return tuple(c for c in self.rules.checks if c.table == level.table and c.text not in self.matching)

    @cached_property
    def formulas(self) -> tuple[CompiledFormula, ...]:
        """The derived columns, each after those it reads."""
        return in_order(self.rules.formulas, self.database)

    def level(self, table: str) -> Level:
        """The level of a table."""
        return next(each for each in self.levels if each.table == table)


def lay_out(database: Database, rules: DatabaseRules, public: Mapping[str, pa.Table]) -> Layout:
    """Plan the levels of a database.

    Raises:
        SchemaError: something that rules ask for cannot be kept, or is not supported.

    Guarantees:
        Reads no private table.  [test_a_database_is_planned_without_rows]
    """
    maker = _Maker(database, rules, public)
    levels = tuple(maker.level(name) for name in database.private)
    if not maker.problems:
        maker.attributes |= narrowed(maker.attributes, rules, maker.problems)
    if maker.problems:
        raise SchemaError("\n".join(maker.problems))
    for level in levels:
        maker.attributes |= numbered(level, maker.attributes, rules)
    return Layout(database=database, rules=rules, public=public, levels=levels, attributes=maker.attributes)


class _Maker:
    def __init__(self, database: Database, rules: DatabaseRules, public: Mapping[str, pa.Table]) -> None:
        self.database, self.rules, self.public = database, rules, public
        self.attributes: dict[str, Attribute] = {}
        self.problems: list[str] = []
        self.own: dict[str, dict[str, SampleColumn]] = {}
        self.derived = {dotted(each.table, each.column) for each in rules.formulas}

    def level(self, name: str) -> Level:
        """Plan one table, whose owners are planned."""
        path = self.database.path(name)
        placed = {rule.indicator: rule for rule in self.rules.counts if rule.child == name and rule.where}
        counts = {child: count_name(name, child, self.rules) for child in self.database.children(name)}
        numbers = tuple(dotted(name, each.column) for each in self.rules.numberings if each.table == name)
        own = dict(self._own(name, placed, counts))
        self.own[name] = own
        beside = self._beside(name)
        context = dict(self._context(path[:-1], beside))
        pairs = self._pairs(name, numbers)
        self._check_checks(name, {**context, **own})
        again = [c for c in self.rules.checks if c.table == name]
        if pairs and again and len(path) > 1:
            self.problems.append(
                f"{again[0].text!r}: found a check that draws rows anew beside rules on two rows of {name}, which "
                "is not supported below the root yet"
            )
        return Level(
            table=name,
            path=path,
            beside=beside,
            context=context,
            own=own,
            numbers=numbers,
            placed=placed,
            counts=counts,
            rules=tuple(self._rules(name, {**context, **own})),
            pairs=pairs,
            siblings=len(path) > 1 and not pairs and self._most(name) > 1,
        )

    def _own(
        self, name: str, placed: Mapping[str, CountRule], counts: Mapping[str, str]
    ) -> Iterator[tuple[str, SampleColumn]]:
        table = self.database[name]
        counted = {c: child for child, c in counts.items()}
        conditions = {dotted(r.parent, r.column): r for r in self.rules.counts if r.where and r.parent == name}
        for flag, rule in placed.items():
            self.attributes[flag] = Boolean()
            yield flag, MeetsOf(table=name, where=_conditions(rule))
        keys = {k.columns[0]: k for k in self.database.named_keys(name) if len(k.columns) == 1}
        several = [k for k in self.database.named_keys(name) if len(k.columns) > 1]
        found_later = {c for k in several for c in free_columns(k, self.database)}
        for key in several:
            if not free_columns(key, self.database):
                self.problems.append(
                    f"{key}: found a key all of whose columns are keys by themselves, which is not supported yet"
                )
        for column, attribute in table.known.attributes.items():
            whole = dotted(name, column)
            if whole in self.derived or isinstance(attribute, Key) or column in found_later:
                continue
            if whole in counted:
                self.attributes[whole] = self._count_attribute(name, counted[whole], attribute)
                yield whole, CountOf(table=name, child=counted[whole])
            elif whole in conditions:
                rule = conditions[whole]
                self.attributes[whole] = attribute
                yield whole, CountOf(table=name, child=rule.child, where=_conditions(rule))
            else:
                self.attributes[whole] = self._named(keys[column], attribute) if column in keys else attribute
                yield whole, ColumnOf(table=name, column=column)
        for whole, child in counted.items():
            if whole not in self.attributes:
                self.attributes[whole] = self._count_attribute(name, child, Integer())
                yield whole, CountOf(table=name, child=child)

    def _count_attribute(self, parent: str, child: str, attribute: Attribute) -> Attribute:
        """The attribute of a number of children: within what is said of it."""
        said = [each for each in self.rules.cardinalities if (each.parent, each.child) == (parent, child)]
        least, most = max((each.least for each in said), default=0), min((each.most for each in said), default=None)
        if isinstance(attribute, Integer) and attribute.min is not None and attribute.max is not None:
            least, most = max(least, attribute.min), min(attribute.max, attribute.max if most is None else most)
        if most is None:
            return attribute
        if least > most:
            self.problems.append(
                f"{parent}: found {least} to {most} rows of {child}, expected the smaller number first"
            )
            most = least
        dtype = attribute.dtype
        return Integer(min=least, max=most, dtype=dtype) if dtype else Integer(min=least, max=most)

    def _most(self, name: str) -> int:
        """The most rows of a table that an owner has, as far as it is said."""
        owner = self.database[name].owner
        assert owner is not None, "only owned tables have siblings"
        attribute = self.attributes[count_name(owner.references, name, self.rules)]
        assert isinstance(attribute, Integer)
        return 2 if attribute.max is None else attribute.max

    def _named(self, key: ForeignKey, attribute: Attribute) -> Attribute:
        """The attribute of a foreign key to a public table: a category whose domain are its keys."""
        values = self.public[key.references].column(key.to[0]).drop_null().unique().sort()
        dtype = attribute.dtype or str(values.type)
        listed = values.to_pylist()
        if not listed or not all(isinstance(each, str | int) for each in listed):
            self.problems.append(f"{key}: found a key of type {values.type}, expected text or whole numbers")
            return attribute
        return Categorical(values=tuple(listed), nullable=attribute.nullable, dtype=dtype)

    def _beside(self, name: str) -> tuple[str, ...]:
        owner = self.database[name].owner
        if owner is None:
            return ()
        children = self.database.children(owner.references)
        return children[: children.index(name)]

    def _context(self, above: tuple[str, ...], beside: tuple[str, ...]) -> Iterator[tuple[str, SampleColumn]]:
        for table in above:
            yield from self.own[table].items()
        for table in beside:
            for name, column in self.own[table].items():
                shown = beside_name(table, name)
                self.attributes[shown] = nullable(self.attributes[name])
                yield shown, column

    def _pairs(self, name: str, numbers: tuple[str, ...]) -> tuple[DenialConstraint, ...]:
        """The rules on two rows of a table, with the owner as a column; keys that numbers keep are left out."""
        table = self.database[name]
        by = set(table.owner.columns) if table.owner is not None else set()
        made_up = {c for c, each in table.known.attributes.items() if isinstance(each, Key)} - by
        found = [each.constraint for each in self.rules.pairs if each.table == name]
        key = tuple(table.key)
        if key and not set(key) & made_up:
            found.append(_key(key))
        kept = []
        for constraint in found:
            names = set(constraint.attributes)
            equal = all(isinstance(p, Comparison) and p.op is Operator.EQ for p in constraint.predicates)
            if equal and any(dotted(name, c) in numbers for c in names) and names & by:
                continue  # numbers of one owner differ
            rest = _without_made_up(constraint, made_up)
            if rest is None:
                continue
            derived = [each for each in names if dotted(name, each) in self.derived]
            if derived:
                self.problems.append(
                    f"{name}.{derived[0]}: found a rule on two rows with a derived column, expected others"
                )
            kept.append(_with_owner(rest, name, by))
        return tuple(kept)

    def _check_checks(self, name: str, columns: Mapping[str, SampleColumn]) -> None:
        """Refuse checks of SQL that read what is not drawn."""
        matched = {k.references for k in self.database.named_keys(name) if len(k.columns) > 1}
        for check in self.rules.checks:
            unknown = [c for c in keys_read(check, self.database) if c not in columns]
            if check.table == name and unknown and not matched & set(check.tables):
                self.problems.append(
                    f"{check.text!r}: found a check of {unknown[0]}, which is made up or derived; name others"
                )

    def _rules(self, name: str, columns: Mapping[str, SampleColumn]) -> Iterator[DenialConstraint]:
        for rule in self.rules.rows:
            if rule.table != name:
                continue
            named = set(rule.constraint.attributes)
            unknown = sorted(named - set(columns))
            if unknown:
                self.problems.append(
                    f"{rule.text!r}: found a check of {unknown[0]}, which is made up or derived; name others"
                )
            else:
                yield rule.constraint
        for count in self.rules.counts:
            if count.where and count.child == name:
                yield from count.denied
            if count.where and count.parent == name:
                most = Column(count_name(name, count.child, self.rules))
                yield DenialConstraint(predicates=(Comparison(Column(dotted(name, count.column)), Operator.GT, most),))


def numbered(level: Level, attributes: Mapping[str, Attribute], rules: DatabaseRules) -> dict[str, Attribute]:
    """The columns that number the rows of an owner, from 1 to as many as there may be; nothing before that is known."""
    if not level.numbers:
        return {}
    count = attributes[count_name(level.path[-2], level.table, rules)]
    if not isinstance(count, Integer) or count.max is None:
        return {}
    return {
        name: attributes[name].with_domain(source=count.source, min=1, max=max(count.max, 1)) for name in level.numbers
    }


def free_columns(key: ForeignKey, database: Database) -> tuple[str, ...]:
    """The columns of a foreign key of several columns that are not drawn by themselves: no other key has them."""
    others = {c for k in database[key.table].foreign_keys if k is not key for c in k.columns}
    schema = database[key.table].known
    return tuple(c for c in key.columns if c not in others and not isinstance(schema[c], Key))


def nullable(attribute: Attribute) -> Attribute:
    """The attribute, with null."""
    return attribute if attribute.nullable else type(attribute)(**{**attribute.fields(), "nullable": True})


OWNER = "@owner"
"""The column of an owned table that says whose rows are whose, in rules on two of them."""


def owner_name(table: str) -> str:
    """The name of the column that says whose rows are whose."""
    return dotted(table, OWNER)


def _key(columns: tuple[str, ...]) -> DenialConstraint:
    return DenialConstraint(predicates=tuple(Comparison(Column(c, 1), Operator.EQ, Column(c, 2)) for c in columns))


def _without_made_up(constraint: DenialConstraint, made_up: set[str]) -> DenialConstraint | None:
    """A constraint on two rows without its made-up keys, which all differ; None if that keeps it."""
    rest = []
    for predicate in constraint.predicates:
        if not made_up & {column.name for column in predicate.columns}:
            rest.append(predicate)
        elif not isinstance(predicate, Comparison) or predicate.op is not Operator.NE:
            return None
    return constraint.with_predicates(tuple(rest)) if rest else None


def _with_owner(constraint: DenialConstraint, table: str, by: set[str]) -> DenialConstraint:
    """A constraint on two rows with dotted names, and the columns that name the owner as one."""

    def named(column: Column) -> Column:
        return replace(column, name=owner_name(table) if column.name in by else dotted(table, column.name))

    found: list[Predicate] = []
    for predicate in constraint.predicates:
        if isinstance(predicate, Comparison):
            right = named(predicate.right) if isinstance(predicate.right, Column) else predicate.right
            found.append(replace(predicate, left=named(predicate.left), right=right))
        elif isinstance(predicate, NullTest):
            found.append(replace(predicate, column=named(predicate.column)))
    return constraint.with_predicates(tuple(found))


def _conditions(rule: CountRule) -> tuple[DenialConstraint, ...]:
    """The denial constraints that a row of the child breaks where it counts, on its own columns."""
    found = []
    for constraint in rule.denied:
        flags = [p for p in constraint.predicates if rule.indicator in {c.name for c in p.columns}]
        if any(isinstance(p, Comparison) and getattr(p.right, "value", None) is False for p in flags):
            rest = tuple(p for p in constraint.predicates if p not in flags)
            plain = constraint.with_predicates(rest)
            found.append(_with_plain_names(plain, rule.child))
    return tuple(found)


def _with_plain_names(constraint: DenialConstraint, table: str) -> DenialConstraint:
    def plain(column: Column) -> Column:
        return replace(column, name=column.name.removeprefix(f"{table}."))

    found: list[Predicate] = []
    for predicate in constraint.predicates:
        if isinstance(predicate, Comparison):
            right = plain(predicate.right) if isinstance(predicate.right, Column) else predicate.right
            found.append(replace(predicate, left=plain(predicate.left), right=right))
        elif isinstance(predicate, NullTest):
            found.append(replace(predicate, column=plain(predicate.column)))
    return constraint.with_predicates(tuple(found))
