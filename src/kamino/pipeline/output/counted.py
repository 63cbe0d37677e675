"""What is counted in a written table, once: violations of constraints, and rows that follow reference tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kamino.constraints import DenialConstraint
from kamino.constraints.counting.in_parts import count_in_parts
from kamino.evaluate.checking import following_of
from kamino.evaluate.following import Following
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.certificate import count_promised
from kamino.schema.table_parts import Parts


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counts of one synthetic table. Every field may be published."""

    violations: Mapping[DenialConstraint, int]
    following: Mapping[DenialConstraint, Following] = field(default_factory=dict)

    @property
    def broken(self) -> tuple[DenialConstraint, ...]:
        """The hard constraints that the table breaks."""
        return tuple(each for each, count in self.violations.items() if each.is_hard and count)


def count_parts(fitted: Fitted, table: Parts) -> Counted:
    """Count a synthetic table that is read part by part, as `count_table` does."""
    violations, _ = count_in_parts(table, fitted.promised)
    mapped = [each for each in fitted.constraints if each.reference is not None]
    following: dict[DenialConstraint, Following] = {}
    for part in table.parts() if mapped else ():
        for each in mapped:
            rows = following_of(part, each, fitted.references)
            if rows is not None:
                following[each] = rows + following[each] if each in following else rows
    return Counted(violations=violations, following=following)


def count_table(fitted: Fitted, table: pa.Table) -> Counted:
    """Count a synthetic table: what it breaks of what is promised, and which rows follow public maps.

    Guarantees:
        The certificate says what share of rows follows a reference.  [test_the_certificate_says_who_follows]
    """
    found = {each: following_of(table, each, fitted.references) for each in fitted.constraints}
    return Counted(
        violations=count_promised(fitted, table),
        following={constraint: rows for constraint, rows in found.items() if rows is not None},
    )
