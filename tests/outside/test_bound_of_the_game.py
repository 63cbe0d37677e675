"""The lower bound of a distinguishing game beside that of `privacy-estimates` (Zanella-Béguelin and others, 2023)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

lower_bounds = pytest.importorskip("kamino.audit.lower_bounds", reason="this tree has no audit")

DELTA = 1e-5
# Right and wrong "yes" of so many runs each, and the bound at 95% that privacy-estimates 0.1.0 gives ("beta").
KNOWN = {
    (900, 100, 1000): 1.9896949462833384,
    (60, 0, 1000): 2.527009417849938,
    (500, 500, 1000): 0.0,
    (1000, 0, 1000): 5.6005774942916355,
}


def bound(true: int, false: int, runs: int) -> float:
    """Our bound for so many right and wrong "yes", in the better of the two directions."""
    scores = np.concatenate([np.arange(runs) < true, np.arange(runs) < false]).astype(float)
    worlds = np.repeat([True, False], runs)
    found = (lower_bounds._at_threshold(scores, worlds, direction, 0.5, DELTA, 0.95) for direction in (True, False))
    return max(0.0, *found)


@pytest.mark.parametrize("counts", KNOWN)
def test_the_bound_is_the_known_one(counts: tuple[int, int, int]) -> None:
    assert bound(*counts) == pytest.approx(KNOWN[counts], rel=1e-9, abs=1e-12)


def test_the_bound_is_that_of_privacy_estimates() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimates = pytest.importorskip("privacy_estimates", reason="privacy-estimates is not installed")
        from privacy_estimates.utils import AttackResults

        rng = np.random.default_rng(1)
        for _ in range(200):
            runs = int(rng.integers(50, 5_000))
            true, false = int(rng.integers(0, runs + 1)), int(rng.integers(0, runs + 1))
            counts = AttackResults(FN=runs - true, FP=false, TN=runs - false, TP=true)
            theirs = estimates.compute_eps_lo(counts, DELTA, 0.05, "beta") if true > false else None
            if theirs is not None:
                assert bound(true, false, runs) == pytest.approx(theirs, rel=1e-6, abs=1e-9)
