"""Counts with discrete Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.ledger import Entry
from kamino.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate


def release_counts(
    gate: Gate,
    counts: NDArray[np.int64],
    *,
    what: str,
    attributes: tuple[str, ...],
    noise_multiplier: float,
    sensitivity: float | Sensitivity | None = None,
) -> NDArray[np.int64]:
    """Add discrete Gaussian noise to whole numbers; see `Gate.release_counts`."""
    if not isinstance(counts, np.ndarray) or counts.dtype.kind not in "iu":
        found = counts.dtype if isinstance(counts, np.ndarray) else type(counts).__name__
        raise PrivacyError(f"counts to release are {found}; expected a numpy array of whole numbers.")
    return noisy_counts(
        gate,
        lambda: counts.astype(np.int64),
        kind="counts",
        what=what,
        attributes=attributes,
        shape=counts.shape,
        row=Sensitivity.of_histogram() if sensitivity is None else sensitivity,
        noise_multiplier=noise_multiplier,
    )


def noisy_counts(
    gate: Gate,
    truth: Callable[[], NDArray[np.int64]],
    *,
    kind: str,
    what: str,
    attributes: tuple[str, ...],
    shape: tuple[int, ...],
    row: float | Sensitivity,
    noise_multiplier: float,
) -> NDArray[np.int64]:
    """Charge for counts of a public `shape` first, then compute them and add noise."""
    unit = gate.sensitivity(row)
    deviation = gate.deviation(noise_multiplier, unit)
    scale = scale_for(deviation) if deviation else 0.0
    entry = Entry(
        kind=kind,
        what=what,
        attributes=attributes,
        events=((unit.event(deviation), 1),),
        sigma=scale,
        sensitivity=unit.under(gate.budget.neighbours),
        shape=shape,
    )
    return gate.publish(
        entry,
        truth=truth,
        answer=lambda counts: counts + gate.noise.discrete_gaussian(scale, shape),
    )
