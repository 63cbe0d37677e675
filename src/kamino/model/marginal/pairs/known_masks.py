"""Which structural zeros the model holds: those that say most, as far as it has room for them.

The sampler keeps every rule, whatever the model knows of it: to the model a mask is a hint, and has to fit in like a
measured marginal. Masks that exclude most go first; one that follows from others is left out, and so is one that
would make the model too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import Measurement
from kamino.model.marginal.graph.junction import Clique, Graph
from kamino.model.marginal.pairs.prior import margins_of
from kamino.model.protocol import FloatArray

#: A mask follows from others if it excludes less than this part of the rows beyond what they exclude: bins are coarse.
LEAST_MORE = 0.01


def keep_masks(
    frame: Frame, measured: Sequence[Measurement], cliques: Sequence[Clique], most_cells: int
) -> tuple[Frame, tuple[Clique, ...]]:
    """Return the frame with the masks that a model of `most_cells` has room for beside `cliques`, and what is left out.

    Guarantees:
        The model stays within its size, whatever the rules.  [test_masks_leave_the_model_within_its_size]
        Orders of many attributes are known by their neighbours.  [test_masks_that_follow_from_others_are_left_out]
    """
    margins = margins_of(frame, measured)
    worth = {clique: excluded_share(mask, clique, margins) for clique, mask in frame.allowed.items()}
    levels = frame.levels
    graph = Graph(
        levels.all_sizes, cliques, levels.sequence(frame.sequence), levels.after(frame.after), levels.all_groups
    )
    kept: dict[Clique, FloatArray] = {}
    known = _Following()
    for clique in sorted(worth, key=lambda each: (len(each) > 1, -worth[each], each)):
        mask = frame.allowed[clique]
        if len(clique) > 1:
            bins = levels.bins(clique)
            beyond = excluded_share(np.maximum(mask, ~known.allows(clique, mask.shape)), clique, margins)
            if (beyond < LEAST_MORE and beyond < worth[clique]) or graph.cells_with(bins) > most_cells:
                continue
            graph.add(bins)
        kept[clique] = mask
        known.add(clique, mask)
    allowed = {clique: kept[clique] for clique in frame.allowed if clique in kept}
    return replace(frame, allowed=allowed), tuple(clique for clique in frame.allowed if clique not in kept)


def excluded_share(mask: FloatArray, clique: Clique, margins: Sequence[FloatArray]) -> float:
    """Return the share of independent rows that a mask excludes."""
    share = np.ones(())
    for a in clique:
        share = share[..., None] * margins[a]
    # Rounded, for it decides on every processor alike.
    return round(float(share[mask <= 0].sum()), 9)


@dataclass(kw_only=True)
class _Following:
    """Masks of pairs, and what follows from them along the shortest way between two attributes."""

    masks: dict[int, dict[int, NDArray[np.bool_]]] = field(default_factory=dict)

    def add(self, clique: Clique, mask: FloatArray) -> None:
        """Take note of a mask."""
        if len(clique) == 2:
            (first, second), open_cells = clique, mask > 0
            self.masks.setdefault(first, {})[second] = open_cells
            self.masks.setdefault(second, {})[first] = open_cells.T

    def allows(self, clique: Clique, shape: Sequence[int]) -> NDArray[np.bool_]:
        """Return which cells the masks allow, followed from the first attribute of a pair to the second."""
        start, target = clique[0], clique[-1]
        reached = {start: np.eye(shape[0], dtype=np.bool_)}
        edge = [start] if len(clique) == 2 else []
        while edge and target not in reached:
            near = []
            for a in edge:
                for b, mask in self.masks.get(a, {}).items():
                    if b not in reached:
                        reached[b] = (reached[a].astype(np.float32) @ mask.astype(np.float32)) > 0
                        near.append(b)
            edge = near
        return reached.get(target, np.ones(tuple(shape), dtype=np.bool_)) if len(clique) == 2 else np.ones(shape, bool)
