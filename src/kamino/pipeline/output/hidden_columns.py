"""Columns whose counts cannot be told from noise, one by one: from the released distribution and the ledger alone.

A count that is not larger than what noise makes of none says nothing. Where most rows of a column have such counts, as
those of a name with hundreds of values in a table of a thousand rows, its values are as public as before, but how often
each occurs is made up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from kamino.arrays import FloatArray
from kamino.constraints.language.printer import print_name
from kamino.model import MarginalModel
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.plan.expectations import BINS, Accuracy
from kamino.pipeline.plan.mostly_noise import less_noise
from kamino.pipeline.plan.telling_policy import TELLING
from kamino.schema.coding.joint_codes import even_starts

#: How the note begins.
HIDDEN = "hidden by noise"
# Domains of more values than this are not gone through: a category that wide is hidden, if noise hides one row.
_WIDEST = 1 << 20
_SHOWN = 12


def hidden_note(fitted: Fitted, errors: Accuracy | None, told: Collection[str] = ()) -> str | None:
    """A sentence that names the columns whose counts noise hides, but for those already `told`; None if there is none.

    Guarantees:
        It names columns of many rare values only.  [test_single_columns_that_noise_hides_are_told]
        It depends on what was released only.  [test_replay_passes_for_synth]
    """
    if errors is None or not isinstance(fitted.model, MarginalModel):
        return None
    names = [n for n in errors.columns if n not in told and hidden_share(fitted.model, errors, n) > TELLING.hidden]
    if not names:
        return None
    whose = "its" if len(names) == 1 else "their"
    return (
        f"{HIDDEN}: {_listed(names)}. Of about {errors.rows:,} rows, most have a value there (or lie in a sixteenth of "
        "the range) whose count cannot be told from noise: how often values occur, and with which of other columns, is "
        f"mostly made up. {less_noise(fitted.settings)}, or declare {whose} values in fewer groups"
    )


def hidden_share(model: MarginalModel, errors: Accuracy, name: str) -> float:
    """The share of the rows of a column that lie in values, or in sixteenths of a range, that noise would hide."""
    if name not in model.sequence:
        return 0.0
    attribute, noise = model.node(name).attribute, errors.noise_of(name)
    counted = min(attribute.size, BINS) if attribute.ordered else attribute.size
    if counted * noise <= TELLING.hidden * errors.rows:
        return 0.0  # so many cells cannot hold half of the rows and all be small
    if not attribute.ordered and attribute.size > _WIDEST:
        return 1.0
    shares = _shares(model, name, BINS) if attribute.ordered else model.marginal((name,))
    return float(shares[shares * errors.rows < noise].sum())


def _shares(model: MarginalModel, name: str, parts: int) -> FloatArray:
    """The probabilities of so many parts of a range of codes; a bin of the model is spread evenly over its codes."""
    view = model.node(name).cells.map
    width = np.diff(view.starts, append=view.size)
    codes = np.bincount(view.labels, weights=width, minlength=view.bins)
    held = (model.frequencies(name) / codes)[view.labels] * width
    below = np.concatenate([[0.0], np.cumsum(held)])
    edges = np.append(even_starts(view.size, min(parts, view.size)), view.size)
    return np.diff(np.interp(edges, np.append(view.starts, view.size), below))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(print_name, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
