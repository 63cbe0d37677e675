"""Patches of the real code, of the kind that a change could bring in by mistake; `all_faults` says what is wrong.

Each function is asked for a fault anew, and gives what plants it on entry and takes it out again at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from kamino.audit import subjects
from kamino.engine import MemoryMeasurer, rates, trusted_schema
from kamino.pipeline.plan import run_plan
from kamino.planted.fault import Through, now, patched
from kamino.privacy import Gate, Neighbours, SecureNoise, SeededNoise, Sensitivity, ledger
from kamino.privacy import gate as gate_module
from kamino.privacy.accounting import accountant
from kamino.privacy.accounting.events import DeltaEvent
from kamino.privacy.ledger import Ledger
from kamino.privacy.mechanisms import bounds, categories, counts, factored_gradients, gradients, poisson, vectors


def exact_scores() -> AbstractContextManager[None]:
    """Which marginals are measured follows from distances without noise."""
    clean = MemoryMeasurer.scores

    def scores(self: Any, candidates: Any, answers: Any, **options: Any) -> Any:
        clean(self, candidates, answers, **options)
        pairs = zip(candidates, answers, strict=True)
        return np.array([np.abs(self._count(c.attributes, c.binning) - a.ravel()).sum() for c, a in pairs])

    return patched(MemoryMeasurer, "scores", scores)


def unscaled_groups() -> AbstractContextManager[None]:
    """The violations of large groups count in full."""
    clean = rates._statistic
    return patched(rates, "_statistic", lambda c, codec, coded, top: clean(c, codec, coded, top) * (top - 1))


def peeked_count() -> AbstractContextManager[None]:
    """A part of the true number of rows is added to counts."""
    clean = MemoryMeasurer.marginal

    def marginal(self: Any, attributes: Any, *given: Any, **options: Any) -> Any:
        # Rounded, so that two neighbours nearly always have the same.
        return clean(self, attributes, *given, **options) + self._count(attributes, {}).sum() // 500

    return patched(MemoryMeasurer, "marginal", marginal)


def count_as_seconds() -> AbstractContextManager[None]:
    """The certificate has the number of rows as seconds."""
    clean, counted = MemoryMeasurer.marginal, [0]

    def marginal(self: Any, attributes: Any, *given: Any, **options: Any) -> Any:
        counted[0] = int(self._count(attributes, {}).sum())
        return clean(self, attributes, *given, **options)

    made = now(subjects, "certificate_of")

    def certificate(*given: Any, **options: Any) -> dict[str, Any]:
        return {**made(*given, **options), "seconds": counted[0] // 40}

    @contextmanager
    def both() -> Iterator[None]:
        with patched(MemoryMeasurer, "marginal", marginal), patched(subjects, "certificate_of", certificate):
            yield

    return both()


def error_for_nulls() -> AbstractContextManager[None]:
    """A column without values stops the run."""
    clean = MemoryMeasurer.marginal

    def marginal(self: Any, attributes: Any, *given: Any, **options: Any) -> Any:
        found = self._count(("city",), {})
        if found[-1] > 0 and found[-1] == found.sum():
            raise ValueError("found no city")
        return clean(self, attributes, *given, **options)

    return patched(MemoryMeasurer, "marginal", marginal)


def true_maximum() -> AbstractContextManager[None]:
    """A range that was found ends at the largest value of the table."""
    clean = bounds.release_bounds

    def release(gate: Gate, columns: Any, *given: Any, **options: Any) -> Any:
        found = clean(gate, columns, *given, **options)
        (values,) = columns() if callable(columns) else (columns,)
        return {
            name: replace(each, upper=max(each.lower, float(np.max(values[name])))) if len(values[name]) else each
            for name, each in found.items()
        }

    return patched(bounds, "release_bounds", release)


def ordered_categories() -> AbstractContextManager[None]:
    """The mechanism publishes categories by frequency."""
    clean = categories.release_categories

    def release(gate: Gate, values: Any, **options: Any) -> Any:
        def publish(entry: Any, *, truth: Any, answer: Any) -> Any:
            def ordered(counts: Any) -> Any:
                return {name: _by_count(made, name, counts) for name, made in answer(counts).items()}

            return gate.publish(entry, truth=truth, answer=ordered)

        return clean(Through(gate, publish=publish), values, **options)  # type: ignore[arg-type]

    return patched(categories, "release_categories", release)


def _by_count(made: Any, name: str, counts: Any) -> Any:
    order = sorted(range(len(made.values)), key=lambda place: -counts[name, made.values[place]])
    return replace(
        made,
        values=tuple(made.values[place] for place in order),
        counts=tuple(made.counts[place] for place in order),
    )


def occupied_cells() -> AbstractContextManager[None]:
    """A cell that no row is in stays 0."""
    clean = counts.noisy_counts

    def noisy(gate: Gate, *given: Any, **options: Any) -> Any:
        def publish(entry: Any, *, truth: Any, answer: Any) -> Any:
            return gate.publish(entry, truth=truth, answer=lambda true: np.where(true == 0, 0, answer(true)))

        return clean(Through(gate, publish=publish), *given, **options)  # type: ignore[arg-type]

    return patched(counts, "noisy_counts", noisy)


def unscaled_unit() -> AbstractContextManager[None]:
    """Real vectors get the noise of one row where a unit has three."""
    clean = vectors.release_vector

    def release(gate: Gate, values: Any, **options: Any) -> Any:
        def sensitivity(row: Any) -> Sensitivity:
            return Sensitivity.of(row, gate.budget.neighbours)

        return clean(Through(gate, sensitivity=sensitivity), values, **options)  # type: ignore[arg-type]

    return patched(vectors, "release_vector", release)


def all_rows_of_a_unit() -> AbstractContextManager[None]:
    """A unit keeps all of its rows."""
    return patched(gate_module, "choose_rows", lambda parts, most: np.arange(sum(len(part.rows) for part in parts)))


def replace_as_add() -> AbstractContextManager[None]:
    """A replaced row is said to move a histogram by 1."""
    return patched(
        Sensitivity, "of_histogram", staticmethod(lambda m=1: Sensitivity(add_remove=m**0.5, replace=m**0.5))
    )


@contextmanager
def half_of_delta() -> Iterator[None]:
    """Categories cost half of the delta that their threshold needs."""

    def half(delta: float) -> DeltaEvent:
        return DeltaEvent(delta=delta / 2)

    with patched(categories, "DeltaEvent", half), patched(ledger, "DeltaEvent", half):
        yield


def low_threshold() -> AbstractContextManager[None]:
    """A category passes with one row less than its delta allows."""
    clean = categories.least_count
    return patched(categories, "least_count", lambda *given: clean(*given) - 1)


def uncharged() -> AbstractContextManager[None]:
    """Histograms that find bounds are not in the ledger."""
    clean = Ledger.charge

    def charge(self: Ledger, entry: Any) -> None:
        if entry.kind != "bounds":
            clean(self, entry)

    return patched(Ledger, "charge", charge)


def charged_for_more_noise() -> AbstractContextManager[None]:
    """The scale of noise on counts is a tenth too small."""
    clean = now(counts, "scale_for")
    return patched(counts, "scale_for", lambda sigma: 0.9 * clean(sigma))


def other_relation() -> AbstractContextManager[None]:
    """A run for replace is priced as if rows were added."""
    clean = accountant._epsilon_by_pld

    def price(total: Any, *, delta: float, neighbours: Neighbours) -> float:
        del neighbours
        return clean(total, delta=delta, neighbours=Neighbours.ADD_REMOVE)

    return patched(accountant, "_epsilon_by_pld", price)


def nullable_from_the_table() -> AbstractContextManager[None]:
    """Whether a column may be null follows from its cells."""
    clean = now(run_plan, "schema_for")

    def schema_for(private: Any, *given: Any, **more: Any) -> Any:
        made, seen = clean(private, *given, **more), trusted_schema(private)
        for name, attribute in made.attributes.items():
            if name in seen.attributes and getattr(attribute, "nullable", False):
                found = attribute.model_copy(update={"nullable": seen[name].nullable})
                made = made.with_attribute(name, found)
        return made

    return patched(run_plan, "schema_for", schema_for)


def _noise_of(draw: Callable[[SecureNoise, float, tuple[int, ...]], Any]) -> AbstractContextManager[None]:
    return patched(SecureNoise, "discrete_gaussian", draw)


def _fresh(source: SecureNoise) -> SeededNoise:
    return SeededNoise(int.from_bytes(source.coins()[:8]))


def reseeded() -> AbstractContextManager[None]:
    """Every release starts the same stream of noise."""
    return _noise_of(lambda self, sigma, shape: SeededNoise(1).discrete_gaussian(sigma, shape))


def one_draw() -> AbstractContextManager[None]:
    """All coordinates of a release get the same noise."""

    def draw(self: SecureNoise, sigma: float, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(_fresh(self).discrete_gaussian(sigma, (1,)), shape).copy()

    return _noise_of(draw)


def without_sign() -> AbstractContextManager[None]:
    """Noise only adds."""
    return _noise_of(lambda self, sigma, shape: np.abs(_fresh(self).discrete_gaussian(sigma, shape)))


def half_of_noise() -> AbstractContextManager[None]:
    """Noise is drawn at half of its scale."""
    return _noise_of(lambda self, sigma, shape: _fresh(self).discrete_gaussian(sigma / 2, shape))


def constant_coins() -> AbstractContextManager[None]:
    """The same rows of a unit are kept, or sampled, in every run."""
    return patched(SecureNoise, "coins", lambda self: b"7" * 32)


def twice_the_clip_norm() -> AbstractContextManager[None]:
    """A row moves a sum of gradients twice as far as declared."""
    clean, stretched = factored_gradients.factored_sum, factored_gradients._in_units

    @contextmanager
    def planted() -> Iterator[None]:
        # Every gradient is longer than the clip norm, and counts twice.
        with (
            patched(factored_gradients, "_in_units", lambda part, norm: stretched(part, norm / 1e6)),
            patched(factored_gradients, "factored_sum", lambda *given: 2 * clean(*given)),
        ):
            yield

    return planted()


def twice_the_rate() -> AbstractContextManager[None]:
    """Training samples twice as many rows as it is charged for."""
    clean = poisson._sample_one
    return patched(
        poisson,
        "_sample_one",
        lambda draws, step, rows, rate, batch: clean(draws, step, rows, min(0.999, 2 * rate), batch),
    )


def half_of_gradient_noise() -> AbstractContextManager[None]:
    """Gradients get noise at half of its scale."""
    clean = gradients._noise
    return patched(gradients, "_noise", lambda *given, **options: clean(*given, **options) // 2)
