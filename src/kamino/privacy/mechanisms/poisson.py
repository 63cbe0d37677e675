"""Random numbers of a descent: which rows a step samples, and its noise, all from 32 secret bytes.

Each step has its own stream of bits, SHAKE-256 of the secret, the step and the purpose, so that a step's coins do not
depend on what other steps used.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# No gap between sampled rows is longer: no table has as many rows.
_FAR = 1 << 50


class Draws:
    """Streams of random numbers that follow from a secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "Draws()"

    def uniform(self, purpose: str, step: int, size: int) -> NDArray[np.float64]:
        """Return the first `size` numbers of a stream, uniform in (0, 1]; the smallest possible one is 2^-65."""
        label = f"/{purpose}/{step}".encode()
        bits = hashlib.shake_256(self._secret + label).digest(8 * size)
        return (np.frombuffer(bits, dtype="<u8").astype(np.float64) + 0.5) * 2.0**-64

    def normal(self, step: int, size: int) -> NDArray[np.float64]:
        """Return standard normal numbers (Box, Muller 1958); none is beyond 9.5, which has probability 1e-20."""
        pairs = -(-size // 2)
        uniforms = self.uniform("noise", step, 2 * pairs)
        radius = np.sqrt(-2.0 * np.log(uniforms[:pairs]))
        angle = 2.0 * math.pi * uniforms[pairs:]
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]


def sample_rows(
    draws: Draws, steps: range, num_rows: int, rate: float, batch_size: float
) -> Sequence[NDArray[np.int64]]:
    """Return the places of the sampled rows of each step, ascending: each row with probability `rate`.

    The gaps between sampled rows are geometric. Which of the first m rows are sampled does not depend on what follows.

    Guarantees:
        Every row is sampled at its rate, independently. [test_rows_are_sampled_at_the_rate]
        A row more at the end changes no other row's coins. [test_coins_do_not_depend_on_later_rows]
    """
    if rate >= 1:
        return [np.arange(num_rows, dtype=np.int64) for _ in steps]
    return [_sample_one(draws, step, num_rows, rate, batch_size) for step in steps]


def sample_rows_by_value(
    draws: Draws, steps: int, rows: Sequence[NDArray[Any]], rate: float
) -> Sequence[NDArray[np.int64]]:
    """Return the places of the sampled rows of each step, ascending, where a row's coins follow from its values.

    The same distribution as `sample_rows`, more slowly: equal rows are told apart by how many came before. Whichever
    row comes, goes or changes, all others keep their coins, which is what a replay needs to compare two tables.

    Guarantees:
        Every row is sampled at its rate, independently. [test_rows_are_sampled_by_value_at_the_rate]
        A row more, less or another changes no other row's coins. [test_coins_by_value_do_not_depend_on_other_rows]
    """
    num_rows = len(rows[0])
    present = np.zeros((num_rows, steps), dtype=np.bool_)
    seen: dict[bytes, int] = {}
    for place in range(num_rows):
        values = b"/".join(np.ascontiguousarray(each[place]).tobytes() for each in rows)
        number = seen[values] = seen.get(values, -1) + 1
        present[place] = draws.uniform(f"row/{values.hex()}", number, steps) <= rate
    return [np.flatnonzero(column) for column in present.T]


def _sample_one(draws: Draws, step: int, num_rows: int, rate: float, batch_size: float) -> NDArray[np.int64]:
    size = math.ceil(batch_size + 5 * math.sqrt(batch_size) + 8)
    while True:
        # The stream's beginning does not depend on how much of it is asked for.
        gaps = np.floor(np.log(draws.uniform("sample", step, size)) / math.log1p(-rate))
        places = np.cumsum(np.minimum(gaps, _FAR).astype(np.int64) + 1) - 1
        if places[-1] >= num_rows:
            return places[places < num_rows]
        size *= 2
