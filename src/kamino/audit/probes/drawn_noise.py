"""The noise of the operating system, looked at by itself: its law at every scale, and whether any of it comes twice.

A recorded run has noise of the scales and lengths that it needs. Here more is drawn than any made-up table asks for:
numbers near zero are counted one by one, also at large scales, and long vectors are drawn, also in other processes.

The law is refused by chance less often than once in 10^9 scales; 16 numbers in a row, whose signs are left away, occur
twice by chance less often than once in 10^12 runs.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kamino.audit.probes.probe import Probe
from kamino.privacy import SecureNoise
from kamino.privacy.discrete_gaussian import probabilities

# Below and above the scale at which tables give way to blocks, and a power of two beyond it.
_SCALES = (0.5, 4.24, 25.0, 129.0, 300.0, 1024.0)
_DRAWS = 400_000
_NEAR = 3
FALSE_ALARM = 1e-9
_WINDOW = 16
# Longer than any vector is drawn in one go.
_LONG = 3 * 2**18 + 5
_SHORT = 64
_FORKS = 3


def law_problems() -> Iterator[str]:
    """Tell at which scales noise has not the probabilities of the discrete Gaussian."""
    noise = SecureNoise()
    for sigma in _SCALES:
        if law_p_value(noise.discrete_gaussian(sigma, (_DRAWS,)), sigma) < FALSE_ALARM:
            yield f"noise of scale {sigma:g} has not the law of the discrete Gaussian"


def law_p_value(draws: NDArray[np.int64], sigma: float) -> float:
    """Chi-square over the numbers next to zero one by one, pieces of a quarter of sigma around them, and two tails."""
    from scipy.special import chdtrc  # only when it is asked

    near = np.arange(-_NEAR, _NEAR + 2) - 0.5
    width, reach = max(1, int(sigma) // 4), math.ceil(4 * sigma)
    far = np.arange(_NEAR + width, max(reach, _NEAR + width) + 1, width) + 0.5
    edges = np.concatenate([-far[::-1], near, far])
    support = np.arange(-math.ceil(9 * sigma) - 1, math.ceil(9 * sigma) + 2)
    chances = np.bincount(np.searchsorted(edges, support), weights=probabilities(sigma, support))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=len(chances))[: len(chances)]
    expected = chances * draws.size
    told = expected >= 10
    moved = (counts - expected)[told]
    # What is expected less than ten times is one cell more.
    rest = expected[~told].sum()
    statistic = float((moved**2 / expected[told]).sum()) + float(moved.sum() ** 2 / max(rest, 10.0))
    return float(chdtrc(int(told.sum()), statistic))


def repeated_noise() -> Iterator[str]:
    """Tell where noise occurs twice: within one long vector, between two, or in two processes."""
    for sigma in (50.0, 300.0):
        noise = SecureNoise()
        within = _windows(noise.discrete_gaussian(sigma, (_LONG,)))
        short = [noise.discrete_gaussian(sigma, (_SHORT,)) for _ in range(2)]
        short += [SecureNoise().discrete_gaussian(sigma, (2, _SHORT // 2)).ravel() for _ in range(2)]
        if _repeats(within):
            yield f"a vector of {_LONG:,} numbers of scale {sigma:g} has the same noise twice"
        elif _repeats(within, *map(_windows, short)):
            yield f"two vectors of scale {sigma:g} have the same noise"
    yield from _in_processes()


def _repeats(*windows: NDArray[np.uint64]) -> bool:
    together = np.sort(np.concatenate(windows))
    return bool((together[1:] == together[:-1]).any())


def _windows(draw: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number for every run of sixteen draws without their signs: equal ones have equal numbers."""
    mixed = np.abs(draw).astype(np.uint64)
    mixed = (mixed ^ (mixed << np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(31)
    found = np.zeros(len(draw) - _WINDOW + 1, dtype=np.uint64)
    for place in range(_WINDOW):
        found = found * np.uint64(0xD1342543DE82EF95) + mixed[place : place + len(found)]
    return found


def _in_processes() -> Iterator[str]:
    """Compare what processes draw that were forked from this one; other systems start processes anew."""
    if not hasattr(os, "fork"):
        return
    _draw_bytes()  # what is made at the first draw is made before the fork
    drawn = [_draw_bytes(), *(_in_a_fork() for _ in range(_FORKS))]
    vectors = [np.frombuffer(each[32:], dtype=np.int64) for each in drawn]
    if any(len(vector) < _WINDOW for vector in vectors):
        yield "noise could not be drawn in a forked process"
    elif _repeats(*map(_windows, vectors)):
        yield "processes that were forked from one have the same noise"
    if len({each[:32] for each in drawn}) < len(drawn):
        yield "processes that were forked from one have the same coins"


def _draw_bytes() -> bytes:
    noise = SecureNoise()
    return noise.coins() + noise.discrete_gaussian(50.0, (_SHORT,)).tobytes()


def _in_a_fork() -> bytes:
    """What a child draws; nothing if it fails."""
    ready, told = os.pipe()
    with warnings.catch_warnings():
        # Python and JAX warn of threads: the child draws, which takes none of their locks, and ends.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            os.write(told, _draw_bytes())
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(ready, "rb") as pipe:
        drawn = pipe.read()
    os.waitpid(child, 0)
    return drawn


LAW = Probe(
    name="law of noise",
    does="Noise of several scales is drawn, and numbers near zero, in pieces and in the tails are counted.",
    cannot="In 400,000 draws less than a hundredth more or less does not show; exact edges are tested elsewhere.",
    search=law_problems,
)
FRESHNESS = Probe(
    name="noise only once",
    does="Long and short vectors are drawn, here and in forked processes: no 16 numbers in a row may occur twice.",
    cannot="Noise that goes together without being the same; the runs of the audit are looked at for that.",
    search=repeated_noise,
)
