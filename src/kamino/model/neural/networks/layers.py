"""One sub-model as a function of its parameters: embeddings, attention over the context, a head for the target.

    e_a = row of a lookup table, for a category
    e_a = B relu(A x + c) + d, for a number x on the public scale [-1, 1]; a vector of its own for null
    w   = softmax over context attributes of (query . e_a + prior_a)
    h   = sum of w_a e_a
    categorical target:  softmax(out h + bias)
    numeric target:      mean, log deviation and log odds of null = out h + bias

Written once for numpy and for jax (`xp` is the one or the other): a fitted model is sampled without jax.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kamino.model.neural.units import Kind

Params = Mapping[str, Any]
# The deviation of a numeric target is at least a code's width times this, and at most this on the scale [-1, 1].
LEAST_WIDTHS = 0.5
MOST_DEVIATION = 4.0


def context_vector(xp: Any, params: Params, codes: Any, values: Any, missing: Any) -> Any:
    """Return h for rows with categorical `codes`, numeric `values` and null marks; leading axes are kept."""
    looked = params["table"][codes]
    hidden = xp.maximum(values[..., None] * params["lift"] + params["lift_bias"], 0.0)
    lifted = xp.einsum("...kh,khd->...kd", hidden, params["lower"]) + params["lower_bias"]
    lifted = xp.where(missing[..., None], params["null"], lifted)
    embedded = xp.concatenate([looked, lifted], axis=-2)
    score = embedded @ params["query"] + xp.concatenate([params["prior_codes"], params["prior_values"]])
    weight = xp.exp(score - score.max(axis=-1, keepdims=True))
    weight = weight / weight.sum(axis=-1, keepdims=True)
    return (weight[..., None] * embedded).sum(axis=-2)


def outputs(xp: Any, params: Params, codes: Any, values: Any, missing: Any) -> Any:
    """Return the head's outputs: a logit for each code, or mean, log deviation and log odds of null."""
    h = context_vector(xp, params, codes, values, missing)
    return h @ params["out"].T + params["bias"]


def log_softmax(xp: Any, logits: Any) -> Any:
    """Return log probabilities along the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))


def normal_of(xp: Any, out: Any, num_values: int) -> tuple[Any, Any]:
    """Return mean and deviation of a numeric target on the scale [-1, 1].

    The mean may leave the scale: the outermost codes take the tails, which is how a spike at a bound is modelled.
    """
    width = 2.0 / max(num_values - 1, 1)
    low, high = math.log(LEAST_WIDTHS * width), math.log(MOST_DEVIATION)
    mean = 4.0 * xp.tanh(out[..., 0] / 4.0)
    return mean, xp.exp(xp.clip(out[..., 1] - 1.0, low, high))


# How the target of a numeric unit is given to the loss.
INSIDE, LOWEST, HIGHEST, NULL = 0, 1, 2, 3


def loss(kind: Kind, num_values: int, nullable: bool, params: Params, row: Any, *, balanced: bool = True) -> Any:
    """Return the negative log-likelihood of one row, for jax.

    Where `balanced`, the gradient along a mean is taken in units of the deviation. Where it vanishes does not change,
    but rows with a number are then clipped no more than rows with null, which would grow too many otherwise.
    """
    import jax.numpy as jnp

    codes, values, missing, target, target_value = row
    out = outputs(jnp, params, codes, values, missing)
    if kind is Kind.CATEGORICAL:
        return -log_softmax(jnp, out)[target]
    mean, deviation = normal_of(jnp, out, num_values)
    if balanced:
        mean = _slowed(mean, deviation)
    seen = _numeric_log(mean, deviation, num_values, target, target_value)
    if not nullable:
        return -seen
    # log P(null) = -log(1 + exp(-odds)), log P(no null) = -log(1 + exp(odds))
    null, present = -jnp.logaddexp(0.0, -out[2]), -jnp.logaddexp(0.0, out[2])
    return -jnp.where(target == NULL, null, seen + present)


def _slowed(value: Any, factor: Any) -> Any:
    """Return `value` as it is, with its gradient multiplied by `factor`."""
    import jax

    fixed = jax.lax.stop_gradient(value)
    return fixed + jax.lax.stop_gradient(factor) * (value - fixed)


def _numeric_log(mean: Any, deviation: Any, num_values: int, target: Any, value: Any) -> Any:
    """Return the log-likelihood of a normal number whose outermost codes take the tails (Tobin 1958)."""
    import jax
    import jax.numpy as jnp

    half = 1.0 / max(num_values - 1, 1)
    # A density in the place of a code's probability: the two differ by a factor that no parameter changes.
    inside = -0.5 * ((value - mean) / deviation) ** 2 - jnp.log(deviation) - 0.5 * math.log(2 * math.pi)
    lowest = jax.scipy.special.log_ndtr((-1.0 + half - mean) / deviation)
    highest = jax.scipy.special.log_ndtr((mean - 1.0 + half) / deviation)
    return jnp.select([target == LOWEST, target == HIGHEST], [lowest, highest], inside)


def normal_cells(out: Any, num_values: int, starts: Any) -> Any:
    """Return log P of each cell of codes under the normal distributions in `out`, one row each, for numpy.

    `starts` are the first codes of the cells. The first cell reaches to minus infinity, the last to infinity.
    """
    from scipy.special import ndtr

    mean, deviation = normal_of(np, out, num_values)
    edges = 2.0 * (np.asarray(starts[1:]) - 0.5) / max(num_values - 1, 1) - 1.0
    score = (edges[None, :] - mean[:, None]) / deviation[:, None]
    # Differences are taken on the side of the smaller tail, where they lose no digits.
    upper = np.concatenate([ndtr(score), np.ones((len(mean), 1))], axis=1)
    lower = np.concatenate([np.zeros((len(mean), 1)), ndtr(score)], axis=1)
    upper_tail = np.concatenate([ndtr(-score), np.zeros((len(mean), 1))], axis=1)
    lower_tail = np.concatenate([np.ones((len(mean), 1)), ndtr(-score)], axis=1)
    mass = np.where(lower > 0.5, lower_tail - upper_tail, upper - lower)
    return np.log(np.maximum(mass, 1e-300))
