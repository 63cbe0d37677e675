"""Choices of a round as plain data: what it measures, and how, so that a run that goes on measures the same.

What a round measures follows from the model so far, whose numbers end in other digits on another processor. After a
hundred steps of inference more than the last ones differ, and another pair may come first. So a choice is settled with
the stored releases. It names what could be chosen, and nothing else is taken from there.

Bins come before all inference, from a few sums of noisy counts, and are the same unless a last digit breaks a tie. That
they are is seen, since answers of other bins would be taken for those of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, assert_never

import numpy as np

from kamino.advice import Advice, starting_anew
from kamino.errors import ModelError
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.maps.gaps import Gap
from kamino.model.marginal.pairs.selection import Scored
from kamino.model.protocol import CodeMap, ConditionalMap, Measurer, View

T = TypeVar("T")


def settle_chosen(measurer: Measurer, what: str, chosen: Sequence[Scored], among: Iterable[Scored]) -> list[Scored]:
    """Return the marginals to measure: some of those that were scored."""
    known = {(each.attributes, int(each.resolution)): each for each in among}
    told = measurer.settle(what, [[[*each.attributes], int(each.resolution)] for each in chosen])
    return _read(what, lambda: [known[tuple(attributes), resolution] for attributes, resolution in told])


def settle_cliques(measurer: Measurer, what: str, chosen: Sequence[Clique], among: Iterable[Clique]) -> list[Clique]:
    """Return the chosen sets of attributes: some of those that there are."""
    known = {each: each for each in among}
    told = measurer.settle(what, [[*each] for each in chosen])
    return _read(what, lambda: [known[tuple(each)] for each in told])


def settle_gaps(measurer: Measurer, gaps: Mapping[Clique, Gap]) -> dict[Clique, Gap]:
    """Return the pairs that are read by their differences, with the groups of these."""
    if not gaps:
        return {}
    told = measurer.settle("differences", [each.labels.tolist() for each in gaps.values()])

    def read() -> dict[Clique, Gap]:
        pairs = zip(gaps.items(), told, strict=True)
        return {clique: replace(gap, labels=_labels(labels, gap.labels.shape)) for (clique, gap), labels in pairs}

    return _read("differences", read)


def settle_bins(measurer: Measurer, frame: Frame) -> None:
    """See that attributes are read as when the run began.

    Raises:
        ModelError: they are not.
    """
    seen = hashlib.sha256(repr([_key(frame.view(a)) for a in range(len(frame.sizes))]).encode()).hexdigest()
    if measurer.settle("bins", [seen]) != [seen]:
        raise Advice.of(
            "bins-differ",
            "the bins of the columns come out otherwise than when the run began, on another processor or with other "
            "libraries; expected the same. Go on where it began, or start anew with ",
            starting_anew(),
            ", which pays again",
        ).error(ModelError)


def _key(view: View) -> Hashable:
    match view:
        case CodeMap():
            return view.key
        case ConditionalMap():
            return view.base, view.over.key, view.own.key, view.labels.tobytes()
        case _:
            assert_never(view)


def _labels(told: Any, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
    found = np.array(told, dtype=np.int64)
    if found.shape != shape or found.min() < 0 or found.max() >= found.size:
        raise ValueError("no groups of these bins")
    return found


def _read(what: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except (KeyError, TypeError, ValueError, OverflowError):
        raise Advice.of(
            "stored-choice-of-another-table",
            f"found a stored choice ({what}) that is none of this table's; expected one that a run of the same plan "
            "made. Start anew with ",
            starting_anew(),
            ", which pays again",
        ).error(ModelError) from None
