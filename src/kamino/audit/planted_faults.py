"""Faults planted in the code, one at a time, each of which a check of the audit must notice.

A fault is a patch of the real code, of the kind that a change could bring in by mistake. It names the check that must
see it and a subject in which it shows. No check knows of any fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kamino.audit import subjects
from kamino.audit.auditing import GAME, MECHANISMS, NEIGHBOURS, NOISE, PRICE, STRANGERS, Check
from kamino.audit.subjects import Subject
from kamino.engine import MemoryMeasurer, rates, trusted_schema
from kamino.pipeline.plan import run_plan
from kamino.privacy import Gate, Neighbours, SecureNoise, SeededNoise, Sensitivity, ledger
from kamino.privacy import gate as gate_module
from kamino.privacy.accounting import accountant
from kamino.privacy.accounting.events import DeltaEvent
from kamino.privacy.ledger import Ledger
from kamino.privacy.mechanisms import bounds, categories, counts, factored_gradients, gradients, poisson, vectors

Plant = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault: its name, what is wrong, how to plant it, and which check sees it in which subject."""

    name: str
    wrong: str
    plant: Plant
    check: Check
    subject: Callable[[], Subject]
    runs: int = 1_000
    neural: bool = False


@contextmanager
def _patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    clean = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, clean)


def _now(owner: Any, name: str) -> Any:
    """What stands in a module under a name that it imported."""
    return getattr(owner, name)


class _Through:
    """A gate with some of its answers replaced; all else is the gate's."""

    def __init__(self, gate: Gate, **replaced: Any) -> None:
        self._gate = gate
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gate, name)


def _exact_scores() -> AbstractContextManager[None]:
    clean = MemoryMeasurer.scores

    def scores(self: Any, candidates: Any, answers: Any, **options: Any) -> Any:
        clean(self, candidates, answers, **options)
        pairs = zip(candidates, answers, strict=True)
        return np.array([np.abs(self._count(c.attributes, c.binning) - a.ravel()).sum() for c, a in pairs])

    return _patched(MemoryMeasurer, "scores", scores)


def _unscaled_groups() -> AbstractContextManager[None]:
    clean = rates._statistic
    return _patched(rates, "_statistic", lambda c, codec, coded, top: clean(c, codec, coded, top) * (top - 1))


def _peeked_count() -> AbstractContextManager[None]:
    clean = MemoryMeasurer.marginal

    def marginal(self: Any, attributes: Any, *given: Any, **options: Any) -> Any:
        # Rounded, so that two neighbours nearly always have the same.
        return clean(self, attributes, *given, **options) + self._count(attributes, {}).sum() // 500

    return _patched(MemoryMeasurer, "marginal", marginal)


def _count_as_seconds() -> AbstractContextManager[None]:
    clean, counted = MemoryMeasurer.marginal, [0]

    def marginal(self: Any, attributes: Any, *given: Any, **options: Any) -> Any:
        counted[0] = int(self._count(attributes, {}).sum())
        return clean(self, attributes, *given, **options)

    made = _now(subjects, "certificate_of")

    def certificate(*given: Any, **options: Any) -> dict[str, Any]:
        return {**made(*given, **options), "seconds": counted[0] // 40}

    @contextmanager
    def both() -> Iterator[None]:
        with _patched(MemoryMeasurer, "marginal", marginal), _patched(subjects, "certificate_of", certificate):
            yield

    return both()


def _error_for_nulls() -> AbstractContextManager[None]:
    clean = MemoryMeasurer.marginal

    def marginal(self: Any, attributes: Any, *given: Any, **options: Any) -> Any:
        found = self._count(("city",), {})
        if found[-1] > 0 and found[-1] == found.sum():
            raise ValueError("found no city")
        return clean(self, attributes, *given, **options)

    return _patched(MemoryMeasurer, "marginal", marginal)


def _true_maximum() -> AbstractContextManager[None]:
    clean = bounds.release_bounds

    def release(gate: Gate, columns: Any, *given: Any, **options: Any) -> Any:
        found = clean(gate, columns, *given, **options)
        (values,) = columns() if callable(columns) else (columns,)
        return {
            name: replace(each, upper=max(each.lower, float(np.max(values[name])))) if len(values[name]) else each
            for name, each in found.items()
        }

    return _patched(bounds, "release_bounds", release)


def _ordered_categories() -> AbstractContextManager[None]:
    clean = categories.release_categories

    def release(gate: Gate, values: Any, **options: Any) -> Any:
        def publish(entry: Any, *, truth: Any, answer: Any) -> Any:
            def ordered(counts: Any) -> Any:
                return {name: _by_count(made, name, counts) for name, made in answer(counts).items()}

            return gate.publish(entry, truth=truth, answer=ordered)

        return clean(_Through(gate, publish=publish), values, **options)  # type: ignore[arg-type]

    return _patched(categories, "release_categories", release)


def _by_count(made: Any, name: str, counts: Any) -> Any:
    order = sorted(range(len(made.values)), key=lambda place: -counts[name, made.values[place]])
    return replace(
        made,
        values=tuple(made.values[place] for place in order),
        counts=tuple(made.counts[place] for place in order),
    )


def _occupied_cells() -> AbstractContextManager[None]:
    clean = counts.noisy_counts

    def noisy(gate: Gate, *given: Any, **options: Any) -> Any:
        def publish(entry: Any, *, truth: Any, answer: Any) -> Any:
            return gate.publish(entry, truth=truth, answer=lambda true: np.where(true == 0, 0, answer(true)))

        return clean(_Through(gate, publish=publish), *given, **options)  # type: ignore[arg-type]

    return _patched(counts, "noisy_counts", noisy)


def _unscaled_unit() -> AbstractContextManager[None]:
    clean = vectors.release_vector

    def release(gate: Gate, values: Any, **options: Any) -> Any:
        def sensitivity(row: Any) -> Sensitivity:
            return Sensitivity.of(row, gate.budget.neighbours)

        return clean(_Through(gate, sensitivity=sensitivity), values, **options)  # type: ignore[arg-type]

    return _patched(vectors, "release_vector", release)


def _all_rows_of_a_unit() -> AbstractContextManager[None]:
    return _patched(gate_module, "choose_rows", lambda parts, most: np.arange(sum(len(part.rows) for part in parts)))


def _replace_as_add() -> AbstractContextManager[None]:
    return _patched(
        Sensitivity, "of_histogram", staticmethod(lambda m=1: Sensitivity(add_remove=m**0.5, replace=m**0.5))
    )


@contextmanager
def _half_of_delta() -> Iterator[None]:
    def half(delta: float) -> DeltaEvent:
        return DeltaEvent(delta=delta / 2)

    with _patched(categories, "DeltaEvent", half), _patched(ledger, "DeltaEvent", half):
        yield


def _low_threshold() -> AbstractContextManager[None]:
    clean = categories._threshold
    return _patched(categories, "_threshold", lambda *given: clean(*given) - 1)


def _uncharged() -> AbstractContextManager[None]:
    clean = Ledger.charge

    def charge(self: Ledger, entry: Any) -> None:
        if entry.kind != "bounds":
            clean(self, entry)

    return _patched(Ledger, "charge", charge)


def _charged_for_more_noise() -> AbstractContextManager[None]:
    clean = _now(counts, "scale_for")
    return _patched(counts, "scale_for", lambda sigma: 0.9 * clean(sigma))


def _other_relation() -> AbstractContextManager[None]:
    clean = accountant._epsilon_by_pld

    def price(total: Any, *, delta: float, neighbours: Neighbours) -> float:
        del neighbours
        return clean(total, delta=delta, neighbours=Neighbours.ADD_REMOVE)

    return _patched(accountant, "_epsilon_by_pld", price)


def _nullable_from_the_table() -> AbstractContextManager[None]:
    clean = _now(run_plan, "schema_for")

    def schema_for(private: Any, *given: Any) -> Any:
        made, seen = clean(private, *given), trusted_schema(private)
        for name, attribute in made.attributes.items():
            if name in seen.attributes and getattr(attribute, "nullable", False):
                found = attribute.model_copy(update={"nullable": seen[name].nullable})
                made = made.with_attribute(name, found)
        return made

    return _patched(run_plan, "schema_for", schema_for)


def _noise_of(draw: Callable[[SecureNoise, float, tuple[int, ...]], Any]) -> AbstractContextManager[None]:
    return _patched(SecureNoise, "discrete_gaussian", draw)


def _fresh(source: SecureNoise) -> SeededNoise:
    return SeededNoise(int.from_bytes(source.coins()[:8]))


def _reseeded() -> AbstractContextManager[None]:
    return _noise_of(lambda self, sigma, shape: SeededNoise(1).discrete_gaussian(sigma, shape))


def _one_draw() -> AbstractContextManager[None]:
    def draw(self: SecureNoise, sigma: float, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(_fresh(self).discrete_gaussian(sigma, (1,)), shape).copy()

    return _noise_of(draw)


def _without_sign() -> AbstractContextManager[None]:
    return _noise_of(lambda self, sigma, shape: np.abs(_fresh(self).discrete_gaussian(sigma, shape)))


def _half_of_noise() -> AbstractContextManager[None]:
    return _noise_of(lambda self, sigma, shape: _fresh(self).discrete_gaussian(sigma / 2, shape))


def _constant_coins() -> AbstractContextManager[None]:
    return _patched(SecureNoise, "coins", lambda self: b"7" * 32)


def _twice_the_clip_norm() -> AbstractContextManager[None]:
    clean, stretched = factored_gradients.factored_sum, factored_gradients._in_units

    @contextmanager
    def planted() -> Iterator[None]:
        # Every gradient is longer than the clip norm, and counts twice.
        with (
            _patched(factored_gradients, "_in_units", lambda part, norm: stretched(part, norm / 1e6)),
            _patched(factored_gradients, "factored_sum", lambda *given: 2 * clean(*given)),
        ):
            yield

    return planted()


def _twice_the_rate() -> AbstractContextManager[None]:
    clean = poisson._sample_one
    return _patched(
        poisson,
        "_sample_one",
        lambda draws, step, rows, rate, batch: clean(draws, step, rows, min(0.999, 2 * rate), batch),
    )


def _half_of_gradient_noise() -> AbstractContextManager[None]:
    clean = gradients._noise
    return _patched(gradients, "_noise", lambda *given, **options: clean(*given, **options) // 2)


FAULTS = (
    Fault(
        name="exact selection scores",
        wrong="Which marginals are measured follows from distances without noise.",
        plant=_exact_scores,
        check=STRANGERS,
        # With little noise: otherwise the model may measure the same few marginals on any table.
        subject=lambda: subjects.declared(epsilon=20.0),
    ),
    Fault(
        name="groups of a rate not scaled",
        wrong="The violations of large groups count in full.",
        plant=_unscaled_groups,
        check=NEIGHBOURS,
        # With little noise: a model that takes the table for nearly empty scales by 1.
        subject=lambda: subjects.declared(epsilon=20.0),
    ),
    Fault(
        name="noise reseeded at every call",
        wrong="Every release starts the same stream of noise.",
        plant=_reseeded,
        check=NOISE,
        subject=subjects.declared,
    ),
    Fault(
        name="one draw for a whole vector",
        wrong="All coordinates of a release get the same noise.",
        plant=_one_draw,
        check=NOISE,
        subject=subjects.declared,
    ),
    Fault(
        name="noise without its sign",
        wrong="Noise only adds.",
        plant=_without_sign,
        check=NOISE,
        subject=subjects.declared,
    ),
    Fault(
        name="constant coins",
        wrong="The same rows of a unit are kept, or sampled, in every run.",
        plant=_constant_coins,
        check=NOISE,
        subject=subjects.with_unit,
    ),
    Fault(
        name="half of the noise",
        wrong="Noise is drawn at half of its scale.",
        plant=_half_of_noise,
        check=GAME,
        subject=subjects.found,
    ),
    Fault(
        name="the row count peeked at",
        wrong="A part of the true number of rows is added to counts.",
        plant=_peeked_count,
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="the true count told as something else",
        wrong="The certificate has the number of rows as seconds.",
        plant=_count_as_seconds,
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="an error for some tables",
        wrong="A column without values stops the run.",
        plant=_error_for_nulls,
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="nullable read from the table",
        wrong="Whether a column may be null follows from its cells.",
        plant=_nullable_from_the_table,
        check=NEIGHBOURS,
        subject=subjects.declared,
    ),
    Fault(
        name="the true maximum as a bound",
        wrong="A range that was found ends at the largest value of the table.",
        plant=_true_maximum,
        check=STRANGERS,
        subject=subjects.found,
    ),
    Fault(
        name="categories in the order of their true counts",
        wrong="The mechanism publishes categories by frequency.",
        plant=_ordered_categories,
        check=MECHANISMS,
        subject=subjects.found,
    ),
    Fault(
        name="no noise on empty cells",
        wrong="A cell that no row is in stays 0.",
        plant=_occupied_cells,
        check=MECHANISMS,
        subject=subjects.declared,
    ),
    Fault(
        name="a unit not scaled for vectors",
        wrong="Real vectors get the noise of one row where a unit has three.",
        plant=_unscaled_unit,
        check=NEIGHBOURS,
        subject=subjects.with_unit,
    ),
    Fault(
        name="rows of a unit not limited",
        wrong="A unit keeps all of its rows.",
        plant=_all_rows_of_a_unit,
        check=NEIGHBOURS,
        subject=subjects.with_unit,
    ),
    Fault(
        name="replace taken for add",
        wrong="A replaced row is said to move a histogram by 1.",
        plant=_replace_as_add,
        check=NEIGHBOURS,
        subject=subjects.replaced,
    ),
    Fault(
        name="half of delta charged",
        wrong="Categories cost half of the delta that their threshold needs.",
        plant=_half_of_delta,
        check=PRICE,
        # With little noise a threshold, which is a whole number, may by chance cost less than half of its delta.
        subject=partial(subjects.found, epsilon=1.0),
    ),
    Fault(
        name="a threshold one too low",
        wrong="A category passes with one row less than its delta allows.",
        plant=_low_threshold,
        check=PRICE,
        subject=subjects.found,
    ),
    Fault(
        name="a release without a charge",
        wrong="Histograms that find bounds are not in the ledger.",
        plant=_uncharged,
        check=PRICE,
        subject=subjects.found,
    ),
    Fault(
        name="charged for more noise than drawn",
        wrong="The scale of noise on counts is a tenth too small.",
        plant=_charged_for_more_noise,
        check=PRICE,
        subject=subjects.declared,
    ),
    Fault(
        name="sampled releases priced under the other relation",
        wrong="A run for replace is priced as if rows were added.",
        plant=_other_relation,
        check=PRICE,
        subject=subjects.paper,
        neural=True,
    ),
    Fault(
        name="gradients of twice the clip norm",
        wrong="A row moves a sum of gradients twice as far as declared.",
        plant=_twice_the_clip_norm,
        check=NEIGHBOURS,
        subject=subjects.neural,
        neural=True,
    ),
    Fault(
        name="rows sampled at twice the rate",
        wrong="Training samples twice as many rows as it is charged for.",
        plant=_twice_the_rate,
        check=NOISE,
        subject=subjects.neural,
        neural=True,
    ),
    Fault(
        name="half of the noise on gradients",
        wrong="Gradients get noise at half of its scale.",
        plant=_half_of_gradient_noise,
        check=NOISE,
        subject=subjects.neural,
        neural=True,
    ),
)
