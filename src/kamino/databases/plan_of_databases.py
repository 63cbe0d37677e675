"""What a run on a database will do, in lines: how each rule is kept, and which part of the budget each table has."""

from __future__ import annotations

from collections.abc import Iterator

from kamino.databases.family_layout import Layout
from kamino.databases.fitting_levels import shares_of


def plan_lines(layout: Layout) -> Iterator[str]:
    """Say what is protected, how tables are measured, and how each rule is kept. Reads no private table.

    Guarantees:
        Every rule has a line.  [test_a_database_is_planned_without_rows]
    """
    database, rules = layout.database, layout.rules
    yield f"Protected: one row of {database.root!r} with all rows that hang on it, in all tables together."
    for (name, pairs), share in shares_of(layout).items():
        level = layout.level(name)
        what = (
            "two rows of one owner"
            if pairs
            else f"{len(level.drawn)} columns given {len(level.context)} of their families"
        )
        yield f"{name}: {what}, {share:.0%} of the budget."
    for name in database.public:
        yield f"{name}: public, stays as it is and costs nothing."
    for row in dict.fromkeys(each.text for each in rules.rows):
        yield f"{row}: kept while rows are drawn, for what they would break is left out."
    for check in rules.checks:
        how = (
            "rows of the public table are chosen by it"
            if check.text in layout.matching
            else "rows that break it are drawn anew"
        )
        yield f"{check.text}: {how}."
    for pair in dict.fromkeys(each.text for each in rules.pairs):
        yield f"{pair}: kept, for the rows of the table are drawn together; how alike rows of one owner are is not."
    for said in rules.cardinalities:
        yield f"{said.text}: numbers of rows are drawn within it."
    for numbered in rules.numberings:
        yield f"{numbered.text}: rows of an owner are numbered as they are drawn."
    for count in rules.counts:
        how = "so many rows are drawn" if not count.where else "so many rows are told to count before they are drawn"
        yield f"{count.text}: {how}."
    for compiled in layout.formulas:
        yield f"{compiled.formula.text}: derived, not measured."
    for name in database.private:
        for key in database[name].foreign_keys:
            public = key.references in database.public
            how = "a category whose values are the public keys" if public else "rows are drawn for their owner"
            yield f"{key}: {how}."
