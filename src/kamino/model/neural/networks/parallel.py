"""Training sub-models side by side, in processes or on a cluster: embeddings are not reused (the paper's section 4.1).

All sub-models are charged here, one after the other, before the first is trained; a worker gets the rows of its
sub-model and the secret bytes that its samples and its noise come from. Private rows so leave this process: a cluster
must be as trusted as the machine that holds the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kamino.errors import ModelError
from kamino.model.neural.extra import require
from kamino.model.neural.model import SubModel
from kamino.model.neural.networks.layout import Array, empty_embeddings, head, with_unit
from kamino.model.protocol import FloatArray

if TYPE_CHECKING:
    from kamino.model.neural.fit_neural import Fit
    from kamino.model.neural.neural_schedule import Step


def train_side_by_side(
    fit: Fit, counted: Mapping[int, FloatArray], *, jobs: int, cluster: str | None = None
) -> tuple[SubModel, ...]:
    """Fit all sub-models, `jobs` at a time: in processes, on the Dask cluster at an address, or on Ray's at `ray://...`.

    Other clusters work through joblib's own context: `with joblib.parallel_config(backend=...): fit_neural(...)`.

    Guarantees:
        The charges are those of training in sequence.  [test_side_by_side_is_charged_the_same]
    """
    require("joblib")
    if not fit.measurer.gate.is_live:
        raise ModelError("sub-models that are trained side by side cannot be recorded; use jobs=1 under a tape.")
    import joblib

    tasks: list[Any] = []
    found: dict[int, SubModel] = {}
    for place, step in enumerate(fit.chain):
        if not step.context:
            found[place] = SubModel(unit=step.unit, probability=counted[place])
            fit.tell(len(found), step)
            continue
        descent, plan = fit.descent(step, _first(fit, place, step))
        charged = fit.measurer.charge_training(fit.context(step), step.unit, descent, plan)
        tasks.append((place, joblib.delayed(train_one)(charged)))
    with _workers(cluster):
        # By default joblib puts large arrays, here private rows, into temporary files.
        results = joblib.Parallel(n_jobs=jobs, return_as="generator", max_nbytes=None)(task for _, task in tasks)
        for (place, _), params in zip(tasks, results, strict=True):
            step = fit.chain[place]
            found[place] = SubModel(unit=step.unit, context=step.context, params=params)
            fit.tell(len(found), step)
    return tuple(found[place] for place in range(len(fit.chain)))


def _workers(cluster: str | None) -> AbstractContextManager[Any]:
    """Point joblib to a Dask or Ray cluster, or leave it where it is: at processes, or where the caller pointed it."""
    if cluster is None:
        return nullcontext()
    from joblib import parallel_config

    if cluster.startswith("ray://"):
        require("ray", package="ray")
        import_module("ray").init(address=cluster, ignore_reinit_error=True)
        import_module("ray.util.joblib").register_ray()
        return cast("AbstractContextManager[Any]", parallel_config(backend="ray"))
    require("distributed", package="distributed")
    return cast("AbstractContextManager[Any]", parallel_config(backend="dask", scheduler_host=cluster))


def train_one(charged: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """Train one sub-model that was charged; runs in a worker."""
    return charged()


def _first(fit: Fit, place: int, step: Step) -> dict[str, Array]:
    """Return the first parameters of one sub-model: all random."""
    rng = np.random.default_rng((fit.settings.seed, place))
    embeddings = empty_embeddings(fit.settings.dim, fit.settings.hidden)
    for i in step.context:
        embeddings = with_unit(embeddings, fit.chain[i].unit, rng)
    return {**embeddings, **head(step.unit, fit.settings.dim, rng)}
