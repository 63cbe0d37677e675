"""Enumerated laws of whole columns, and the chi-squared test against them.

The false-alarm rate of each comparison is 1e-4: a right sampler fails one run in ten thousand. Seeds are fixed, so a
test that passes once passes always.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
from scipy import stats
from tests.constraints.brute_force import violations
from tests.sampling.fakes import integers

from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Column, Comparison, Operator
from kamino.model.protocol import Cells, CodeMap, Conditional
from kamino.sampling.codes.choices import make_choices
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.plan.sampling_plan import Step, StepKind
from kamino.sampling.sampler import DRAWERS
from kamino.sampling.steps.task import Task
from kamino.schema import Codec

FALSE_ALARM = 1e-4
Law = dict[tuple[int, ...], float]
_SAME_COPY = Comparison(Column("copy", 1), Operator.EQ, Column("copy", 2))


def enumerated_law(
    codec: Codec, name: str, columns: dict[str, np.ndarray], p: np.ndarray, constraints: list[DenialConstraint]
) -> Law:
    """P(column) proportional to the product of p[row, code] over columns without a violation."""
    law = {}
    num_rows, size = p.shape
    values = {n: [codec[n].value_of(int(code)) for code in codes] for n, codes in columns.items()}
    for column in product(range(size), repeat=num_rows):
        rows = [{n: v[i] for n, v in values.items()} | {name: codec[name].value_of(column[i])} for i in range(num_rows)]
        if not any(violations(constraint, rows) for constraint in constraints):
            law[column] = float(np.prod([p[i, code] for i, code in enumerate(column)]))
    total = sum(law.values())
    return {column: weight / total for column, weight in law.items()}


def nulls_first(
    codec: Codec, name: str, p: np.ndarray, law: dict[tuple[int, ...], float]
) -> dict[tuple[int, ...], float]:
    """The law in which each row is null as `p` has it, and the values follow `law` given which rows are null."""
    null = codec[name].null_code
    by_pattern: dict[tuple[bool, ...], float] = Counter()
    for column, weight in law.items():
        by_pattern[tuple(code == null for code in column)] += weight
    result = {}
    for column, weight in law.items():
        pattern = tuple(code == null for code in column)
        chance = np.prod([p[i, null] if is_null else 1 - p[i, null] for i, is_null in enumerate(pattern)])
        result[column] = float(chance) * weight / by_pattern[pattern]
    return result


def make_task(
    codec: Codec,
    name: str,
    columns: dict[str, np.ndarray],
    p: np.ndarray,
    constraints: list[DenialConstraint],
    kind: StepKind,
    rng: np.random.Generator,
    *,
    hands_out: bool = True,
) -> Task:
    """A step over rows that each have a distribution of their own."""
    num_rows, size = p.shape
    cells = Cells(map=CodeMap.identity(size), width=np.ones(size, np.int64), share=np.ones(size))
    with np.errstate(divide="ignore"):
        log_prob = np.log(p)
    conditional = Conditional(attribute=name, context=np.arange(num_rows), log_prob=log_prob, cells=cells)
    judge = Judge(codec)
    pairs = tuple(c for c in constraints if not c.is_unary)
    checks = tuple(c for c in constraints if c.is_unary)
    return Task(
        step=Step(attribute=name, kind=kind, constraints=pairs, checks=checks),
        choices=make_choices(conditional, judge, checks, columns),
        judge=judge,
        columns=columns,
        num_rows=num_rows,
        rng=rng,
        references={},
        hands_out=hands_out,
    )


def assert_exact(
    codec: Codec,
    name: str,
    columns: dict[str, list[int]],
    constraints: list[DenialConstraint],
    kind: StepKind,
    *,
    seed: int,
    draws: int = 400,
) -> None:
    """Compare drawn columns with the enumerated law; cells expected fewer than 5 times are put together."""
    rng = np.random.default_rng(seed)
    arrays = {n: np.array(codes, dtype=np.int64) for n, codes in columns.items()}
    num_rows = len(next(iter(arrays.values())))
    p = rng.dirichlet(np.ones(codec[name].size), size=num_rows)
    law = enumerated_law(codec, name, arrays, p, constraints)
    task = make_task(codec, name, arrays, p, constraints, kind, rng)
    seen = Counter(tuple(DRAWERS[kind](task).tolist()) for _ in range(draws))
    compare_with_law(seen, law, draws)


def assert_copies_exact(
    sizes: dict[str, int],
    name: str,
    columns: dict[str, list[int]],
    constraints: list[DenialConstraint],
    kind: StepKind,
    *,
    seed: int,
    copies: int = 6000,
) -> None:
    """The same with one table of many copies of the rows, kept apart by an attribute that must be equal, too."""
    rng = np.random.default_rng(seed)
    codec = integers(**sizes, copy=copies)
    num_rows = len(next(iter(columns.values())))
    arrays = {n: np.tile(np.array(codes, dtype=np.int64), copies) for n, codes in columns.items()}
    arrays["copy"] = np.repeat(np.arange(copies), num_rows)
    p = rng.dirichlet(np.ones(codec[name].size), size=num_rows)
    apart = [c if c.is_unary else c.with_predicates((_SAME_COPY, *c.predicates)) for c in constraints]
    law = enumerated_law(codec, name, {n: a[:num_rows] for n, a in arrays.items()}, p, apart)
    if kind in (StepKind.LOOKUP, StepKind.CHAIN) and codec[name].null_code is not None:
        law = nulls_first(codec, name, p, law)
    # Many groups would keep the frequencies of the column; the law is that of each group alone.
    task = make_task(codec, name, arrays, np.tile(p, (copies, 1)), apart, kind, rng, hands_out=False)
    drawn = DRAWERS[kind](task).reshape(copies, num_rows)
    compare_with_law(Counter(map(tuple, drawn.tolist())), law, copies)


def compare_with_law(seen: Counter[tuple[int, ...]], law: Law, draws: int) -> None:
    """Fail where the chi-squared statistic is over its limit."""
    assert set(seen) <= set(law), "a column was drawn that breaks a constraint"
    expected = np.array([law[column] * draws for column in law])
    observed = np.array([float(seen[column]) for column in law])
    rare = expected < 5
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    keep = expected > 0
    statistic = float(((observed - expected)[keep] ** 2 / expected[keep]).sum())
    limit = stats.chi2.ppf(1 - FALSE_ALARM, max(1, keep.sum() - 1))
    assert statistic < limit, f"chi-squared {statistic:.1f}, limit {limit:.1f} at {keep.sum() - 1} degrees"
