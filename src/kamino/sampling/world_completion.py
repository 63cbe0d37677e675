"""Rows for the values that a first block does not have, so that the world it fixes knows them, too.

Of a dependency A -> y, later blocks may only have values of A that the world knows. A value that is missing gets a row
of its own: some row of the first block with this value instead of its own, chosen by how likely the model has the value
there. No other row has the value, so that no constraint that asks for equal A can be broken; all others see a row that
they have seen before. The rows belong to the world only, and not to the table.

Only attributes are completed that constraints on pairs ask to be equal and nothing else. What is made up of several
attributes is known if one of them is new, or if the first block has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.counting.conjunction import equal_attributes
from kamino.sampling.codes.choices import make_choices
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.plan.sampling_plan import SamplingPlan, Step

if TYPE_CHECKING:
    from kamino.model.protocol import TupleModel

#: Values of one attribute that are completed, at most: some hundred bytes each.
MOST_VALUES = 1 << 21
# How often the rows of the first block are drawn again to see which values come up where.
_ROUNDS = 4


def complete_world(
    judge: Judge, plan: SamplingPlan, model: TupleModel, first: Columns, rng: np.random.Generator
) -> dict[str, IntArray]:
    """The columns that constraints on pairs name, of the first block and of rows for all values that it lacks.

    Guarantees:
        Every value of a left side that may be completed is there, unless its map asks for what the first block does not
        have.  [test_a_world_knows_all_left_sides]
        What is added follows the maps.  [test_blocks_follow_the_parts, test_blocks_follow_references]
        No hard constraint is broken by what was added.  [test_a_completed_world_breaks_nothing]
    """
    pairs = [c for step in plan.steps for c in step.constraints]
    named = sorted({name for constraint in pairs for name in constraint.attributes})
    found = [{name: first[name] for name in named}]
    for step in plan.steps:
        if _may_be_completed(step.attribute, pairs):
            added = _rows_for(judge, plan, model, first, step, rng)
            found.append({name: added[name] for name in named})
    return {name: np.concatenate([each[name] for each in found]) for name in named}


def _may_be_completed(name: str, pairs: Sequence[DenialConstraint]) -> bool:
    """Whether constraints on pairs name an attribute, and all that do ask for equal values of it and no more."""
    naming = [constraint for constraint in pairs if name in constraint.attributes]
    return bool(naming) and all(_only_equal(name, constraint) for constraint in naming)


def _only_equal(name: str, constraint: DenialConstraint) -> bool:
    uses = sum(any(column.name == name for column in predicate.columns) for predicate in constraint.predicates)
    return name in equal_attributes(constraint) and uses == 1


def _rows_for(
    judge: Judge, plan: SamplingPlan, model: TupleModel, first: Columns, step: Step, rng: np.random.Generator
) -> dict[str, IntArray]:
    """A row for each value of an attribute that the first block does not have, as far as maps have one for it."""
    rows, values = _places(judge, model, first, step, rng)
    maps = [each for each in plan.references.values() if each.left == (step.attribute,) and each.right in first]
    wanted = {each.right: each.find({step.attribute: values}) for each in maps}
    alone = {name for name in wanted if _is_told_by(step.attribute, name, plan)}
    rows = _rows_with(first, {name: codes for name, codes in wanted.items() if name not in alone}, rows, rng)
    made = {name: codes[rows] for name, codes in first.items()} | {step.attribute: values}
    made |= {name: np.where(wanted[name] >= 0, wanted[name], made[name]) for name in alone}
    for later in _followers(plan, step.attribute):
        earlier = {name: made[name] for name in plan.sequence[: plan.sequence.index(later.attribute)]}
        choices = make_choices(model.conditional(later.attribute, earlier, len(rows)), judge, later.checks, earlier)
        drawn = choices.draw(rng, independent=True)
        made[later.attribute] = np.where(drawn >= 0, drawn, made[later.attribute])
    kept = np.ones(len(rows), dtype=np.bool_)
    for each in maps:
        codes = wanted[each.right]
        unknown = np.full(len(codes), not each.learned) & (codes < 0)
        kept &= unknown | (made[each.right] == codes) | judge.is_null(each.right, made[each.right])
    for check in (check for each in plan.steps for check in each.checks):
        kept &= ~judge.violates(check, made, made)
    return {name: codes[kept] for name, codes in made.items()}


def _is_told_by(left: str, right: str, plan: SamplingPlan) -> bool:
    """Whether constraints on pairs speak of an attribute only as what follows from another, alone."""
    naming = [c for step in plan.steps for c in step.constraints if right in c.attributes]
    return all(set(c.attributes) == {left, right} and left in equal_attributes(c) for c in naming)


def _rows_with(first: Columns, wanted: Mapping[str, IntArray], rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Exchange rows of the first block for others that have the wanted codes, where there are such."""
    if not wanted or len(rows) == 0:
        return rows
    num_rows = len(next(iter(first.values())))
    shuffled = rng.permutation(num_rows)
    keys = join_keys([np.concatenate([first[name][shuffled], codes]) for name, codes in wanted.items()])
    there, place = np.unique(keys[:num_rows], return_index=True)
    found = np.minimum(np.searchsorted(there, keys[num_rows:]), len(there) - 1)
    return np.where(there[found] == keys[num_rows:], shuffled[place[found]], rows)


def _followers(plan: SamplingPlan, name: str) -> Iterator[Step]:
    """The later steps whose value follows from this attribute, and that no other constraint on pairs speaks of."""
    pairs = [c for step in plan.steps for c in step.constraints]
    for step in plan.steps[plan.sequence.index(name) + 1 :]:
        naming = [constraint for constraint in pairs if step.attribute in constraint.attributes]
        if naming and all(name in equal_attributes(c) for c in naming):
            yield step


def _places(
    judge: Judge, model: TupleModel, first: Columns, step: Step, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Missing values, and for each the row of the first block whose place in the world it takes."""
    codec, num_rows = judge.codec[step.attribute], len(first[step.attribute])
    if codec.size > MOST_VALUES:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    missing = _missing(codec.size, codec.null_code, first[step.attribute])
    if num_rows == 0 or not np.any(missing):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    earlier: Mapping[str, IntArray] = {name: codes for name, codes in first.items() if name != step.attribute}
    choices = make_choices(model.conditional(step.attribute, earlier, num_rows), judge, step.checks, earlier)
    rows, values = [], []
    for _ in range(_ROUNDS):
        shuffled = rng.permutation(num_rows)
        drawn = choices.draw(rng, independent=True)[shuffled]
        new = np.flatnonzero((drawn >= 0) & missing[drawn])
        value, place = np.unique(drawn[new], return_index=True)
        rows.append(shuffled[new[place]])
        values.append(value)
        missing[value] = False
    rest = np.flatnonzero(missing)
    rows.append(rng.integers(0, num_rows, len(rest)))
    values.append(rest)
    return np.concatenate(rows), np.concatenate(values)


def _missing(size: int, null_code: int | None, codes: IntArray) -> Mask:
    """Which values of a domain do not occur."""
    missing = np.ones(size, dtype=np.bool_)
    missing[codes] = False
    if null_code is not None:
        missing[null_code] = False
    return missing
