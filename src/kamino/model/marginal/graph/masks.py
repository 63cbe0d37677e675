"""Structural zeros: what unary constraints forbid, brought from codes to bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kamino.errors import ModelError
from kamino.model.marginal.graph.junction import Clique
from kamino.model.protocol import Cells, FloatArray, IntArray, ModelAttribute

#: A mask over more combinations of runs than this is left to the sampler, which checks every value it places.
MOST_COMBINATIONS = 2_000_000
#: So is one over more combinations of bins than this: its attributes would have to share a clique.
MOST_CELLS = 50_000


def apply_masks(
    attributes: Sequence[ModelAttribute],
    cells: tuple[Cells, ...],
    allowed: Mapping[tuple[str, ...], Callable[[Mapping[str, IntArray]], NDArray[np.bool_]]],
) -> tuple[tuple[Cells, ...], dict[Clique, FloatArray]]:
    """Return the cells without forbidden codes, and which combinations of bins hold an allowed one.

    A run of several codes counts as allowed if its first, middle or last code is: a bin is closed only if nothing in
    it was seen to be allowed, and codes inside an open bin are the sampler's to check.
    """
    place = {a.name: i for i, a in enumerate(attributes)}
    found = list(cells)
    masks: dict[Clique, FloatArray] = {}
    for names, test in allowed.items():
        clique = tuple(sorted(place[n] for n in names))
        runs = [len(found[a].map.starts) for a in clique]
        bins = math.prod(found[a].map.bins for a in clique)
        if math.prod(runs) > MOST_COMBINATIONS or bins > MOST_CELLS:
            continue
        open_runs = np.zeros(runs, dtype=bool)
        for halves in (0, 1, 2):
            codes = [found[a].map.starts + halves * (found[a].width - 1) // 2 for a in clique]
            grid = np.meshgrid(*codes, indexing="ij")
            asked = {attributes[a].name: g.ravel() for a, g in zip(clique, grid, strict=True)}
            open_runs |= np.asarray(test(asked), dtype=bool).reshape(runs)
        if not open_runs.any():
            raise ModelError(f"the constraints on {', '.join(names)} allow no combination of values.")
        if len(clique) == 1:
            found[clique[0]] = _without(found[clique[0]], open_runs)
        mask = np.zeros([found[a].map.bins for a in clique])
        index = np.meshgrid(*(found[a].map.labels for a in clique), indexing="ij")
        np.maximum.at(mask, tuple(index), open_runs.astype(float))
        masks[clique] = masks[clique] * mask if clique in masks else mask
    return tuple(found), masks


def join_masks(first: Mapping[Clique, FloatArray], second: Mapping[Clique, FloatArray]) -> dict[Clique, FloatArray]:
    """Return masks that allow what both allow; where nothing would be left, the first stays."""
    joined = dict(first)
    for clique, mask in second.items():
        both = joined.get(clique, np.ones_like(mask)) * mask
        if both.any():
            joined[clique] = both
    return joined


def _without(cells: Cells, open_runs: NDArray[np.bool_]) -> Cells:
    """Take the share of forbidden runs away; a bin that keeps nothing stays as it was, closed by its mask."""
    labels, bins = cells.map.labels, cells.map.bins
    share = np.where(open_runs, cells.share, 0.0)
    width = np.where(open_runs, cells.width, 0)
    total = np.bincount(labels, weights=share, minlength=bins)
    spare = np.bincount(labels, weights=width, minlength=bins)
    even = np.where(spare[labels] > 0, width / np.maximum(spare[labels], 1), cells.share)
    kept = np.where(total[labels] > 0, share / np.where(total > 0, total, 1.0)[labels], even)
    return Cells(map=cells.map, width=cells.width, share=kept)
