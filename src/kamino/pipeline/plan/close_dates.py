"""Which dates are modelled by their distance from another: what constraints say, and what is measured.

A hard check `start <= end` names a start and an end. Of dates that no constraint names, pairs that mostly lie close
together are found by one small release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.tree import Column, Comparison, Operator
from kamino.engine.closeness import CLOSENESS, Pair
from kamino.privacy.schedule import PlannedRelease
from kamino.schema import Codec
from kamino.schema.coding.differences import Difference, Distance, is_date

#: The part of the schedule.
DIFFERENCES = "differences"
#: The part of the budget that finds close dates: enough to tell half of a few hundred rows from none at epsilon 1.
SHARE = 0.005
#: Dates of more columns than this are not compared with each other: every pair adds to the noise of all.
MOST_DATES = 8
#: Dates are close if this part of the rows has them within a bin's width.
MOSTLY = 0.5
# Domains of a start and an end overlap: by this part of what either reaches, at least.
_OVERLAP = 0.5
_BEFORE = {Operator.LE: 0, Operator.LT: 1}


def ordered_dates(constraints: Constraints, codec: Codec) -> dict[str, Difference]:
    """Return the dates that hard checks put after others and of which no constraint asks more than distances keep.

    Where a check orders two dates whose domains hardly overlap (a birth and a visit), the distance tells no more than
    the later one does, and both are modelled as they are.

    Guarantees:
        A table whose distances keep `least` satisfies the checks.  [test_distances_keep_the_order]
        Constraints that distances do not keep name no date that is a distance.  [test_distances_keep_what_names_them]
    """
    orders = dict.fromkeys(order for c in constraints if (order := _order_of(c, codec)) is not None)
    # Of several starts, that which comes last tells most, and its own starts come before the end by themselves.
    ranked = sorted(orders, key=lambda order: -len(_before(order[1].base, orders)))
    found: dict[str, Difference] = {}
    for name, difference in ranked:
        if name not in found and not _leads_to(name, difference.base, found) and _reaches(codec, name, difference):
            found[name] = difference
    return _without_the_others(found, constraints, codec)


def _without_the_others(
    found: Mapping[str, Difference], constraints: Constraints, codec: Codec
) -> dict[str, Difference]:
    """The dates of which all constraints that name them are kept; those of dates that are left out are not."""
    kept = dict(found)
    while True:
        open_names = {n for c in constraints if not kept_by(kept, c, codec) for n in c.attributes} & set(kept)
        if not open_names:
            return kept
        kept = {name: each for name, each in kept.items() if name not in open_names}


def _before(name: str, orders: Iterable[tuple[str, Difference]]) -> set[str]:
    """The dates that come before one, directly or through others."""
    found: set[str] = set()
    left = [name]
    while left:
        later = left.pop()
        new = {each.base for own, each in orders if own == later} - found
        found |= new
        left += new
    return found


def kept_by(differences: Mapping[str, Difference], constraint: DenialConstraint, codec: Codec) -> bool:
    """Whether distances keep a constraint by themselves: that from one date to the other, or those in between.

    A date in between that may be null keeps nothing, for then what follows is told as if nothing came before.
    """
    pair = _order_of(constraint, codec)
    if pair is None:
        return False
    name, wanted = pair
    last, least = name, 0
    for _ in range(len(differences)):
        step = differences.get(last)
        if step is None or step.least is None:
            return False
        last, least = step.base, max(least, step.least)
        if last == wanted.base:
            return wanted.least is not None and least >= wanted.least
        if last not in codec.plain or codec.plain[last].null_code is not None:
            return False
    return False


def _order_of(constraint: DenialConstraint, codec: Codec) -> tuple[str, Difference] | None:
    """Read `check (a <= b)` or `check (a < b)` on two dates: b, and its difference from a."""
    if not constraint.is_hard or not constraint.is_unary or len(constraint.predicates) != 1:
        return None
    (predicate,) = constraint.predicates
    if not isinstance(predicate, Comparison) or not isinstance(predicate.right, Column):
        return None
    left, right = predicate.left.name, predicate.right.name
    # The denial of `a <= b` is `a > b`.
    allowed = predicate.op.negated
    if allowed in (Operator.GE, Operator.GT):
        left, right, allowed = right, left, allowed.mirrored
    if left == right or allowed not in _BEFORE or not all(is_date(codec[name]) for name in (left, right)):
        return None
    return right, Difference(base=left, least=_BEFORE[allowed])


def _reaches(codec: Codec, name: str, difference: Difference) -> bool:
    """Whether the domains of start and end overlap well, and no start lies after all ends unless these may be null."""
    distance: Distance = codec.distance(name, difference)
    own = codec.plain[name]
    last = own.num_values - 1
    first, end = distance.first_place, distance.last_place
    both = min(end, last) - max(first, 0)
    either = max(end, last) - min(first, 0)
    return both >= _OVERLAP * either and (end <= last or own.null_code is not None)


def _leads_to(name: str, base: str, found: Mapping[str, Difference]) -> bool:
    """Whether following bases from `base` comes to `name`."""
    while base in found:
        base = found[base].base
        if base == name:
            return True
    return base == name


def open_pairs(
    constraints: Iterable[DenialConstraint], codec: Codec, known: Mapping[str, Difference]
) -> tuple[Pair, ...]:
    """Return the pairs (date, possible base) of which is measured whether they lie close together."""
    dates = [name for name, each in codec.plain.items() if is_date(each)]
    if not 2 <= len(dates) <= MOST_DATES:
        return ()
    named = {name for c in constraints for name in c.attributes} | set(known)
    bases = [name for name in dates if name not in known]
    found = []
    for i, name in enumerate(dates):
        for base in dates[:i]:
            if base in bases and name in bases and not {name, base} <= named:
                found.append((base, name) if name in named else (name, base))
    return tuple(found)


def planned_closeness(pairs: Sequence[Pair], noise_multiplier: float) -> tuple[PlannedRelease, ...]:
    """The release that tells which of the pairs lie close together."""
    if not pairs:
        return ()
    return (
        PlannedRelease(
            part=DIFFERENCES,
            kind="vector",
            what=CLOSENESS,
            says=CLOSENESS,
            attributes=tuple(dict.fromkeys(name for pair in pairs for name in pair)),
            noise_multiplier=noise_multiplier / SHARE**0.5,
            most_cells=2 * len(pairs),
        ),
    )


def choose_bases(near: Mapping[Pair, float], named: frozenset[str]) -> dict[str, Difference]:
    """Return a base for each date that lies close to another, the closest pairs first; `named` dates get none.

    Guarantees:
        Following bases ends.  [test_bases_of_dates_make_no_circle]
    """
    found: dict[str, Difference] = {}
    for (name, base), share in sorted(near.items(), key=lambda each: -each[1]):
        for own, other in ((name, base), (base, name)):
            free = own not in found and own not in named
            if share >= MOSTLY and free and not _leads_to(own, other, found):
                found[own] = Difference(base=other)
                break
    return found
