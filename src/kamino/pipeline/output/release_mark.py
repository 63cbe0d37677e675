"""What was spent, and whether what came of it may be released: the one place that says both.

A seed, no noise, a budget that promises next to nothing, or real values of single persons forbid a release. Every
command, page and certificate that tells a spent budget takes it from here, together with its mark.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kamino.advice import setting
from kamino.errors import InputError, PrivacyError, SchemaError
from kamino.pipeline.plan.telling_policy import TELLING
from kamino.pipeline.plan.written_values import written_values
from kamino.pipeline.settings import Settings
from kamino.privacy.noise import NOT_FOR_RELEASE, NOT_PRIVATE
from kamino.schema import Schema

if TYPE_CHECKING:
    from kamino.pipeline.fitted import Fitted

FOR_RELEASE = "for release"
SEEDED = "made with a seed, by which the noise can be taken away"
NOISELESS = "made without noise"


@dataclass(frozen=True, kw_only=True)
class Spent:
    """A budget as it was spent, or is about to be, with the mark of all that comes of it and the reasons for that.

    `epsilon` is what was spent under the relation of the run, None where there was no noise.
    """

    epsilon: float | None
    delta: float
    unit: str
    releases: int
    mark: str
    reasons: tuple[str, ...] = ()

    @property
    def is_for_release(self) -> bool:
        """Whether what came of it may be released."""
        return self.mark == FOR_RELEASE

    @property
    def told(self) -> str:
        """The mark with its reasons.

        >>> Spent(epsilon=1.0, delta=1e-6, unit="one row", releases=1, mark="for release").told
        'for release'
        """
        return self.mark if self.is_for_release else f"{self.mark}: {'; '.join(self.reasons)}"

    @property
    def shown_epsilon(self) -> str:
        """What was spent, for people."""
        return "infinite: not private" if self.epsilon is None else f"{self.epsilon:.4g}"


def spent_of(
    ledger: Mapping[str, Any],
    settings: Settings | None = None,
    *,
    about_rows: float | None = None,
    about_units: float | None = None,
    schema: Schema | None = None,
) -> Spent:
    """What a ledger, as plain data, says was spent, with its mark.

    Without `settings`, nobody is known to have accepted anything. `about_rows` is the noisy number of rows, or the
    one that was declared, if there is one, `about_units` that of units of several rows; `schema` is that of what comes
    out.

    Guarantees:
        Every command and page tells the same mark of one run.  [test_every_face_tells_the_same_mark]
        Real values of persons are for release only if the owner accepts.  [test_real_ids_of_persons_are_refused]
    """
    spent = ledger["spent_epsilon"][ledger["neighbours"]]
    mark, reasons = _judged(
        ledger["epsilon"],
        ledger["delta"],
        ledger["mark"],
        settings,
        about_rows=about_rows,
        about_units=about_units,
        schema=schema,
    )
    return Spent(
        epsilon=None if spent is None or math.isinf(spent) else spent,
        delta=ledger["delta"],
        unit=ledger["unit"]["text"],
        releases=len(ledger["entries"]),
        mark=mark,
        reasons=reasons,
    )


def spent_of_fit(fitted: Fitted) -> Spent:
    """What fitting a model spent, with the mark of all that is drawn from it and said of it."""
    rows, groups = fitted.model.num_rows, fitted.groups.get(fitted.settings.unit or "")
    units = None if groups is None else rows / max(1.0, groups.mean)
    return spent_of(fitted.ledger, fitted.settings, about_rows=rows, about_units=units, schema=fitted.schema)


def mark_before(settings: Settings, *, about_rows: float | None = None, schema: Schema | None = None) -> Spent:
    """What a run is about to spend, with the mark that is sure before it: what it finds out may forbid more."""
    mark, reasons = _judged(settings.epsilon, settings.delta, "", settings, about_rows=about_rows, schema=schema)
    return Spent(
        epsilon=settings.epsilon if settings.budget.is_private else None,
        delta=settings.delta,
        unit=settings.privacy_unit.describe(),
        releases=0,
        mark=mark,
        reasons=reasons,
    )


def mark_of_runs(epsilon: float, delta: float, marks: Collection[str]) -> str:
    """What keeps the outputs of several runs on one dataset from being released together; nothing if nothing does.

    `epsilon` is the price of all of them; `marks` are theirs, empty for one that is for release.

    Guarantees:
        Runs that may each be released are marked where all of them may not.  [test_runs_are_marked_together]
    """
    if len(marks) == 1:
        return next(iter(marks))
    marked, weak = sum(map(bool, marks)), weak_promises(epsilon, delta, None)
    one = f"{marked:,} of {len(marks):,} runs {'is' if marked == 1 else 'are'} not for release"
    if marked:
        return f"{NOT_FOR_RELEASE} together: {'; '.join((one, *weak))}"
    return f"{NOT_FOR_RELEASE} together, unless the owner accepts it: {'; '.join(weak)}" if weak else ""


def mark_of_certificate(certificate: Mapping[str, Any]) -> str:
    """The mark of a certificate, which may come from anybody: never a weaker one than its own facts allow.

    The noisy number of rows is none of them, so that a delta above one over the rows is left to who wrote it.

    Guarantees:
        A certificate cannot call for release what its budget forbids.  [test_a_forged_mark_is_not_repeated]
    """
    claimed = str(certificate.get("mark", "unknown"))
    if claimed != FOR_RELEASE:
        return claimed
    privacy, ledger = _mapping(certificate.get("privacy")), _mapping(certificate.get("ledger"))
    try:
        settings = Settings.from_json(_mapping(certificate.get("settings")))
    except (InputError, PrivacyError, TypeError, ValueError):
        return NOT_FOR_RELEASE
    epsilon, delta = privacy.get("epsilon", settings.epsilon), privacy.get("delta", settings.delta)
    for number in (epsilon, delta):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
            return NOT_FOR_RELEASE
    schema = schema_of_certificate(certificate)
    return _judged(epsilon, float(delta or 0.0), str(ledger.get("mark", "")), settings, schema=schema)[0]


def schema_of_certificate(certificate: Mapping[str, Any]) -> Schema | None:
    """The schema of a certificate; None where it holds none that can be read."""
    text = certificate.get("schema")
    try:
        return Schema.from_yaml(text) if isinstance(text, str) else None
    except SchemaError:
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _judged(
    epsilon: float | None,
    delta: float,
    noise: str,
    settings: Settings | None,
    *,
    about_rows: float | None = None,
    about_units: float | None = None,
    schema: Schema | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The mark and the reasons for it: what no owner can accept first, then what one can.

    `noise` is the mark that the noise itself gave.
    """
    if epsilon is None or math.isinf(epsilon) or noise == NOT_PRIVATE:
        return NOT_PRIVATE, (NOISELESS,)
    if noise or (settings is not None and settings.seed is not None):
        return NOT_FOR_RELEASE, (SEEDED,)
    if settings is not None and settings.accept:
        return FOR_RELEASE, ()
    weak = weak_promises(epsilon, delta, about_rows)
    trusted = settings is not None and settings.trust_domain
    # Where the whole table was trusted it was asked before the run, and is not asked again by noisy numbers.
    units = None if trusted else about_units or about_rows
    unit = None if trusted or settings is None else settings.privacy_unit.column
    real = () if schema is None else written_values(schema, units, unit)
    reasons = (*weak, *((f"real values of single persons in {', '.join(real)}",) if real else ()))
    return (NOT_FOR_RELEASE, reasons) if reasons else (FOR_RELEASE, ())


def weak_promises(epsilon: float | None, delta: float, about_rows: float | None) -> tuple[str, ...]:
    """A line for each part of a budget that promises next to nothing; `about_rows` as declared or noisy, if known.

    Guarantees:
        It names epsilon above 10, and delta above one over the rows or above 0.01.
        [test_weak_budgets_are_not_for_release]
    """
    found = []
    if epsilon is not None and math.isfinite(epsilon) and epsilon > TELLING.most_epsilon:
        found.append(f"epsilon {epsilon:g} is above {TELLING.most_epsilon:g}, where little is left of the promise")
    if about_rows is not None and delta * about_rows > 1:
        found.append(
            f"delta {delta:g} is above one over the rows (about {round(about_rows):,}): publishing a few of them "
            "as they are would keep the promise"
        )
    elif delta > TELLING.most_delta:
        found.append(
            f"delta {delta:g} is above {TELLING.most_delta:g}: publishing one row in {math.ceil(1 / delta):,} as it is "
            "would keep the promise"
        )
    return tuple(found)


def weak_notes(ledger: Mapping[str, Any], settings: Settings, about_rows: float) -> tuple[str, ...]:
    """The weak promises of a run as notes, with what follows from them."""
    weak = () if ledger["mark"] else weak_promises(ledger["epsilon"], ledger["delta"], about_rows)
    accepted = "accepted by the owner" if settings.accept else "not for release, unless accepted"
    end = f"; {accepted} ({setting('accept')})"
    return tuple(f"{each}{end}" for each in weak)
