"""dpmm as its manual shows it: a pipeline with its own private discretiser and a given domain.

A tenth of epsilon goes to the discretiser, as in the manual's example, and comes off the model's share, since dpmm
adds the two.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline  # type: ignore[import-not-found]

from bench.peers.exchange import Column, Task, serve

PIPELINES = {"privbayes": PrivBayesPipeline, "mst": MSTPipeline, "aim": AIMPipeline}
DISCRETISER_SHARE = 0.1
# Integers with this many values at most are given as categories: nothing is gained by binning them.
FEW = 32
# Megabytes. The pipeline hands AIM no cap; its authors ask for this one, AIM's own default, in comparisons.
MAX_MODEL_SIZE = {"aim": 80}


def is_category(column: Column) -> bool:
    """Whether dpmm gets the column as a category."""
    return column.kind == "category" or column.width <= FEW


def prepare(frame: pd.DataFrame, columns: tuple[Column, ...]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The frame with dtypes that say what is a category, and the domain as dpmm wants it."""
    frame = frame.copy()
    domain: dict[str, Any] = {}
    for column in columns:
        if not is_category(column):
            domain[column.name] = {"lower": column.lower, "upper": column.upper}
            continue
        values: list[Any] = list(column.values or range(int(column.lower), int(column.upper) + 1))
        domain[column.name] = {"categories": values}
        frame[column.name] = frame[column.name].astype(pd.CategoricalDtype(values))
    return frame, domain


def synthesize(task: Task) -> pd.DataFrame:
    """Fit and generate."""
    frame, domain = prepare(task.frame, task.columns)
    pipeline = PIPELINES[task.method](
        epsilon=(1 - DISCRETISER_SHARE) * task.epsilon,
        proc_epsilon=DISCRETISER_SHARE * task.epsilon,
        delta=task.delta,
        max_model_size=MAX_MODEL_SIZE.get(task.method),
        n_jobs=1,
    )
    pipeline.fit(frame, domain)
    made: pd.DataFrame = pipeline.generate(n_records=task.rows, random_state=task.seed)
    return made


if __name__ == "__main__":
    serve(synthesize)
