"""What a model file says, asked for by kind: a value that is missing, or of another kind, is refused by name.

A file may come from anybody. Nothing of it is used before it was asked for here.

>>> Fields({"size": 3}, where="attribute 1").whole("size", least=1)
3
>>> Fields({"size": "3"}, where="attribute 1").whole("size")
Traceback (most recent call last):
    ...
kamino.errors.ModelError: attribute 1: size is not a whole number
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kamino.errors import ModelError
from kamino.model.protocol import FloatArray, IntArray, ModelAttribute

# Probabilities are kept as they were computed: their sums are off by rounding only.
_CLOSE = 1e-6
_LARGEST = 2**62
# Of a list that is read as named values, the places are the names.
Name: TypeAlias = str | int


class Fields:
    """A JSON object of a model file. `where` names it in errors."""

    def __init__(self, document: object, *, where: str) -> None:
        if not isinstance(document, Mapping):
            raise ModelError(f"{where} is not a set of named values")
        self._document = document
        self.where = where

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    @property
    def items_by_name(self) -> Mapping[str, Any]:
        """All values, as they are."""
        return self._document

    def only(self, *names: Name) -> Fields:
        """Refuse any name but these."""
        extra = [name for name in self._document if name not in names]
        if extra:
            raise ModelError(f"{self.where}: {shown(extra[0])} is unknown")
        return self

    def any(self, name: Name) -> Any:
        """The value, of whatever kind."""
        if name not in self._document:
            raise ModelError(f"{self.where}: {name} is missing")
        return self._document[name]

    def within(self, name: Name) -> Fields:
        """An object."""
        return Fields(self.any(name), where=f"{self.where}: {name}")

    def whole(self, name: Name, *, least: int = 0, most: int = _LARGEST) -> int:
        """A whole number."""
        value = self.any(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ModelError(f"{self.where}: {name} is not a whole number")
        if not least <= value <= most:
            raise ModelError(f"{self.where}: {name} is not between {least} and {most}")
        return value

    def number(self, name: Name, *, least: float = -math.inf, most: float = math.inf) -> float:
        """A finite number."""
        value = self.any(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST_NUMBER:
            raise ModelError(f"{self.where}: {name} is not a finite number")
        if not least <= value <= most:
            raise ModelError(f"{self.where}: {name} is not between {least:g} and {most:g}")
        return float(value)

    def number_or_null(self, name: Name, *, least: float = -math.inf, most: float = math.inf) -> float | None:
        """A finite number, or null."""
        return None if self.any(name) is None else self.number(name, least=least, most=most)

    def text(self, name: Name) -> str:
        """A text."""
        value = self.any(name)
        if not isinstance(value, str):
            raise ModelError(f"{self.where}: {name} is not a text")
        return value

    def flag(self, name: Name) -> bool:
        """True or false."""
        value = self.any(name)
        if not isinstance(value, bool):
            raise ModelError(f"{self.where}: {name} is neither true nor false")
        return value

    def items(self, name: Name) -> list[Any]:
        """A list."""
        value = self.any(name)
        if not isinstance(value, list):
            raise ModelError(f"{self.where}: {name} is not a list")
        return value

    def objects(self, name: Name) -> list[Fields]:
        """A list of objects."""
        return [Fields(each, where=f"{self.where}: {name} {i}") for i, each in enumerate(self.items(name))]

    def texts(self, name: Name) -> tuple[str, ...]:
        """A list of texts."""
        values = self.items(name)
        if not all(isinstance(value, str) for value in values):
            raise ModelError(f"{self.where}: {name} is not a list of texts")
        return tuple(values)


_MOST_NUMBER = 1e300


def shown(text: object) -> str:
    """A name of a file as it may stand in a message: short, and on one line."""
    return repr(str(text)[:40])


def attribute_of(fields: Fields) -> ModelAttribute:
    """The attribute that a model file describes."""
    size = fields.whole("size", least=1)
    null = None if fields.any("null_code") is None else fields.whole("null_code", most=size - 1)
    return ModelAttribute(name=fields.text("name"), size=size, ordered=fields.flag("ordered"), null_code=null)


def refuse_repeated(names: Sequence[str]) -> None:
    """Refuse a sequence that names an attribute twice, or none at all."""
    if not names or len(set(names)) != len(names):
        raise ModelError("the sequence of a model must name each attribute once")


class Arrays:
    """The arrays of a model file, each asked for by shape; what nobody asked for is refused in the end."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._asked: set[str] = set()

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array."""
        if name not in self._arrays:
            raise ModelError(f"array {shown(name)} is missing")
        return self._arrays[name].shape

    def finite(self, name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """An array of finite numbers of this shape and type."""
        found = self.shape(name)
        array = self._arrays[name]
        self._asked.add(name)
        if found != shape or array.dtype != np.dtype(dtype):
            raise ModelError(
                f"array {shown(name)} has shape {found} and type {array.dtype}; expected {shape} and {np.dtype(dtype)}"
            )
        if not np.isfinite(array).all():
            raise ModelError(f"array {shown(name)} has a value that is not a finite number")
        return array

    def codes(self, name: str, *shape: int) -> IntArray:
        """An array of whole numbers of this shape."""
        return self.finite(name, shape, np.int64)

    def distributions(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        """An array of probabilities that sum to one along the last axis."""
        array: FloatArray = self.finite(name, shape)
        if (array < 0).any() or (np.abs(array.sum(axis=-1) - 1) > _CLOSE).any():
            raise ModelError(f"array {shown(name)} has probabilities below 0, or that do not sum to 1")
        return array

    def refuse_others(self) -> None:
        """Refuse arrays that nothing in the model names."""
        extra = sorted(set(self._arrays) - self._asked)
        if extra:
            raise ModelError(f"array {shown(extra[0])} belongs to nothing in the model")
