"""Reading a saved model, whichever backend made it. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kamino.errors import ModelError
from kamino.model.marginal import network_file
from kamino.model.marginal.network import MarginalModel
from kamino.model.protocol import SavedModel
from kamino.model.saved import Fields, shown


def _read_neural(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> SavedModel:
    from kamino.model.neural.model import NeuralModel  # many modules: only where there is such a model

    return NeuralModel.from_arrays(meta, arrays)


# The second is the FORMAT of `kamino.model.neural.model`, which is not imported before it is needed.
_READERS: Mapping[object, Callable[[Mapping[str, Any], Mapping[str, np.ndarray]], SavedModel]] = {
    network_file.FORMAT: MarginalModel.from_arrays,
    "kamino-neural-1": _read_neural,
}


def load_model(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> SavedModel:
    """Rebuild the model that `to_arrays` described; an unknown format raises a `ModelError`.

    Guarantees:
        Every backend's model survives, and draws the same rows.  [test_it_survives_saving]
        Neither reading nor drawing imports jax.  [test_loading_and_sampling_import_no_jax]
        What no backend wrote is refused.  [test_crafted_models_are_refused]
    """
    found = Fields(meta, where="model").text("format")
    if found not in _READERS:
        raise ModelError(f"the model has format {shown(found)}; this version reads {', '.join(map(repr, _READERS))}.")
    return _READERS[found](meta, arrays)
