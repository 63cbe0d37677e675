"""Constraints that a table seems to keep, found within a budget.

Vectors are released of statistics that one row, or another in its place, moves by at most 1 (see
`kamino.engine.broken_rows`), so that k of them have sensitivity sqrt(k). The more candidates there are, the more noise
each gets, and the more of them chance lets through. So they are narrowed:

1. How many values each column has, and how often the most frequent one occurs, tells which dependencies could say
   anything: a left side that is almost unique tells nothing, and a right side that is almost constant is told nothing.
2. For each left side, and each right side, how near its best dependency comes to holding: the least of statistics that
   a row moves by at most 1 is one itself. Tens of numbers stand for hundreds of candidates.
3. The dependencies that are left, by themselves.
4. The same for two columns on the left, of what one did not determine.
5. Orders, and comparisons of two columns of a row: all of them roughly, to see which may hold.
6. Those that are left, beside what one of their columns does alone, and these: what was measured twice counts twice.

What is suggested of what was released is said in `kamino.engine.judging`, and what follows from the rest in
`kamino.engine.implied_rules`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from kamino.engine.broken_rows import StrayCounts, codes_of, count_repeats
from kamino.engine.implied_rules import Dependency, without_chance_of_amounts, without_implied
from kamino.engine.judging import ERRORS, MOST_OF_CHANCE, Columns, Release, Suggestion, bar_of
from kamino.engine.order_rules import Compared, compare_columns
from kamino.privacy import Gate, multiplier_for
from kamino.privacy.private import PrivateTable, open_table
from kamino.privacy.sensitivity import Sensitivity
from kamino.schema.dtypes import is_text

# So many dependencies on two columns are counted at most.
_MOST_DOUBLES = 2_000
# The parts of the budget for columns, for the best of each side, and for dependencies; the rest is for all else.
_FOR_COLUMNS = 0.12
_FOR_SIDES = 0.18
_FOR_SINGLES = 0.3
_OF_THE_REST = 0.8
# The part of what is left then that narrows down orders and comparisons, where errors are below this part of the rows.
_FOR_NARROWING = 0.3
_ROOM_TO_NARROW = 0.1

_Found = dict[Dependency, Suggestion]


def suggest_constraints(private: PrivateTable, gate: Gate, *, ordered: Sequence[str] = ()) -> tuple[Suggestion, ...]:
    """Return dependencies, keys and orders that the table seems to keep; spends what is left of the budget.

    `ordered` are the columns whose order means something, among which orders, also within equal values of a column, and
    comparisons within a row are looked for.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_suggestions]
        Planted constraints are found, and chance is not.  [test_planted_constraints_are_suggested]
        Exact dependencies are found in a small table.  [test_exact_dependencies_are_found_in_a_small_table]
        What is almost unique determines nothing.  [test_an_almost_unique_left_side_tells_nothing]
        Amounts and times are no keys.  [test_amounts_and_times_are_no_keys]
        Correlated columns are no order.  [test_correlated_columns_are_no_constraint]
        A column more that adds nothing is not suggested.  [test_a_group_that_adds_nothing_is_not_suggested]
    """
    table, names = open_table(private), private.names
    codes = {name: codes_of(table.column(name)) for name in names}
    strays = StrayCounts(codes)
    whole = gate.gaussian_left()
    known = _columns(strays, table.num_rows, gate, multiplier_for(whole * _FOR_COLUMNS))
    known, found = _singles(strays, known, gate, whole, bool(ordered))
    doubles = _narrowed_doubles(strays, known, gate, {right for _, right in found})
    compared = _narrowed(compare_columns(table, codes, known, ordered), known, gate)
    both, others, repeats = _last(strays, known, gate, doubles, compared)
    identities = {name for name in names if _may_be_an_identity(table.schema.field(name).type)}
    repeats |= {(name,): count for name, count in known.repeats.items()}
    kept = _worth_a_word(found | both, repeats, frozenset(names) - identities)
    keys = (known.key(name) for name in names if name in identities)
    exact = [which for which, each in kept.items() if each.may_be_exact]
    every = [*(key for key in keys if key is not None), *kept.values(), *compared.without_implied(others, exact)]
    return tuple(sorted(every, key=lambda each: each.rate))


def _may_be_an_identity(kind: pa.DataType) -> bool:
    """Whether a column that hardly repeats may be a key: amounts and times that nobody shares are so by chance."""
    return pa.types.is_integer(kind) or is_text(kind) or pa.types.is_dictionary(kind)


def _worth_a_word(found: _Found, repeats: Mapping[tuple[str, ...], float], amounts: frozenset[str]) -> _Found:
    """What is neither chance nor follows from the rest. Only what seems exact is taken to imply anything."""
    owners = set(without_chance_of_amounts(list(found), amounts))
    exact = [which for which in owners if found[which].may_be_exact]
    dropped = set(exact) - set(without_implied(sorted(exact), repeats))
    return {which: each for which, each in found.items() if which in owners - dropped}


def _columns(strays: StrayCounts, num_rows: int, gate: Gate, multiplier: float) -> Columns:
    """The number of rows and, of each column, how many rows repeat a value and how many differ from the usual one."""
    names = tuple(strays.codes)
    truth = [float(num_rows), *(count_repeats(strays.codes[name]) for name in names)]
    truth += [strays.of((), name) for name in names]
    made = _release(gate, truth, names, multiplier)
    rows = max(2.0, float(made.values[0]))
    repeats, alone = np.split(made.values[1:], 2)
    return Columns(
        num_rows=rows,
        release=made,
        repeats=dict(zip(names, repeats.tolist(), strict=True)),
        chance=dict(zip(names, np.clip(alone / rows, 0, 1).tolist(), strict=True)),
    )


def _singles(counts: StrayCounts, known: Columns, gate: Gate, whole: float, more: bool) -> tuple[Columns, _Found]:
    """The dependencies on one column; and what was released of them, for those on two."""
    pairs: list[Dependency] = [
        ((a,), b) for a in counts.codes for b in counts.codes if a != b and known.could_tell(a, b)
    ]
    most = {which: known.most_strays(which[1], known.repeats[which[0][0]]) for which in pairs}
    candidates = _plausible(counts, most, gate, multiplier_for(whole * _FOR_SIDES))
    if not candidates:
        return known, {}
    rest = gate.gaussian_left()
    share = whole * _FOR_SINGLES
    if not _has_room(known, gate, rest / 4, len(_doubles(known, set()))):
        # Two columns on the left are hopeless then, and what they would take goes to one.
        share = rest * _OF_THE_REST if more else rest
    made = _release(gate, [counts.of(*each) for each in candidates], tuple(counts.codes), multiplier_for(share))
    strays = dict(zip(candidates, made.values.tolist(), strict=True))
    judged = {each: known.dependency(each, n, made, known.repeats[each[0][0]]) for each, n in strays.items()}
    return replace(known, strays=strays), {each: found for each, found in judged.items() if found is not None}


def _plausible(
    counts: StrayCounts, most: Mapping[Dependency, float], gate: Gate, multiplier: float
) -> list[Dependency]:
    """The dependencies whose left side determines something, and whose right side is determined.

    `most` says how many rows may break each; it is public. The least of several statistics moves by at most as much as
    each does: by 1, less a public number or not.
    """
    lefts, rights = list(dict.fromkeys(left for left, _ in most)), list(dict.fromkeys(right for _, right in most))
    if len(most) <= 2 * (len(lefts) + len(rights)):
        return list(most)
    slack = {each: counts.of(*each) - bound for each, bound in most.items()}
    truth = [min(slack[each] for each in most if each[0] == left) for left in lefts]
    truth += [min(slack[each] for each in most if each[1] == right) for right in rights]
    made = _release(gate, truth, tuple(counts.codes), multiplier)
    # One that holds is lost in few runs of a hundred, on either side.
    kept = made.values < 2 * made.sigma
    determines = dict(zip(lefts, kept[: len(lefts)].tolist(), strict=True))
    determined = dict(zip(rights, kept[len(lefts) :].tolist(), strict=True))
    return [each for each in most if determines[each[0]] and determined[each[1]]]


def _doubles(known: Columns, done: set[str]) -> list[Dependency]:
    """Dependencies on two columns, for what one does not determine; the nearest to one on one column first."""
    pairs = combinations([name for name in known.repeats if known.shared(name)], 2)
    rights = [name for name in known.chance if name not in done and known.varies(name)]
    every: list[Dependency] = [(pair, right) for pair in pairs for right in rights if right not in pair]

    def nearness(which: Dependency) -> float:
        most = known.chance[which[1]] * known.num_rows
        return min(known.strays.get(((name,), which[1]), most) for name in which[0]) / max(most, 1.0)

    return sorted(every, key=nearness)[:_MOST_DOUBLES]


def _has_room(known: Columns, gate: Gate, squared: float, count: int) -> bool:
    """Whether noise on the best of each side, of so many dependencies on two columns, is below what may break them."""
    if not squared > 0:
        return False
    numbers = min(count, math.comb(len(known.repeats), 2) + len(known.repeats))
    return bar_of(numbers) * _deviation(gate, numbers, multiplier_for(squared)) < MOST_OF_CHANCE * known.num_rows


def _narrowed_doubles(counts: StrayCounts, known: Columns, gate: Gate, done: set[str]) -> list[Dependency]:
    """The dependencies on two columns that may hold, found with half of what is left of the budget."""
    every = _doubles(known, done)
    if not every or not _has_room(known, gate, gate.gaussian_left() / 2, len(every)):
        return []
    # How many rows share both columns is not known: no more than all.
    most = {which: known.most_strays(which[1], known.num_rows) for which in every}
    return _plausible(counts, most, gate, multiplier_for(gate.gaussian_left() / 2))


def _narrowed(compared: Compared, known: Columns, gate: Gate) -> Compared:
    """The orders and comparisons that may hold, found with a part of what is left, if noise lets so much be told."""
    if not compared.size:
        return compared
    statistics = compared.statistics()
    multiplier = multiplier_for(gate.gaussian_left() * _FOR_NARROWING)
    if ERRORS * _deviation(gate, len(statistics), multiplier) > _ROOM_TO_NARROW * known.num_rows:
        return compared
    return compared.plausible(_release(gate, statistics, tuple(compared.codes), multiplier))


def _last(
    counts: StrayCounts, known: Columns, gate: Gate, doubles: Sequence[Dependency], compared: Compared
) -> tuple[_Found, list[Suggestion | None], dict[tuple[str, ...], float]]:
    """Dependencies on two columns, judged beside those on one; orders and comparisons; repeats of two columns."""
    if not doubles and not compared.size:
        return {}, [], {}
    pairs = list(dict.fromkeys(pair for pair, _ in doubles))
    alone = list(dict.fromkeys(((name,), right) for pair, right in doubles for name in pair))
    truth = [count_repeats(*(counts.codes[name] for name in pair)) for pair in pairs]
    truth += [counts.of(*each) for each in (*doubles, *alone)]
    made = _release(gate, [*truth, *compared.statistics()], tuple(counts.codes), multiplier_for(gate.gaussian_left()))
    first, strays, singly, others = np.split(made.values, np.cumsum([len(pairs), len(doubles), len(alone)]))
    repeats = dict(zip(pairs, first.tolist(), strict=True))
    without = dict(zip(alone, singly.tolist(), strict=True))
    found: _Found = {}
    for which, count in zip(doubles, strays.tolist(), strict=True):
        least = min(without[(name,), which[1]] for name in which[0])
        judged = known.dependency(which, count, made, repeats[which[0]], without=least - made.sigma)
        if judged is not None:
            found[which] = judged
    return found, compared.judge(replace(made, values=others)), repeats


def _deviation(gate: Gate, count: int, multiplier: float) -> float:
    """The deviation of the noise on so many statistics."""
    return gate.deviation(multiplier, gate.sensitivity(_moved(count)))


def _moved(count: int) -> Sensitivity:
    """How far a row, or another in its place, moves so many statistics, each of which it moves by at most 1."""
    return Sensitivity(add_remove=math.sqrt(max(count, 1)), replace=math.sqrt(max(count, 1)))


def _release(gate: Gate, statistics: Sequence[float], names: tuple[str, ...], multiplier: float) -> Release:
    """Release statistics that a row, or another in its place, moves by at most 1."""
    sensitivity = _moved(len(statistics))
    released = gate.release_vector(
        np.array(statistics, dtype=np.float64),
        what=f"how often {len(statistics)} candidate constraints are broken",
        attributes=names,
        noise_multiplier=multiplier,
        sensitivity=sensitivity,
    )
    sigma = _deviation(gate, len(statistics), multiplier)
    return Release(values=released, sigma=sigma, bar=bar_of(len(statistics)))
