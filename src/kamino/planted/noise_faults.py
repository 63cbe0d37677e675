"""Faults in how noise is drawn, of which most show in no run of the usual size."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from kamino.audit.probes.drawn_noise import FRESHNESS, LAW
from kamino.planted.fault import Fault, edited, patched
from kamino.privacy import SecureNoise, gaussian_table


def generator_of_forks() -> AbstractContextManager[None]:
    """Noise comes from a generator that is seeded once, before processes are forked."""
    rng = np.random.default_rng()

    def draw(self: SecureNoise, sigma: float, shape: tuple[int, ...]) -> Any:
        return gaussian_table.draw_gaussian(sigma, math.prod(shape), rng.bytes).reshape(shape)

    return patched(SecureNoise, "discrete_gaussian", draw)


NOISE_FAULTS = (
    Fault(
        name="blocks of noise repeated",
        wrong="Beyond 2^18 numbers a vector repeats the noise of its first block.",
        plant=partial(
            edited, gaussian_table, "draw_gaussian", "return draws", "return np.resize(draws[:_BLOCK], size)"
        ),
        check=FRESHNESS,
    ),
    Fault(
        name="two zeros",
        wrong="Noise of large scales is 0 twice as often as it should be.",
        plant=partial(edited, gaussian_table, "_by_blocks", "keep &= ~(negative & (values == 0))", "pass"),
        check=LAW,
    ),
    Fault(
        name="a generator shared by forks",
        wrong="Noise comes from a generator that is seeded once: forked processes draw the same.",
        plant=generator_of_forks,
        check=FRESHNESS,
    ),
)
