"""Dates that are declared with a format: how many of their cells cannot be read so is counted, with noise.

A cell that is no date becomes null, or the first day where null is not allowed. Of domains that are found, this is
counted with what they lose; of declared ones nothing else would tell it. Those that were taken from the table hold it.
"""

from __future__ import annotations

from kamino.engine.lost_cells import UNREADABLE, num_lost_cells
from kamino.privacy import Sensitivity
from kamino.privacy.schedule import PlannedRelease
from kamino.schema import Date, Datetime, Schema, Source

#: The part of the schedule.
DATES = "dates"
# The part of the whole budget that the count takes.
_SHARE = 0.01


def planned_unreadable(schema: Schema, noise_multiplier: float) -> tuple[PlannedRelease, ...]:
    """The release that counts the cells of dates with a declared format and range that cannot be read, or lie outside.

    Guarantees:
        A run makes it, and no other.  [test_unreadable_dates_are_told]
    """
    names = tuple(
        name
        for name, attribute in schema.attributes.items()
        if isinstance(attribute, Date | Datetime)
        and attribute.format is not None
        and attribute.source is Source.DECLARED
    )
    if not names or not noise_multiplier:
        return ()
    return (
        PlannedRelease(
            part=DATES,
            kind="counts",
            what=UNREADABLE,
            attributes=names,
            noise_multiplier=noise_multiplier / _SHARE**0.5,
            most_cells=num_lost_cells(len(names)),
            sensitivity=Sensitivity.of_histogram(len(names)),
        ),
    )
