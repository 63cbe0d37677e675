"""Training one sub-model: what the private mechanism is told of it, and its optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.model.neural.networks.layers import HIGHEST, INSIDE, LOWEST, NULL, loss
from kamino.model.neural.networks.layout import Array, Layout
from kamino.model.neural.neural_settings import Optimizer
from kamino.model.neural.units import Kind, Unit


@dataclass(frozen=True, kw_only=True, eq=False)
class SubModelDescent:
    """A sub-model as the DP-SGD mechanism knows it: public facts and functions."""

    unit: Unit
    layout: Layout
    first: Array
    optimizer: Optimizer
    steps: int
    batch_size: float

    def _adam(self) -> Any:
        import optax

        peak = self.optimizer.learning_rate
        warm = max(1, int(self.optimizer.warm_up * self.steps))
        schedule = optax.warmup_cosine_decay_schedule(0.1 * peak, peak, warm, max(self.steps, warm + 1), 0.01 * peak)
        return optax.adam(schedule, b1=0.9, b2=0.99)

    def start(self) -> Any:
        """Return the first parameters, the optimizer's memory, and the mean so far."""
        import jax.numpy as jnp

        params = jnp.asarray(self.first)
        return params, self._adam().init(params), jnp.zeros_like(params), jnp.zeros((), jnp.int32)

    def parameters(self, state: Any) -> Any:
        """Return the current parameters."""
        return state[0]

    def loss(self, parameters: Any, row: Any) -> Any:
        """Return the negative log-likelihood of one row."""
        nullable = self.unit.attributes[0].null_code is not None
        return loss(self.unit.kind, self.unit.num_values, nullable, self.layout.unpack(parameters), row)

    def advance(self, state: Any, gradient: Any) -> Any:
        """Take one step."""
        import jax.numpy as jnp

        params, memory, mean, step = state
        updates, memory = self._adam().update(gradient / self.batch_size, memory, params)
        params = params + updates
        begin = int((1 - self.optimizer.averaged) * self.steps)
        weight = jnp.where(step >= begin, 1.0 / jnp.maximum(step - begin + 1, 1), 0.0)
        return params, memory, mean + weight * (params - mean), step + 1

    def result(self, state: Any) -> dict[str, NDArray[np.float32]]:
        """Return the averaged parameters by name."""
        return self.layout.unpack(np.asarray(state[2], dtype=np.float32))


def target_arrays(unit: Unit, codes: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the targets of rows as the loss takes them."""
    if unit.kind is Kind.CATEGORICAL:
        return codes.astype(np.int32), np.zeros(len(codes), dtype=np.float32)
    top = unit.num_values - 1
    where = np.select([codes > top, codes == 0, codes == top], [NULL, LOWEST, HIGHEST], INSIDE)
    return where.astype(np.int32), unit.scaled(codes).astype(np.float32)
