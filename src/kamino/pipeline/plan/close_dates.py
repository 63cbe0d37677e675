"""Which dates are modelled by their distance from another, as far as that is measured.

What constraints say of it is in `kamino.layout.offsets`. Of dates that no constraint names, pairs that mostly lie close
together are found by one small release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kamino.constraints import DenialConstraint
from kamino.engine.closeness import CLOSENESS, Pair
from kamino.layout.offsets import kept_by as kept_by
from kamino.layout.offsets import leads_to
from kamino.layout.offsets import ordered_dates as ordered_dates
from kamino.privacy.schedule import PlannedRelease
from kamino.schema import Codec
from kamino.schema.coding.differences import Difference, is_date

#: The part of the schedule.
DIFFERENCES = "differences"
#: The part of the budget that finds close dates: enough to tell half of a few hundred rows from none at epsilon 1.
SHARE = 0.005
#: Dates of more columns than this are not compared with each other: every pair adds to the noise of all.
MOST_DATES = 8
#: Dates are close if this part of the rows has them within a bin's width.
MOSTLY = 0.5


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
            if share >= MOSTLY and free and not leads_to(own, other, found):
                found[own] = Difference(base=other)
                break
    return found
