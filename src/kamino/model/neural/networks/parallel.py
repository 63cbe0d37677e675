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
from kamino.model.neural.networks.layout import Array
from kamino.model.neural.sub_model import SubModel
from kamino.model.neural.units import Unit
from kamino.model.protocol import FloatArray
from kamino.privacy import Gate

if TYPE_CHECKING:
    from kamino.model.neural.fit_neural import Fit


def require_workers(gate: Gate, cluster: str | None) -> None:
    """Raise a `ModelError` where sub-models cannot be trained side by side. Charges nothing.

    Guarantees:
        A recorded run says that it cannot be.  [test_side_by_side_cannot_be_recorded]
    """
    require("joblib")
    if cluster is not None:
        package = "ray" if _is_ray(cluster) else "distributed"
        require(package, package=package)
    if not gate.is_live:
        raise ModelError("sub-models that are trained side by side cannot be recorded; use jobs=1 under a tape.")


def _is_ray(cluster: str) -> bool:
    return cluster.startswith("ray://")


def train_side_by_side(
    fit: Fit, counted: Mapping[int, FloatArray], *, jobs: int, cluster: str | None = None
) -> tuple[SubModel, ...]:
    """Fit all sub-models, `jobs` at a time: in processes, on the Dask cluster at an address, or on Ray's at `ray://...`.

    Other clusters work through joblib's own context: `with joblib.parallel_config(backend=...): fit_neural(...)`.

    Guarantees:
        The charges are those of training in sequence.  [test_side_by_side_is_charged_the_same]
    """
    import joblib

    # The levels of units are known from their histograms, so that all sub-models can be described at once.
    context = {place: fit.histogram_of(place, counted) for place in counted}
    tasks: list[Any] = []
    found: dict[int, SubModel] = {}
    for place, step in enumerate(fit.chain):
        if not step.context:
            found[place] = context[place]
            fit.tell(len(found), step)
            continue
        before = tuple(context.get(i) or _named(fit.chain[i].unit) for i in step.context)
        rng = np.random.default_rng((fit.settings.seed, place))
        described = fit.describe(place, before, None, counted, rng)
        charged = fit.measurer.charge_training(described)
        tasks.append((place, described, joblib.delayed(train_one)(charged)))
    with _workers(cluster):
        # By default joblib puts large arrays, here private rows, into temporary files.
        results = joblib.Parallel(n_jobs=jobs, return_as="generator", max_nbytes=None)(task for _, _, task in tasks)
        for (place, described, _), params in zip(tasks, results, strict=True):
            found[place] = fit.trained(place, described, counted, params)
            fit.tell(len(found), fit.chain[place])
    return tuple(found[place] for place in range(len(fit.chain)))


def _workers(cluster: str | None) -> AbstractContextManager[Any]:
    """Point joblib to a Dask or Ray cluster, or leave it where it is: at processes, or where the caller pointed it."""
    if cluster is None:
        return nullcontext()
    from joblib import parallel_config

    if _is_ray(cluster):
        import_module("ray").init(address=cluster, ignore_reinit_error=True)
        import_module("ray.util.joblib").register_ray()
        return cast("AbstractContextManager[Any]", parallel_config(backend="ray"))
    return cast("AbstractContextManager[Any]", parallel_config(backend="dask", scheduler_host=cluster))


def train_one(charged: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """Train one sub-model that was charged; runs in a worker."""
    return charged()


def _named(unit: Unit) -> SubModel:
    """A stand-in for a sub-model that is not trained yet, of which the paper's networks take the unit alone."""
    return SubModel(unit=unit, probability=np.ones(1))
