"""Which dates of a private table mostly lie close together, through the gate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, open_code_parts
from kamino.privacy.sensitivity import Sensitivity
from kamino.schema import Codec
from kamino.schema.coding.differences import Difference

#: A date and a possible base.
Pair = tuple[str, str]
#: What the ledger says of the release.
CLOSENESS = "rows in which two dates are known, and in which they lie close together"
#: Dates are close if they are at most this part of a domain apart: bins of a model are no narrower.
WITHIN = 1 / 16


def share_close(
    codes: PrivateCodes, codec: Codec, pairs: Sequence[Pair], gate: Gate, *, noise_multiplier: float
) -> dict[Pair, float]:
    """Return the noisy share of rows in which a date lies close to its possible base, where both are known.

    A row moves two numbers of each of the k pairs by at most 1, and so the vector by at most sqrt(2 k); a row in the
    place of another moves no number further.

    Guarantees:
        No row moves it further.  [test_closeness_moves_as_declared]
    """
    if not pairs:
        return {}
    counts = count_close(codes, codec, pairs)
    root = math.sqrt(counts.size)
    noisy = gate.release_vector(
        counts.ravel().astype(np.float64),
        what=CLOSENESS,
        attributes=tuple(dict.fromkeys(name for pair in pairs for name in pair)),
        noise_multiplier=noise_multiplier,
        sensitivity=Sensitivity(add_remove=root, replace=root),
    ).reshape(counts.shape)
    # Of fewer rows than the noise could make up, nothing is known.
    least = max(1.0, 3 * noise_multiplier * root)
    return {pair: float(near / max(known, least)) for pair, (known, near) in zip(pairs, noisy, strict=True)}


def count_close(codes: PrivateCodes, codec: Codec, pairs: Sequence[Pair]) -> np.ndarray:
    """Count, for each pair, the rows in which both are known and those in which they are close. Private."""
    found = np.zeros((len(pairs), 2), dtype=np.int64)
    for coded in open_code_parts(codes, tuple(dict.fromkeys(name for pair in pairs for name in pair))):
        for place, (name, base) in enumerate(pairs):
            distance = codec.distance(name, Difference(base=base))
            within = max(1, int(codec.plain[name].num_values * WITHIN))
            own, other = coded[name], coded[base]
            found[place] += distance.is_known(own, other).sum(), distance.is_near(own, other, within).sum()
    return found
