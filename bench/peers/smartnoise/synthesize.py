"""SmartNoise with a table transformer for each column, as its manual advises where the bounds are known.

All transformers get public bounds, so that no budget goes to them. Categories cannot be given: it takes them from the
data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch  # type: ignore[import-not-found]
from snsynth import Synthesizer  # type: ignore[import-not-found]
from snsynth.transform import (  # type: ignore[import-not-found]
    BinTransformer,
    ChainTransformer,
    LabelTransformer,
    MinMaxTransformer,
    OneHotEncoder,
    TableTransformer,
)

from bench.peers.exchange import Column, Task, serve

# What the library itself takes for an ordinal when it guesses.
ORDINAL = 150
# Twice the bins that marginals are judged by, over the same range: midpoints then fall into the right bin.
NUM_BINS = 32


def transformer_of(column: Column, *, gan: bool) -> Any:
    """How a column is shown to the model: labels or bins to a marginal model, one-hot or scaled to a network."""
    if column.width < ORDINAL or column.kind == "category":
        label = LabelTransformer(nullable=column.nullable)
        return ChainTransformer([label, OneHotEncoder()]) if gan else label
    kind = MinMaxTransformer if gan else BinTransformer
    bins = {} if gan else {"bins": NUM_BINS}
    return kind(lower=column.lower, upper=column.upper, nullable=column.nullable, **bins)


def synthesize(task: Task) -> pd.DataFrame:
    """Fit and sample."""
    np.random.seed(task.seed)
    torch.manual_seed(task.seed)
    gan = task.method == "patectgan"
    transformer = TableTransformer([transformer_of(column, gan=gan) for column in task.columns])
    synthesizer = Synthesizer.create(task.method, epsilon=task.epsilon, delta=task.delta, verbose=False)
    frame = task.frame.astype(object).where(task.frame.notna(), None)
    synthesizer.fit(frame, transformer=transformer)
    made = pd.DataFrame(synthesizer.sample(task.rows))
    made.columns = [column.name for column in task.columns]
    return made


if __name__ == "__main__":
    serve(synthesize)
