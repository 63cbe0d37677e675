"""Which rows a Poisson sample has, and the noise of what is made of it: from secret coins, each with its probability.

Rows are sampled at given rates, independently of each other and of other steps; equal rows too. The numbers that
become noise have the normal law, and none of them comes twice, in one vector or in two.

A share is refused by chance less often than once in 10^9 shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kamino.audit.probes.probe import Probe
from kamino.privacy.mechanisms.poisson import Draws, sample_rows, sample_rows_by_value
from kamino.privacy.mechanisms.samples import sample_by_value

Present: TypeAlias = NDArray[np.bool_]

_ROWS, _RATE = 40, 0.2
_STEPS = 1_500
# Deviations that chance exceeds less often than once in 10^9.
_FAR = 6.1
_NUMBERS = 20_000


def sampling_problems() -> Iterator[str]:
    """Tell which samples have not their probabilities, and which noise is not fresh or not normal."""
    equal = np.arange(_ROWS) // 4
    ways: dict[str, Callable[[], Present]] = {
        "rows by place": lambda: _present(
            sample_rows(Draws(b"s" * 32), range(_STEPS), _ROWS, _RATE, _ROWS * _RATE), _STEPS
        ),
        "rows by value": lambda: _present(sample_rows_by_value(Draws(b"v" * 32), _STEPS, [equal], _RATE), _STEPS),
        "rows of one sample": lambda: _by_coins(np.column_stack([equal, equal])),
    }
    for name, draw in ways.items():
        yield from (f"{name}: {problem}" for problem in _independent(draw()))
    yield from _limited()
    yield from _normal()


def _present(samples: Sequence[NDArray[np.int64]], steps: int) -> Present:
    present = np.zeros((steps, _ROWS), dtype=np.bool_)
    for step, places in enumerate(samples):
        present[step, places] = True
    return present


def _by_coins(rows: NDArray[np.int64]) -> Present:
    coins = [step.to_bytes(32, "little") for step in range(_STEPS)]
    return _present([sample_by_value(rows, each, rate=_RATE, most=_ROWS)[0] for each in coins], _STEPS)


def _independent(present: Present) -> Iterator[str]:
    """Look at each row's share of the steps, at all rows together, and at pairs of rows and of steps."""
    deviation = math.sqrt(_RATE * (1 - _RATE) / _STEPS)
    shares = present.mean(axis=0)
    if (np.abs(shares - _RATE) > _FAR * deviation).any():
        yield "a row is not sampled at its rate"
    if abs(shares.mean() - _RATE) > _FAR * deviation / math.sqrt(_ROWS):
        yield "rows are not sampled at their rate"
    centred = (present - _RATE) / math.sqrt(_RATE * (1 - _RATE))
    together = centred.T @ centred / _STEPS - np.diag((centred**2).mean(axis=0))
    if np.abs(together).max() > 1.5 * _FAR / math.sqrt(_STEPS):
        yield "rows are sampled together"
    steps = (centred[1:] * centred[:-1]).sum() / math.sqrt(_ROWS * (_STEPS - 1))
    if abs(steps) > 1.5 * _FAR:
        yield "one step samples as another does"


def _limited() -> Iterator[str]:
    """Of a sample that is too large so many rows are kept as planned, and none is likelier than others."""
    rows = np.arange(_ROWS)[:, None]
    kept = np.zeros(_ROWS)
    for step in range(_STEPS):
        places, names = sample_by_value(rows, step.to_bytes(32, "little"), rate=0.9, most=10)
        if len(places) > 10 or len(set(names)) < len(places):
            yield "a sample has more rows than planned, or two of one name"
            return
        kept[places] += 1
    share = kept / _STEPS
    if (np.abs(share - 10 / _ROWS) > _FAR * math.sqrt(0.25 * 0.75 / _STEPS)).any():
        yield "of a sample that is too large some rows are kept more often than others"


def _normal() -> Iterator[str]:
    """Look at the law of the numbers that become noise, and whether any comes twice."""
    from scipy.special import ndtr  # only when it is asked

    draws = [Draws(secret).normal(step, _NUMBERS) for secret in (b"a" * 32, b"b" * 32) for step in (0, 1)]
    numbers = np.concatenate(draws)
    if len(np.unique(np.abs(numbers))) < len(numbers):
        yield "numbers that become noise come twice"
    cells = np.bincount(np.floor(ndtr(numbers) * 50).astype(np.int64).clip(0, 49), minlength=50)
    expected = len(numbers) / 50
    if (np.abs(cells - expected) > 1.1 * _FAR * math.sqrt(expected)).any():
        yield "numbers that become noise are not normal"
    if _correlation(numbers[:-1], numbers[1:]) or any(_correlation(draws[0], each) for each in draws[1:]):
        yield "numbers that become noise go together"
    uniform = Draws(b"a" * 32).uniform("sample", 0, _NUMBERS)
    if len(np.intersect1d(uniform, Draws(b"a" * 32).uniform("noise", 0, _NUMBERS))):
        yield "samples and noise come from the same random numbers"


def _correlation(first: Any, second: Any) -> bool:
    """Whether two vectors go together, also without their signs."""
    pairs = ((first, second), (np.abs(first), np.abs(second)))
    return any(abs(float(np.corrcoef(*pair)[0, 1])) > _FAR / math.sqrt(len(first)) for pair in pairs)


SAMPLES = Probe(
    name="samples",
    does="Rows are sampled many times from different coins, and the numbers that become noise are looked at.",
    cannot="Shares that are off by less than a tenth, for one row; by less than a hundredth, for all.",
    search=sampling_problems,
)
