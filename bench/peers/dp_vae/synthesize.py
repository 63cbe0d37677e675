"""A small variational autoencoder trained with DP-SGD: what a network of this kind does at this budget.

Poisson sampling, gradients of single rows clipped, Gaussian noise; the noise is found with dp-accounting's privacy loss
distributions for add/remove neighbours. The seed is public: for measurement, not for release.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import dp_accounting
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from dp_accounting import pld

from bench.peers.dp_vae.encoding import Codes, decode, digits_of, encode
from bench.peers.exchange import Task, serve

HIDDEN, LATENT = 128, 16
STEPS, BATCH = 1_000, 512
CLIP, LEARNING_RATE = 1.0, 2e-3
# Rows whose gradients are computed at once; a sampled batch takes as many rounds of this as it needs.
CHUNK = 640

Parameters = Mapping[str, Any]


def noise_for(*, epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The noise multiplier that makes all steps together (epsilon, delta)-private."""

    def event(multiplier: float) -> Any:
        step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
        return dp_accounting.SelfComposedDpEvent(step, steps)

    bracket = dp_accounting.ExplicitBracketInterval(0.5, 20.0)
    return float(
        dp_accounting.calibrate_dp_mechanism(
            pld.PLDAccountant, event, epsilon, delta, bracket_interval=bracket, tol=1e-3
        )
    )


def initial(key: Any, width: int) -> Parameters:
    """Weights of four layers: two encode, two decode."""
    shapes = {"in": (width, HIDDEN), "code": (HIDDEN, 2 * LATENT), "back": (LATENT, HIDDEN), "out": (HIDDEN, width)}
    keys = jax.random.split(key, len(shapes))
    return {
        name: (jax.random.normal(k, shape) / np.sqrt(shape[0]), jnp.zeros(shape[1]))
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def layer(parameters: Parameters, name: str, x: Any) -> Any:
    """An affine map."""
    weights, bias = parameters[name]
    return x @ weights + bias


def decoded(parameters: Parameters, z: Any) -> Any:
    """The logits of all digits, side by side."""
    return layer(parameters, "out", jax.nn.relu(layer(parameters, "back", z)))


def losses(taps: Parameters, parameters: Parameters, rows: Any, key: Any, sizes: tuple[int, ...]) -> Any:
    """The negative evidence lower bounds of rows of digits, summed, and what went into each layer.

    `taps` are zeros that are added to what comes out of each layer: the slopes along them are those of single rows.
    """
    hot = jnp.concatenate([jax.nn.one_hot(rows[:, i], size) for i, size in enumerate(sizes)], axis=1)
    inner = jax.nn.relu(layer(parameters, "in", hot) + taps["in"])
    both = layer(parameters, "code", inner) + taps["code"]
    mean, log_variance = both[:, :LATENT], jnp.clip(both[:, LATENT:], -8, 8)
    z = mean + jnp.exp(log_variance / 2) * jax.random.normal(key, mean.shape)
    outer = jax.nn.relu(layer(parameters, "back", z) + taps["back"])
    logits, ends = layer(parameters, "out", outer) + taps["out"], np.cumsum((0, *sizes))
    total = jnp.sum(jnp.exp(log_variance) + mean**2 - 1 - log_variance) / 2
    for i, (a, b) in enumerate(pairwise(ends)):
        total -= jnp.take_along_axis(jax.nn.log_softmax(logits[:, a:b]), rows[:, i : i + 1], axis=1).sum()
    return total, {"in": hot, "code": inner, "back": z, "out": outer}


def clipped_sum(parameters: Parameters, rows: Any, valid: Any, key: Any, sizes: tuple[int, ...]) -> Parameters:
    """The sum of single rows' gradients, each of norm CLIP at most; rows that only fill the shape count nothing.

    The gradient of a row in a layer's weights is the outer product of what went in and the slope of what came out, so
    that its norm is the product of theirs, and no row's gradient is ever written down.
    """
    taps = {name: jnp.zeros((len(rows), bias.shape[0])) for name, (_, bias) in parameters.items()}
    slopes, inputs = jax.grad(losses, has_aux=True)(taps, parameters, rows, key, sizes)
    squares = sum((slopes[n] ** 2).sum(axis=1) * (1 + (inputs[n] ** 2).sum(axis=1)) for n in parameters)
    scale = valid * jnp.minimum(1.0, CLIP / jnp.sqrt(squares + 1e-12))
    scaled = {name: slope * scale[:, None] for name, slope in slopes.items()}
    return {name: (inputs[name].T @ scaled[name], scaled[name].sum(axis=0)) for name in parameters}


def train(rows: Codes, sizes: tuple[int, ...], *, multiplier: float, rate: float, seed: int) -> Parameters:
    """DP-SGD with Poisson sampling."""
    key, start = jax.random.split(jax.random.key(seed))
    parameters, rng = initial(start, sum(sizes)), np.random.default_rng(seed)
    optimizer = optax.adam(LEARNING_RATE)
    state = optimizer.init(parameters)
    gradient = jax.jit(lambda p, r, v, k: clipped_sum(p, r, v, k, sizes))

    def update(p: Any, s: Any, total: Any, k: Any) -> Any:
        leaves, tree = jax.tree.flatten(total)
        keys = jax.random.split(k, len(leaves))
        noisy = [
            (leaf + multiplier * CLIP * jax.random.normal(one, leaf.shape)) / BATCH
            for leaf, one in zip(leaves, keys, strict=True)
        ]
        changes, s = optimizer.update(jax.tree.unflatten(tree, noisy), s)
        return optax.apply_updates(p, changes), s

    step = jax.jit(update)
    for _ in range(STEPS):
        chosen = np.flatnonzero(rng.random(len(rows)) < rate)
        total = jax.tree.map(jnp.zeros_like, parameters)
        for begin in range(0, len(chosen), CHUNK):
            part = chosen[begin : begin + CHUNK]
            filled = np.zeros(CHUNK, dtype=np.int64)
            filled[: len(part)] = part
            key, one = jax.random.split(key)
            grown = gradient(parameters, rows[filled], np.arange(CHUNK) < len(part), one)
            total = jax.tree.map(jnp.add, total, grown)
        key, one = jax.random.split(key)
        parameters, state = step(parameters, state, total, one)
    return parameters


def draw(parameters: Parameters, sizes: tuple[int, ...], num_rows: int, seed: int) -> list[Codes]:
    """Digits from the decoder at random points of the latent space."""
    first, second = jax.random.split(jax.random.key(seed + 1))
    logits = decoded(parameters, jax.random.normal(first, (num_rows, LATENT)))
    ends = np.cumsum((0, *sizes))
    keys = jax.random.split(second, len(sizes))
    return [
        np.asarray(jax.random.categorical(k, logits[:, a:b])).astype(np.int64)
        for k, (a, b) in zip(keys, pairwise(ends), strict=True)
    ]


def synthesize(task: Task) -> pd.DataFrame:
    """Train and draw."""
    written = [digits_of(column) for column in task.columns]
    sizes = tuple(size for digits in written for size in digits.sizes)
    rows = np.stack([part for digits in written for part in encode(task.frame[digits.column.name], digits)], axis=1)
    # the number of rows is public: all methods are told to make as many
    rate = min(1.0, BATCH / task.rows)
    multiplier = noise_for(epsilon=task.epsilon, delta=task.delta, rate=rate, steps=STEPS)
    parameters = train(rows, sizes, multiplier=multiplier, rate=rate, seed=task.seed)
    parts, rng = iter(draw(parameters, sizes, task.rows, task.seed)), np.random.default_rng(task.seed)
    return pd.DataFrame({d.column.name: decode([next(parts) for _ in d.sizes], d, rng) for d in written})


if __name__ == "__main__":
    serve(synthesize)
