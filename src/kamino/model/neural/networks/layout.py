"""The parameters of a sub-model: their shapes, their first values, and what the next sub-model takes over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.model.neural.units import Kind, Unit

Array = NDArray[np.float32]
# Embeddings begin small: the head's bias, which alone knows the marginal, is learned first.
_SPREAD = 0.3


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Names and shapes of parameters, in the order in which they lie in one flat vector."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(math.prod(shape) for _, shape in self.shapes)

    @property
    def places(self) -> dict[str, int]:
        """Where each array begins in the flat vector."""
        ends = np.cumsum([0, *(math.prod(shape) for _, shape in self.shapes)]).tolist()
        return dict(zip([name for name, _ in self.shapes], ends[:-1], strict=True))

    def unpack(self, flat: Any) -> dict[str, Any]:
        """Return the named arrays in a flat vector, of numpy or of jax."""
        found, place = {}, 0
        for name, shape in self.shapes:
            length = math.prod(shape)
            found[name] = flat[place : place + length].reshape(shape)
            place += length
        return found

    def pack(self, arrays: Mapping[str, NDArray[Any]]) -> Array:
        """Return named arrays as one flat vector."""
        return np.concatenate([np.asarray(arrays[name], dtype=np.float32).ravel() for name, _ in self.shapes])

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]]) -> Layout:
        """Return the layout of named arrays."""
        return Layout(shapes=tuple((name, tuple(array.shape)) for name, array in arrays.items()))


def empty_embeddings(dim: int, hidden: int) -> dict[str, Array]:
    """Return the embeddings and attention of no context at all."""
    shapes = {
        "table": (0, dim),
        "lift": (0, hidden),
        "lift_bias": (0, hidden),
        "lower": (0, hidden, dim),
        "lower_bias": (0, dim),
        "null": (0, dim),
        "query": (dim,),
        "prior_codes": (0,),
        "prior_values": (0,),
    }
    return {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}


def with_unit(
    embeddings: Mapping[str, Array], unit: Unit, rng: np.random.Generator, learned: Array | None = None
) -> dict[str, Array]:
    """Return the embeddings with one more context unit, whose own are random, or `learned` ones for a category.

    A target's output vectors are learned next to the context vectors they are compared with: they begin its embedding.
    """
    dim, hidden = embeddings["table"].shape[1], embeddings["lift"].shape[1]
    new = {name: array.copy() for name, array in embeddings.items()}
    if unit.kind is Kind.CATEGORICAL:
        table = learned if learned is not None else _random(rng, (unit.size, dim))
        new["table"] = np.concatenate([new["table"], table])
        new["prior_codes"] = np.append(new["prior_codes"], np.float32(0))
        return new
    rows = {
        "lift": _random(rng, (1, hidden), 1.0),
        "lift_bias": rng.uniform(-1, 1, (1, hidden)).astype(np.float32),
        "lower": _random(rng, (1, hidden, dim), 1.0 / math.sqrt(hidden)),
        "lower_bias": np.zeros((1, dim), dtype=np.float32),
        "null": _random(rng, (1, dim)),
    }
    for name, row in rows.items():
        new[name] = np.concatenate([new[name], row])
    new["prior_values"] = np.append(new["prior_values"], np.float32(0))
    return new


def head(unit: Unit, dim: int, rng: np.random.Generator) -> dict[str, Array]:
    """Return the first values of a head: output vectors and biases."""
    rows = unit.size if unit.kind is Kind.CATEGORICAL else 3
    spread = _SPREAD if unit.kind is Kind.CATEGORICAL else 0.01
    return {"out": _random(rng, (rows, dim), spread), "bias": np.zeros(rows, dtype=np.float32)}


def embeddings_of(params: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    """Return what a sub-model hands on: everything but its head."""
    return {name: np.asarray(array, np.float32) for name, array in params.items() if name not in ("out", "bias")}


def context_arrays(
    units: Sequence[Unit], columns: Mapping[str, NDArray[np.int64]], num_rows: int
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
    """Return rows of context as the network takes them: places in the joint table, scaled numbers, null marks."""
    codes, values, missing, offset = [], [], [], 0
    for unit in units:
        joint = unit.joint(columns)
        if unit.kind is Kind.CATEGORICAL:
            codes.append(joint + offset)
            offset += unit.size
        else:
            values.append(unit.scaled(joint))
            missing.append(joint >= unit.num_values)
    return (
        _stack(codes, num_rows).astype(np.int32),
        _stack(values, num_rows).astype(np.float32),
        _stack(missing, num_rows).astype(np.bool_),
    )


def _stack(columns: Sequence[NDArray[Any]], num_rows: int) -> NDArray[Any]:
    return np.stack(columns, axis=1) if columns else np.zeros((num_rows, 0))


def _random(rng: np.random.Generator, shape: tuple[int, ...], spread: float = _SPREAD) -> Array:
    return (spread * rng.standard_normal(shape)).astype(np.float32)
