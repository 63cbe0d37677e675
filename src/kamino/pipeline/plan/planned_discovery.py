"""What finding types and domains will release: planned before, and charged to the plans that come after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kamino.engine import DiscoveryShare
from kamino.engine.discovery import SETTING_ASIDE
from kamino.engine.typing import SPELLINGS, num_spellings
from kamino.pipeline.settings import Settings
from kamino.privacy import DeltaEvent, Entry, Gate, Sensitivity, multiplier_for
from kamino.privacy.mechanisms.bounds import most_bins
from kamino.privacy.schedule import PlannedRelease, Schedule
from kamino.schema import Categorical, Real, Schema

# Of what finding domains may spend, the part that finding the types of a CSV file's columns takes.
TYPES_PART = 0.2
# The parts of the schedule.
TYPES, DOMAINS = "types", "domains"


def discovery_share(settings: Settings, *, types: bool) -> DiscoveryShare:
    """What finding domains may spend, of the whole budget of a run; less if types are found as well.

    Where types are found, all of the delta is set aside before: they decide who takes from it, not what is spent.
    """
    left = Gate(settings.budget, unit=settings.privacy_unit).gaussian_left()
    share = DiscoveryShare(mu_squared=left * settings.discovery_share, delta=settings.delta * settings.discovery_share)
    return replace(share, mu_squared=(1 - TYPES_PART) * share.mu_squared, set_aside=True) if types else share


def types_share(settings: Settings) -> float:
    """The part of mu² that finding the types of all columns spends."""
    return TYPES_PART * discovery_share(settings, types=False).mu_squared


def planned_types(columns: Sequence[str], settings: Settings) -> Schedule:
    """The releases of `discover_types`: how the cells of each column are spelled. Before them, delta is set aside."""
    delta = discovery_share(settings, types=True).delta if settings.budget.is_private else 0.0
    aside = PlannedRelease(
        part=TYPES, kind="aside", what=SETTING_ASIDE, attributes=(), noise_multiplier=0.0, delta=delta
    )
    noise = multiplier_for(types_share(settings) / len(columns))
    return Schedule(
        releases=(
            aside,
            *(
                PlannedRelease(
                    part=TYPES,
                    kind="counts",
                    what=SPELLINGS,
                    attributes=(name,),
                    noise_multiplier=noise,
                    most_cells=num_spellings(),
                )
                for name in columns
            ),
        )
    )


def planned_domains(schema: Schema, share: DiscoveryShare, *, private: bool) -> Schedule:
    """The releases of `discover_domains`: a set of categories, or two histograms that find a range."""
    missing = schema.missing_domains
    noise = multiplier_for(share.mu_squared / len(missing))
    num_categorical = sum(isinstance(schema[name], Categorical) for name in missing)
    delta = share.delta / max(1, num_categorical) if private else 0.0
    found: list[PlannedRelease] = []
    for name in missing:
        attribute = schema[name]
        if isinstance(attribute, Categorical):
            what = "set of categories"
            new, from_aside = (0.0, delta) if share.set_aside else (delta, 0.0)
            found.append(_planned(name, "categories", what, noise, delta=new, from_aside=from_aside))
        else:
            # Two releases at √2 times the noise cost what one costs.
            each = noise * 2**0.5
            bins = most_bins(integer=not isinstance(attribute, Real))
            found += [_planned(name, "bounds", "histogram, to find bounds", each, cells=cells) for cells in bins]
    return Schedule(releases=tuple(found))


def _planned(
    name: str,
    kind: str,
    what: str,
    noise: float,
    *,
    cells: int | None = None,
    delta: float = 0.0,
    from_aside: float = 0.0,
) -> PlannedRelease:
    return PlannedRelease(
        part=DOMAINS,
        kind=kind,
        what=what,
        attributes=(name,),
        noise_multiplier=noise,
        most_cells=cells,
        delta=delta,
        from_aside=from_aside,
    )


def charge(gate: Gate, schedule: Schedule) -> None:
    """Charge a gate that nothing passes for planned releases of histograms, so that it says what they leave."""
    unit = gate.sensitivity(Sensitivity.of_histogram())
    for planned in schedule:
        if planned.kind == "aside":
            gate.ledger.set_aside(planned.delta, what=planned.what)
            continue
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
