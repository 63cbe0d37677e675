"""What keeps a run to its plan while it runs: a release that the stage at work did not plan is refused.

>>> from kamino.privacy import Budget, Gate
>>> from kamino.privacy.schedule import PlannedRelease
>>> gate = Gate(Budget(epsilon=1.0, delta=1e-6))
>>> count = PlannedRelease(part="rows", kind="counts", what="rows", attributes=(), noise_multiplier=9.0, most_cells=1)
>>> guard = PlanGuard(gate.ledger)
>>> with guard.held(), guard.stage("rows", Schedule(releases=(count,))):
...     num_rows = gate.release_row_count(7, noise_multiplier=9.0)
...     gate.release_row_count(7, noise_multiplier=9.0)
Traceback (most recent call last):
...
kamino.errors.PrivacyError: the stage 'rows' asks for 'number of rows' on no attribute (counts): nothing like it was \
planned, or not so often. It was not charged and not made. This is a fault of Kamino: please report it
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from kamino.errors import PrivacyError
from kamino.privacy.ledger import Entry, Ledger
from kamino.privacy.schedule import Rule, Schedule, share_taken

# How far a sum of costs may be above what was planned.
_ROUNDING = 1e-5


class PlanGuard:
    """Lets a ledger be charged for what the stage at work planned, in its order, and for nothing else.

    Guarantees:
        An extra release, one of another size, with other noise or in another order is refused before it is charged.
        [test_what_a_stage_did_not_plan_is_refused]
        A run without faults is never refused.  [test_the_ledger_is_what_was_planned]
    """

    refuses: ClassVar[bool] = True
    """Whether it does; planted faults take it out, to see that other checks notice them by themselves."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: _StageReleases | None = None

    @contextmanager
    def held(self) -> Iterator[PlanGuard]:
        """Watch the ledger; outside of stages nothing is charged."""
        stop = self._ledger.watch(self._before)
        try:
            yield self
        finally:
            stop()

    @contextmanager
    def stage(self, name: str, planned: Schedule) -> Iterator[None]:
        """Let the releases of one stage be charged."""
        self._open = _StageReleases(name, planned, self._ledger)
        try:
            yield
        finally:
            self._open = None

    def _before(self, entry: Entry) -> None:
        if not self.refuses:
            return
        if self._open is None:
            raise _refused(entry, "a run between its stages", "nothing is planned there")
        self._open.take(entry)


class _StageReleases:
    """The releases of a stage as far as they were made."""

    def __init__(self, name: str, planned: Schedule, ledger: Ledger) -> None:
        self._name, self._planned = name, planned
        self._neighbours = ledger.budget.neighbours
        self._taken: list[list[Entry]] = [[] for _ in planned]
        self._spent = [0.0 for _ in planned]
        self._place = 0

    def take(self, entry: Entry) -> None:
        """Count a release; refuse one that was not planned, or not here."""
        places = range(self._place, len(self._taken))
        fitting = (i for i in places if self._planned.takes(i, self._taken, entry, self._neighbours))
        place = next(fitting, None)
        if place is None:
            raise _refused(entry, f"the stage {self._name!r}", self._planned.nearest(entry, self._neighbours))
        release = self._planned.releases[place]
        cost = share_taken(release, entry, self._neighbours)
        shared = release.rule in (Rule.TOGETHER, Rule.AT_MOST) and release.share > 0
        if shared and self._spent[place] + cost > release.share * (1 + _ROUNDING):
            raise _refused(entry, f"the stage {self._name!r}", f"more than its share of {release.share:.6g}")
        self._place = place
        self._spent[place] += cost
        self._taken[place].append(entry)


def _refused(entry: Entry, who: str, why: str) -> PrivacyError:
    names = ", ".join(entry.attributes) or "no attribute"
    return PrivacyError(
        f"{who} asks for {entry.what!r} on {names} ({entry.kind}): {why}. It was not charged and not made. This is a "
        "fault of Kamino: please report it"
    )
