"""What finding types and domains will release: planned before, and charged to the plans that come after it.

First the number of rows is released, with much noise. What finding types and domains may then spend follows from it and
from the number of columns: few rows need little noise to tell a category from nothing, many do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kamino.engine import DiscoveryShare
from kamino.engine.discovery import SETTING_ASIDE, plan_releases
from kamino.engine.finding_policy import FINDING
from kamino.engine.lost_cells import LOST, num_lost_cells
from kamino.engine.ticks import cells_of
from kamino.engine.typing import SPELLINGS, num_ways
from kamino.pipeline.settings import Backend, Settings
from kamino.privacy import DeltaEvent, Entry, Gate, Sensitivity, multiplier_for
from kamino.privacy.mechanisms.bounds import FINE_BINS, bounds_noise
from kamino.privacy.schedule import PlannedRelease, Rule, Schedule
from kamino.schema import Schema

# The parts of the schedule.
ROWS, TYPES, DOMAINS = "rows", "types", "domains"


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """What there is to find: so many columns, of text or of known types, in about so many rows if that is known."""

    num_columns: int
    untyped: bool
    about_rows: int | None = None

    def share(self, settings: Settings) -> float:
        """The part of the whole budget that finding types and domains takes, beside that of the number of rows.

        It grows with the number of columns and with the rows of a privacy unit, and falls with the noisy number of
        rows. Before that is known, the most.
        """
        if settings.discovery_share is not None:
            return settings.discovery_share
        most = FINDING.most_neural if settings.backend is Backend.NEURAL else FINDING.most
        if self.about_rows is None or not settings.budget.is_private:
            return most
        needed = self.num_columns * (FINDING.deviations / (FINDING.rare * self._units(settings))) ** 2
        return min(max(needed / _whole(settings), FINDING.least), most)

    def is_hopeless(self, settings: Settings) -> bool:
        """Whether even a category of half of the rows would not be found, whatever is spent on finding it."""
        if self.about_rows is None or not settings.budget.is_private:
            return False
        needed = self.num_columns * (FINDING.deviations / (FINDING.half * self._units(settings))) ** 2
        return needed > self.share(settings) * _whole(settings)

    def _units(self, settings: Settings) -> float:
        """The rows as so many times what one privacy unit moves, which noise is a multiple of."""
        return max(1.0, (self.about_rows or 0) / settings.privacy_unit.max_rows)

    def domains(self, settings: Settings) -> DiscoveryShare:
        """What finding domains may spend; less if types are found as well.

        Where types are found, all of the delta is set aside before: they decide who takes from it, not what is spent.
        """
        left = 1 - FINDING.types if self.untyped else 1.0
        return DiscoveryShare(
            mu_squared=left * self.share(settings) * _whole(settings),
            delta=settings.delta * FINDING.delta,
            set_aside=self.untyped,
            about_rows=self.about_rows,
            types_found=self.untyped,
        )

    def types(self, settings: Settings) -> float:
        """The part of mu² that finding the types of all columns spends."""
        return FINDING.types * self.share(settings) * _whole(settings)


def rows_share(settings: Settings) -> float:
    """The part of mu² that the first number of rows takes."""
    return FINDING.rows * _whole(settings)


def _whole(settings: Settings) -> float:
    return Gate(settings.budget, unit=settings.privacy_unit).gaussian_left()


def planned_rows(settings: Settings, *, untyped: bool) -> Schedule:
    """The first releases: where types are found, delta is set aside; then the number of rows."""
    rows = PlannedRelease(
        part=ROWS,
        kind="counts",
        what="number of rows",
        attributes=(),
        noise_multiplier=multiplier_for(rows_share(settings)),
        most_cells=1,
        sensitivity=Sensitivity(add_remove=1.0, replace=1.0),
    )
    delta = settings.delta * FINDING.delta if settings.budget.is_private else 0.0
    aside = PlannedRelease(
        part=ROWS, kind="aside", what=SETTING_ASIDE, attributes=(), noise_multiplier=0.0, delta=delta
    )
    return Schedule(releases=(aside, rows) if untyped else (rows,))


def planned_types(columns: Sequence[str], discovery: Discovery, settings: Settings) -> Schedule:
    """The release of `discover_types`: how the cells of all columns are written."""
    return Schedule(
        releases=(
            PlannedRelease(
                part=TYPES,
                kind="counts",
                what=SPELLINGS,
                attributes=tuple(columns),
                noise_multiplier=multiplier_for(discovery.types(settings)),
                rule=_rule(discovery),
                most_cells=num_ways() * len(columns),
                sensitivity=Sensitivity.of_histogram(len(columns)),
            ),
        )
    )


def planned_domains(schema: Schema, discovery: Discovery, settings: Settings) -> Schedule:
    """The releases of `discover_domains`: decimals, ranges, sets of categories, and what these lose."""
    share = discovery.domains(settings)
    planned = plan_releases(schema, share)
    gate = Gate(settings.budget, unit=settings.privacy_unit)
    noise = {part: multiplier_for(spent) for part, spent in planned.mu_squared.items()}
    found: list[PlannedRelease] = []

    def add(
        kind: str,
        what: str,
        names: tuple[str, ...],
        noise: float,
        cells: int | None,
        delta: float = 0.0,
        from_aside: float = 0.0,
    ) -> None:
        found.append(
            PlannedRelease(
                part=DOMAINS,
                kind=kind,
                what=what,
                attributes=names,
                noise_multiplier=noise,
                rule=_rule(discovery),
                most_cells=cells,
                sensitivity=Sensitivity.of_histogram(len(names)),
                delta=delta,
                from_aside=from_aside,
            )
        )

    if planned.decimals:
        add("counts", SPELLINGS, planned.decimals, noise["decimals"], num_ways(typed=True) * len(planned.decimals))
    if planned.ranges:
        sizes = sum(cells_of(schema[name]).size for name in planned.ranges), FINE_BINS * len(planned.ranges)
        noises = bounds_noise(gate, noise["ranges"], num_columns=len(planned.ranges), about_rows=discovery.about_rows)
        for size, each in zip(sizes, noises, strict=False):
            add("bounds", "histograms, to find ranges", planned.ranges, each, size)
    if planned.categories:
        spent = share.delta if settings.budget.is_private else 0.0
        new, aside = (0.0, spent) if share.set_aside else (spent, 0.0)
        add("categories", "sets of categories", planned.categories, noise["categories"], None, new, aside)
    add("counts", LOST, planned.lost, noise["lost"], num_lost_cells(len(planned.lost)))
    return Schedule(releases=tuple(found))


def _rule(discovery: Discovery) -> Rule:
    """Before the number of rows is known, releases are planned with the least noise that they can have."""
    return Rule.EACH if discovery.about_rows is not None else Rule.AT_MOST


def charge(gate: Gate, schedule: Schedule) -> None:
    """Charge a gate that nothing passes for planned releases of histograms, so that it says what they leave."""
    for planned in schedule:
        if planned.kind == "aside":
            gate.ledger.set_aside(planned.delta, what=planned.what)
            continue
        unit = gate.sensitivity(planned.sensitivity or Sensitivity.of_histogram())
        deviation = gate.deviation(planned.noise_multiplier or 0.0, unit)
        deltas = ((DeltaEvent(delta=planned.delta), 1),) if planned.kind == "categories" else ()
        gate.ledger.charge(
            Entry(
                kind=planned.kind,
                what=planned.what,
                attributes=planned.attributes,
                events=((unit.event(deviation), 1), *deltas),
                from_aside=planned.from_aside,
            )
        )
