"""Drawing rows that meet a condition: attributes that may only have some of their codes.

The condition is one more hard check on each row, so it holds like any other. What is left to do is the distribution of
the attributes that are drawn before the given ones: they must follow P(row | condition). A model that can be
conditioned gives that itself. For any other, more rows than needed are drawn up to the last given attribute, some are
kept with the weights of importance sampling, P(condition | earlier attributes), and the rest is drawn from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Column, Comparison, Constant, NullTest, Operator
from kamino.errors import SamplingError
from kamino.model.protocol import ConditionableModel, TupleModel
from kamino.sampling.draw_options import DrawOptions
from kamino.sampling.plan.reference_maps import ReferenceMap
from kamino.sampling.plan.sampling_plan import SamplingPlan
from kamino.sampling.sampler import draw_table
from kamino.schema import Codec

# Rows drawn for each row kept, at least and at most so many in all.
_POOL = 16
_LEAST_POOL, _MOST_POOL = 4_000, 400_000
# Domains up to this size are searched for codes that a public map allows.
_SEARCHED = 1 << 22

Allowed = Mapping[str, IntArray]


def checks_of(codec: Codec, allowed: Allowed) -> tuple[DenialConstraint, ...]:
    """Return the condition as hard checks on single rows.

    Guarantees:
        They hold for the allowed codes and for no others.  [test_conditions_are_checks]
    """
    found = []
    for name, codes in allowed.items():
        column, null = Column(name), codec[name].null_code
        values = [Constant(codec[name].value_of(int(code))) for code in np.unique(codes) if code != null]
        others = tuple(Comparison(column, Operator.NE, value) for value in values)
        if not others:
            found.append(DenialConstraint(predicates=(NullTest(column, negated=True),)))
            continue
        found.append(DenialConstraint(predicates=others))
        if null is not None and null not in codes:
            found.append(DenialConstraint(predicates=(NullTest(column),)))
    return tuple(found)


def range_checks(codec: Codec, ranges: Mapping[str, tuple[int, int]]) -> tuple[DenialConstraint, ...]:
    """Return intervals, as the first and the last code of each, as hard checks on single rows; null is outside.

    Guarantees:
        They hold for the codes of the interval and for no others.  [test_intervals_are_checks]
    """
    found = []
    for name, (first, last) in ranges.items():
        column, attribute = Column(name), codec[name]
        for operator, code in ((Operator.LT, first), (Operator.GT, last)):
            bound = Constant(attribute.value_of(code))
            found.append(DenialConstraint(predicates=(Comparison(column, operator, bound),)))
        if attribute.null_code is not None:
            found.append(DenialConstraint(predicates=(NullTest(column),)))
    return tuple(found)


def draw_given(
    plan: SamplingPlan,
    model: TupleModel,
    codec: Codec,
    num_rows: int,
    rng: np.random.Generator,
    options: DrawOptions,
    allowed: Allowed,
) -> dict[str, IntArray]:
    """Draw rows that meet the condition. The plan's checks hold it, and `options.given` names them.

    Guarantees:
        Without constraints, rows follow P(row | condition).  [test_rows_follow_the_conditioned_model]
        With hard constraints, none is violated, and every row meets the condition.  [test_conditions_hold_with_rules]
    """
    narrowed = _narrowed(allowed, plan.references, codec)
    conditioned = model.given(narrowed) if isinstance(model, ConditionableModel) else None
    if conditioned is not None:
        return draw_table(plan, conditioned, codec, num_rows, rng, options)
    prefix = _draw_prefix(plan, model, codec, num_rows, rng, options, narrowed)
    ids = {name: prefix.pop(name) for name in codec.groups if name in prefix}
    first = replace(options, prefix=prefix, ids=(lambda rows, rng: ids) if ids else options.ids)
    try:
        return draw_table(plan, model, codec, num_rows, rng, first)
    except SamplingError:
        # The rest may not fit a prefix that was drawn without it.
        return draw_table(plan, model, codec, num_rows, rng, options)


def _narrowed(
    allowed: Allowed, references: Mapping[tuple[tuple[str, ...], str], ReferenceMap], codec: Codec
) -> dict[str, IntArray]:
    """Also narrow attributes whose public map leads to what is not allowed."""
    found = {name: np.unique(codes) for name, codes in allowed.items()}
    for _ in references:
        for (left, right), reference in references.items():
            if right not in found or len(left) > 1 or codec[left[0]].size > _SEARCHED:
                continue
            codes = found.get(left[0], np.arange(codec[left[0]].size, dtype=np.int64))
            elsewhere = reference.left_codes[left[0]][~np.isin(reference.right_codes, found[right])]
            kept = np.setdiff1d(codes, elsewhere)
            if len(kept):
                found[left[0]] = kept
    return found


def _draw_prefix(
    plan: SamplingPlan,
    model: TupleModel,
    codec: Codec,
    num_rows: int,
    rng: np.random.Generator,
    options: DrawOptions,
    allowed: Allowed,
) -> dict[str, IntArray]:
    """Draw the columns up to the last given attribute; nothing if that is the first, or if no more rows can be had."""
    last = max(plan.sequence.index(name) for name in allowed) + 1
    first_part, quiet = plan.first(last), replace(options, progress=None, on_sweep=None)
    size = min(max(_POOL * num_rows, _LEAST_POOL), _MOST_POOL)
    while last > 1 and size > num_rows:
        try:
            pool = draw_table(first_part, model, codec, size, rng, quiet)
        except SamplingError:
            # So many rows may break a key that fewer do not.
            size //= 2
            continue
        weight = sum((_log_chance(model, name, codes, pool, size) for name, codes in allowed.items()), np.zeros(size))
        chosen = np.argsort(-(weight + rng.gumbel(size=size)))[:num_rows]
        return {name: codes[chosen] for name, codes in pool.items()}
    return {}


def _log_chance(
    model: TupleModel, name: str, codes: IntArray, columns: Mapping[str, IntArray], num_rows: int
) -> FloatArray:
    """Return log P(the attribute has one of the codes | earlier attributes) of each row."""
    conditional = model.conditional(name, columns, num_rows)
    cells = conditional.cells
    part = np.bincount(cells.map(codes), weights=np.exp(cells.log_share(codes)), minlength=cells.map.bins)
    with np.errstate(divide="ignore"):
        chance = np.log(np.exp(conditional.log_prob) @ part)
    return np.maximum(chance, -1e9)[conditional.context]
