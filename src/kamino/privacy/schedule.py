"""What a run will release, planned before it does: a schedule that the run follows, and that its ledger can be held to.

A planned release is one entry of the ledger, or a bounded number of them: which pairs of attributes a model measures,
say, follows from what it has measured before, but how many at most, with how many cells and with how much noise is
known. Reads no table.

>>> ages = PlannedRelease(
...     part="first", kind="counts", what="1-way marginal", attributes=("age",), noise_multiplier=8.0, most_cells=90
... )
>>> ages.differs(Entry(kind="counts", what="ages", attributes=("age",), shape=(120,), events=()), Neighbours.REPLACE)
'120 cells, planned at most 90'
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.accounting.budget import Neighbours
from kamino.privacy.accounting.events import DeltaEvent, GaussianEvent, PoissonGaussianEvent
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.ledger import Entry
from kamino.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate

# Multipliers of plan and ledger go through different formulas, and differ by rounding at most.
_ROUNDING = 1e-9
# How far a sum of costs may be from what was planned: a budget is used up to a part of this size.
_TOTALS = 1e-5


class Rule(enum.StrEnum):
    """How the noise of a planned release follows from its share of the budget."""

    EACH = "each"
    """Every release has the planned noise multiplier."""
    TOGETHER = "together"
    """The releases cost the share together, each as `divide_by_cells` says."""
    AT_MOST = "at most"
    """The releases cost the share together, or less; what they take is taken off the releases that give way."""
    REST = "rest"
    """The releases cost together what all others leave of the whole, each as `divide_by_cells` says."""
    SEARCHED = "searched"
    """Known once the noisy number of rows is."""


@dataclass(frozen=True, kw_only=True)
class PlannedRelease:
    """A release that a run makes, or several that it may make. Every field may be published.

    part: the stage it belongs to. kind: the mechanism, as the ledger names it. attributes: those of the release; with
    `choose`, each release is about so many of them (`or_fewer`, but `fewest` at least). most_cells: the most numbers of
    one release, None where the noisy number of rows decides. most: how many such releases, at most; there may be fewer.

    noise_multiplier: exact for `EACH`; otherwise that of one release that costs all it can, so that none has less.
    share: the part of a budget it may cost, `whole` being the noise multiplier of a release that costs all of it.
    single_weight: how often the cells of a release about one attribute count where others share the budget with it.
    chosen: whether it is chosen by distances that its part releases before, so that there is none without them.
    gives_way: whether releases planned as `AT_MOST` are paid by this one. sigma: the scale of the noise, where known.
    says: what the ledger's text has in it. sensitivity: of counts to one row, if they are no histogram. delta: what it
    costs of delta; from_aside: what it takes of the delta that an earlier release set aside.
    """

    part: str
    kind: str
    what: str
    attributes: tuple[str, ...]
    noise_multiplier: float | None = None
    rule: Rule = Rule.EACH
    choose: int | None = None
    or_fewer: bool = False
    fewest: int = 1
    says: str = ""
    most_cells: int | None = None
    most: int = 1
    share: float = 0.0
    whole: float | None = None
    single_weight: float = 1.0
    chosen: bool = False
    gives_way: bool = False
    sigma: float | None = None
    sensitivity: Sensitivity | None = None
    delta: float = 0.0
    from_aside: float = 0.0
    sampling_rate: float | None = None

    def __post_init__(self) -> None:
        if (self.noise_multiplier is None) != (self.rule is Rule.SEARCHED):
            raise PrivacyError(
                f"the planned release {self.what!r} has no noise multiplier, and no search that finds it."
            )
        if self.most < 1:
            raise PrivacyError(f"the planned release {self.what!r} happens {self.most} times; expected 1 or more.")

    def differs(self, entry: Entry, neighbours: Neighbours) -> str:
        """Say how an entry of a ledger differs from this plan; nothing where it does not."""
        names, cells = self.attributes, math.prod(entry.shape)
        if entry.kind != self.kind or self.says not in entry.what:
            return f"{entry.kind}, planned {self.kind}"
        if self.choose is None and entry.attributes != names:
            return f"on {entry.attributes}, planned on {names}"
        if self.choose is not None and not self._chooses(entry.attributes):
            return f"on {entry.attributes}, planned on {self.choose} of {names}"
        if self.most_cells is not None and cells > self.most_cells:
            return f"{cells} cells, planned at most {self.most_cells}"
        return self._differs_in_noise(entry, neighbours)

    def _chooses(self, chosen: tuple[str, ...]) -> bool:
        fewer = self.or_fewer and self.fewest <= len(chosen) < (self.choose or 0)
        return set(chosen) <= set(self.attributes) and (len(chosen) == self.choose or fewer)

    def _differs_in_noise(self, entry: Entry, neighbours: Neighbours) -> str:
        found = multiplier_of(entry, neighbours)
        planned = self.noise_multiplier
        if planned is not None and self.rule is Rule.EACH and not self.gives_way and not _same(found, planned):
            return f"noise multiplier {found:.12g}, planned {planned:.12g}"
        if planned is not None and found < planned * (1 - _ROUNDING):
            return f"noise multiplier {found:.12g}, planned at least {planned:.12g}"
        if (
            self.sigma is not None
            and self.rule is Rule.EACH
            and not self.gives_way
            and not _same(entry.sigma, self.sigma)
        ):
            return f"sigma {entry.sigma:.12g}, planned {self.sigma:.12g}"
        deltas = sum(event.delta * count for event, count in entry.events if isinstance(event, DeltaEvent))
        if not _same(deltas, self.delta):
            return f"delta {deltas:.6g}, planned {self.delta:.6g}"
        if not _same(entry.from_aside, self.from_aside):
            return f"{entry.from_aside:.6g} of the delta set aside, planned {self.from_aside:.6g}"
        rate = dict(entry.parameters).get("sampling_rate")
        if self.sampling_rate is not None and rate != self.sampling_rate:
            return f"sampling rate {rate}, planned {self.sampling_rate}"
        return ""

    def cells_of(self, entry: Entry) -> float:
        """The cells that the part of a shared budget goes by."""
        return weighed_cells(math.prod(entry.shape), len(entry.attributes), self.single_weight)

    def match(self, entry: Entry, neighbours: Neighbours) -> bool:
        """Whether an entry of a ledger is what was planned."""
        return not self.differs(entry, neighbours)

    def to_json(self) -> dict[str, Any]:
        """Return the planned release as plain data."""
        return {
            "part": self.part,
            "kind": self.kind,
            "what": self.what,
            "attributes": list(self.attributes),
            "choose": self.choose,
            "most_cells": self.most_cells,
            "most": self.most,
            "noise": self.rule.value,
            "noise_multiplier": self.noise_multiplier,
            "sigma": self.sigma,
            "delta": self.delta,
            "from_aside": self.from_aside,
        }


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The planned releases of a run, in their order. Every field may be published.

    Guarantees:
        Every entry of a run's ledger is one of them.  [test_the_ledger_is_what_was_planned]
    """

    releases: tuple[PlannedRelease, ...] = ()

    def __iter__(self) -> Iterator[PlannedRelease]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    def __add__(self, other: Schedule) -> Schedule:
        return Schedule(releases=(*self.releases, *other.releases))

    def part(self, name: str) -> tuple[PlannedRelease, ...]:
        """The planned releases of one part."""
        return tuple(each for each in self.releases if each.part == name)

    def taking(self, taken: float) -> Schedule:
        """The schedule once it is known what share the releases take that were planned as at most a share.

        The releases that give way keep their proportions.
        """
        giving = sum(each.share for each in self.releases if each.gives_way)
        left = 1.0 - taken / giving if giving else 1.0
        return Schedule(
            releases=tuple(replace(each, share=each.share * left) if each.gives_way else each for each in self.releases)
        )

    def with_sigmas(self, gate: Gate) -> Schedule:
        """The schedule with the scale of the noise of every release of counts, for the unit and relation of a gate."""
        return Schedule(releases=tuple(_with_sigma(each, gate) for each in self.releases))

    def differences(self, entries: Iterable[Entry], neighbours: Neighbours) -> tuple[str, ...]:
        """Say how a ledger differs from the schedule: what was not planned, too often, or for another cost."""
        taken: list[list[Entry]] = [[] for _ in self.releases]
        problems, place = [], 0
        for number, entry in enumerate(entries, start=1):
            fitting = [i for i in range(place, len(taken)) if self.takes(i, taken, entry, neighbours)]
            if fitting:
                place = fitting[0]
                taken[place].append(entry)
            else:
                problems.append(
                    f"entry {number}, {entry.what!r} on {entry.attributes}: {self.nearest(entry, neighbours)}"
                )
        return (*problems, *(text for text in self._costs(taken, neighbours) if text))

    def takes(self, place: int, taken: Sequence[Sequence[Entry]], entry: Entry, neighbours: Neighbours) -> bool:
        """Whether an entry may be the release at a place, after those that were taken for each."""
        planned = self.releases[place]
        if planned.chosen and not any(taken[i] for i, each in enumerate(self.releases) if _scores(each, planned.part)):
            return False
        return len(taken[place]) < planned.most and planned.match(entry, neighbours)

    def nearest(self, entry: Entry, neighbours: Neighbours) -> str:
        """How an entry differs from the planned releases of its mechanism and attributes."""
        found = [each.differs(entry, neighbours) for each in self.releases if each.kind == entry.kind]
        closest = [text for text in found if not text.startswith("on ")]
        return "; ".join(dict.fromkeys(closest)) or "nothing like it was planned, or not so often"

    def _costs(self, taken: Sequence[Sequence[Entry]], neighbours: Neighbours) -> Iterator[str]:
        """How the costs of releases that share a budget differ from the plan."""
        wholes = [each.whole for each in self.releases if each.whole]
        if not wholes:
            return
        whole = wholes[0]
        costs = [
            [(whole / multiplier_of(e, neighbours)) ** 2 for e in entries] if planned.whole else []
            for planned, entries in zip(self.releases, taken, strict=True)
        ]
        spent = [sum(each) for each in costs]
        optional = sum(s for planned, s in zip(self.releases, spent, strict=True) if planned.rule is Rule.AT_MOST)
        giving = sum(each.share for each in self.releases if each.gives_way)
        left = 1 - optional / giving if giving else 1.0
        rest = 1 - sum(s for planned, s in zip(self.releases, spent, strict=True) if planned.rule is not Rule.REST)
        for planned, entries, own, total in zip(self.releases, taken, costs, spent, strict=True):
            if not planned.whole or not entries:
                continue
            text = f"{planned.part}, {planned.what}: costs {total:.6g} of its budget, planned"
            share = planned.share * (left if planned.gives_way else 1.0)
            expected = {Rule.EACH: share * len(own), Rule.TOGETHER: share, Rule.REST: rest}.get(planned.rule)
            if expected is None and total > planned.share * (1 + _TOTALS):
                yield f"{text} at most {planned.share:.6g}"
            elif expected is not None and not math.isclose(total, expected, rel_tol=_TOTALS, abs_tol=_TOTALS):
                yield f"{text} {expected:.6g}"
            if planned.rule in (Rule.TOGETHER, Rule.REST):
                parts = divide_by_cells([planned.cells_of(entry) for entry in entries]) * total
                if not np.allclose(own, parts, rtol=1e-6):
                    yield f"{planned.part}, {planned.what}: not divided by cells as planned"

    def to_json(self) -> list[dict[str, Any]]:
        """Return the schedule as plain data."""
        return [each.to_json() for each in self.releases]


def _scores(planned: PlannedRelease, part: str) -> bool:
    return planned.part == part and planned.kind == "vector"


def weighed_cells(cells: int, num_attributes: int, single_weight: float) -> float:
    """Return the cells of a marginal as `divide_by_cells` is to see them: those of one attribute count more often."""
    return cells * single_weight if num_attributes == 1 else float(cells)


# Powers of numpy end in other digits where a processor has wider instructions; decimal ones are exactly rounded.
_EXACTLY, _TWO_THIRDS = Context(prec=25), Decimal(2) / 3


@lru_cache(maxsize=1 << 14)
def _weight(cells: float) -> float:
    """The power 2/3 of a number of cells."""
    return float(_EXACTLY.power(Decimal(cells), _TWO_THIRDS))


def divide_by_cells(cells: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how a budget is divided among marginals with these numbers of cells, as fractions of 1.

    Errors sum to `sum_i cells_i * sigma_i` under `sum_i sigma_i^-2` fixed: least for shares ~ cells ** (2/3).

    Guarantees:
        They are the same on every processor, so that a run that goes on elsewhere asks for the noise that was stored.
        [test_what_is_asked_for_follows_from_no_kernel]
    """
    weight = np.array([_weight(float(each)) for each in cells])
    result: NDArray[np.float64] = weight / max(float(weight.sum()), 1e-300)
    return result


def multiplier_of(entry: Entry, neighbours: Neighbours) -> float:
    """Return the noise multiplier of an entry under one relation; 0 where it has no noise."""
    for event, _ in entry.events:
        if isinstance(event, GaussianEvent):
            return event.multiplier(neighbours)
        if isinstance(event, PoissonGaussianEvent):
            return event.noise_multiplier
    return 0.0


def share_taken(planned: PlannedRelease, entry: Entry, neighbours: Neighbours) -> float:
    """Return what an entry takes of the budget that planned releases share; 0 where they share none."""
    found = multiplier_of(entry, neighbours)
    return (planned.whole / found) ** 2 if planned.whole and found else 0.0


def _with_sigma(planned: PlannedRelease, gate: Gate) -> PlannedRelease:
    if planned.kind not in _COUNTS or planned.noise_multiplier is None:
        return planned
    row = Sensitivity.of_histogram() if planned.sensitivity is None else planned.sensitivity
    deviation = gate.deviation(planned.noise_multiplier, gate.sensitivity(row))
    return replace(planned, sigma=scale_for(deviation) if deviation else 0.0)


def _same(found: float, planned: float) -> bool:
    return math.isclose(found, planned, rel_tol=_ROUNDING, abs_tol=1e-15)


_COUNTS = ("counts", "bounds", "categories")
