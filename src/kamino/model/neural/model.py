"""The fitted chain of sub-models. Public facts only; needs numpy alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kamino.errors import ModelError
from kamino.model.marginal.even_draws import draw_bins, draw_codes
from kamino.model.neural.label_histograms import numeric_cells, single_cells
from kamino.model.neural.networks.layers import log_softmax, normal_cells, outputs
from kamino.model.neural.networks.layout import context_arrays
from kamino.model.neural.networks.levels import level_logits
from kamino.model.neural.neural_parameters import Parameters
from kamino.model.neural.sub_model import SubModel, lines_of, read_sub_model
from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import MOST_ROWS, Cells, Conditional, FloatArray, IntArray, ModelAttribute
from kamino.model.saved import Arrays, Fields, refuse_repeated, shown
from kamino.schema.coding.joint_codes import flatten_codes

FORMAT = "kamino-neural-1"
_ROWS_AT_ONCE = 1 << 16
_MARGINAL_ROWS = 200_000
_MOST_CELLS = 1 << 22


@dataclass(frozen=True, kw_only=True, eq=False)
class NeuralModel:
    """A distribution of one row: sub-models along a sequence of units. `parameters` are those it was fitted with.

    Guarantees:
        Holds what was released and what follows from it, nothing else.  [test_replay_passes_for_the_neural_backend]
        Saving and loading keep every number.  [test_neural_model_survives_saving]
    """

    sub_models: tuple[SubModel, ...]
    num_rows: float
    num_cells: int = 64
    parameters: Parameters | None = None

    @cached_property
    def sequence(self) -> tuple[str, ...]:
        """The attributes, in the order in which a row is filled."""
        return tuple(name for each in self.sub_models for name in each.unit.names)

    @property
    def attributes(self) -> tuple[ModelAttribute, ...]:
        """What the model knows of each attribute, along the sequence."""
        return tuple(attribute for each in self.sub_models for attribute in each.unit.attributes)

    @cached_property
    def _places(self) -> dict[str, tuple[SubModel, int]]:
        return {name: (each, i) for each in self.sub_models for i, name in enumerate(each.unit.names)}

    def _place(self, attribute: str) -> tuple[SubModel, int]:
        if attribute not in self._places:
            raise ModelError(f"the model has no attribute {attribute!r}. Attributes: {', '.join(self.sequence)}.")
        return self._places[attribute]

    def _context(self, sub_model: SubModel) -> tuple[Unit, ...]:
        return tuple(self.sub_models[i].unit for i in sub_model.context)

    @property
    def reads_codes(self) -> frozenset[str]:
        """The attributes of which other attributes' distributions read more than the bin."""
        return frozenset(self.sequence)

    def parents(self, attribute: str) -> tuple[str, ...]:
        """Return the earlier attributes that `attribute` depends on."""
        sub_model, place = self._place(attribute)
        before = tuple(name for unit in self._context(sub_model) for name in unit.names)
        return (*before, *sub_model.unit.names[:place])

    def cells(self, attribute: str) -> Cells:
        """Return how the codes of an attribute lie in the bins of its conditional."""
        unit, place = self._place(attribute)[0].unit, self._place(attribute)[1]
        return numeric_cells(unit, self.num_cells) if unit.kind is Kind.NUMERIC else single_cells(unit.sizes[place])

    def conditional(self, attribute: str, context: Mapping[str, IntArray], num_rows: int) -> Conditional:
        """Return P(attribute | earlier attributes) for rows whose parents' codes are in `context`."""
        sub_model, place = self._place(attribute)
        index, distinct = _distinct([context[name] for name in self.parents(attribute)], num_rows)
        columns = dict(zip(self.parents(attribute), distinct, strict=True))
        count = int(index.max()) + 1 if num_rows else 0
        joint = np.concatenate(
            [
                self._attribute(sub_model, place, {name: c[i : i + _ROWS_AT_ONCE] for name, c in columns.items()}, rows)
                for i, rows in _pieces(count)
            ]
            or [np.zeros((0, self.cells(attribute).map.bins))]
        )
        return Conditional(attribute=attribute, context=index, log_prob=joint, cells=self.cells(attribute))

    def _attribute(self, sub_model: SubModel, place: int, columns: Mapping[str, IntArray], num_rows: int) -> FloatArray:
        """Return log P of one attribute of a unit given the context and the unit's earlier attributes."""
        log = self.of_unit(sub_model, columns, num_rows)
        unit = sub_model.unit
        if len(unit.attributes) == 1:
            return log
        before, size = math.prod(unit.sizes[:place]), unit.sizes[place]
        share = np.exp(log).reshape(num_rows, before, size, -1).sum(axis=3)
        overall = share.sum(axis=1)
        codes = [columns[name] for name in unit.names[:place]]
        chosen = flatten_codes(codes, unit.sizes[:place]) if codes else np.zeros(num_rows, dtype=np.int64)
        own = share[np.arange(num_rows), chosen]
        # A combination that never occurs has no conditional: the attribute then follows the context alone.
        own = np.where(own.sum(axis=1, keepdims=True) > 0, own, overall)
        with np.errstate(divide="ignore"):
            result: FloatArray = np.log(own / own.sum(axis=1, keepdims=True))
        return result

    def of_unit(self, sub_model: SubModel, columns: Mapping[str, IntArray], num_rows: int) -> FloatArray:
        """Return log P of each cell of a unit, one row for each context."""
        unit = sub_model.unit
        if sub_model.params is None:
            with np.errstate(divide="ignore"):
                return np.tile(np.log(np.asarray(sub_model.probability)), (num_rows, 1))
        if sub_model.labels is not None:
            return self.of_levels(sub_model, columns)[:, sub_model.labels] + sub_model.within_levels
        params = {name: array.astype(np.float64) for name, array in sub_model.params.items()}
        out = outputs(np, params, *context_arrays(self._context(sub_model), columns, num_rows))
        if unit.kind is Kind.CATEGORICAL:
            result: FloatArray = log_softmax(np, out)
            return result
        starts = numeric_cells(unit, self.num_cells).map.starts
        nullable = unit.num_values < unit.size
        values: FloatArray = normal_cells(out, unit.num_values, starts[:-1] if nullable else starts)
        if nullable:
            present, null = -np.logaddexp(0.0, out[:, 2]), -np.logaddexp(0.0, -out[:, 2])
            values = np.concatenate([values + present[:, None], null[:, None]], axis=1)
        shifted: FloatArray = log_softmax(np, values + params["shift"]) if "shift" in params else values
        return shifted

    def of_levels(self, sub_model: SubModel, columns: Mapping[str, IntArray]) -> FloatArray:
        """Return log P of each level of a unit whose network is over levels, one row for each context."""
        codes = lines_of([self.sub_models[i] for i in sub_model.context], columns, self.num_cells)
        params = {name: array.astype(np.float64) for name, array in (sub_model.params or {}).items()}
        result: FloatArray = log_softmax(np, level_logits(params, codes))
        return result

    def marginal(self, attributes: Sequence[str]) -> FloatArray:
        """Estimate the joint probabilities of the codes of `attributes`, one axis each, from rows that are drawn."""
        sizes = [self._place(name)[0].unit.sizes[self._place(name)[1]] for name in attributes]
        if math.prod(sizes) > _MOST_CELLS:
            raise ModelError(
                f"the joint probabilities of {', '.join(attributes)} have {math.prod(sizes)} cells, of which at most "
                f"{_MOST_CELLS} are estimated; ask for fewer or smaller attributes, or draw rows and count."
            )
        columns = self.sample(_MARGINAL_ROWS, np.random.default_rng(0))
        joint = flatten_codes([columns[name] for name in attributes], sizes)
        counts = np.bincount(joint, minlength=math.prod(sizes))
        result: FloatArray = counts.reshape(sizes) / _MARGINAL_ROWS
        return result

    def sample(
        self, num_rows: int, rng: np.random.Generator, given: Mapping[str, IntArray] | None = None
    ) -> dict[str, IntArray]:
        """Draw rows; columns in `given` are taken as they are when their turn comes, and later ones follow them."""
        parts = []
        for first, rows in _pieces(num_rows):
            own = {name: np.asarray(codes)[first : first + rows] for name, codes in (given or {}).items()}
            parts.append(self._sample(rows, rng, own))
        return {name: np.concatenate([part[name] for part in parts] or [_NONE]) for name in self.sequence}

    def _sample(self, num_rows: int, rng: np.random.Generator, given: Mapping[str, IntArray]) -> dict[str, IntArray]:
        columns: dict[str, IntArray] = {}
        for name in self.sequence:
            if name in given:
                columns[name] = given[name].astype(np.int64)
                continue
            found = self.conditional(name, columns, num_rows)
            bins = draw_bins(found.context, np.exp(found.log_prob), rng, scattered=True)
            columns[name] = draw_codes(bins, found.cells, rng)
        return columns

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return a JSON-able description and the arrays that it names."""
        arrays: dict[str, np.ndarray] = {}
        described = []
        for i, each in enumerate(self.sub_models):
            given = {"probability": each.probability, "labels": each.labels, **(each.params or {})}
            own = {name: np.asarray(array) for name, array in given.items() if array is not None}
            arrays |= {f"{i}.{name}": array for name, array in own.items()}
            attributes = [
                {"name": a.name, "size": a.size, "ordered": a.ordered, "null_code": a.null_code}
                for a in each.unit.attributes
            ]
            described.append(
                {
                    "kind": each.unit.kind.value,
                    "attributes": attributes,
                    "context": list(each.context),
                    "arrays": list(own),
                }
            )
        meta = {
            "format": FORMAT,
            "num_rows": self.num_rows,
            "num_cells": self.num_cells,
            "parameters": self.parameters.to_json() if self.parameters else None,
            "sub_models": described,
        }
        return meta, arrays

    @staticmethod
    def from_arrays(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> NeuralModel:
        """Rebuild a model from `to_arrays`.

        Raises:
            ModelError: anything else was given.

        Guarantees:
            What is returned holds arrays of the shapes that drawing needs.  [test_crafted_models_are_refused]
        """
        if meta.get("format") != FORMAT:
            raise ModelError(f"the model has format {shown(meta.get('format'))}; this version reads {FORMAT!r}.")
        fields, own = Fields(meta, where="model"), Arrays(arrays)
        fields.only("format", "num_rows", "num_cells", "parameters", "sub_models")
        num_cells = fields.whole("num_cells", least=1, most=1 << 20)
        found: list[SubModel] = []
        for i, each in enumerate(fields.objects("sub_models")):
            found.append(read_sub_model(i, each, found, own, num_cells))
        own.refuse_others()
        refuse_repeated([name for each in found for name in each.unit.names])
        return NeuralModel(
            sub_models=tuple(found),
            num_rows=fields.number("num_rows", least=0, most=MOST_ROWS),
            num_cells=num_cells,
            parameters=_parameters(fields),
        )


def _parameters(fields: Fields) -> Parameters | None:
    """What the model was fitted with: facts for a reader, of which drawing needs none."""
    if fields.any("parameters") is None:
        return None
    given = fields.within("parameters")
    whole = ("num_rows", "num_models", "num_histograms", "batch_size", "steps", "weight_rows")
    real = ("gradient_noise", "histogram_noise", "weight_noise", "clip_norm", "epsilon")
    given.only(*whole, *real)
    for name in whole:
        given.whole(name)
    for name in real:
        given.number_or_null(name, least=0)
    return Parameters.from_json({name: given.any(name) for name in (*whole, *real)})


_NONE: IntArray = np.zeros(0, dtype=np.int64)


def _pieces(num_rows: int) -> list[tuple[int, int]]:
    """Return where pieces of a long table begin, and how many rows each has."""
    return [(first, min(_ROWS_AT_ONCE, num_rows - first)) for first in range(0, num_rows, _ROWS_AT_ONCE)]


def _distinct(columns: Sequence[IntArray], num_rows: int) -> tuple[IntArray, list[IntArray]]:
    """Group rows by their context: return each row's group, and the codes of the groups."""
    if not columns:
        return np.zeros(num_rows, dtype=np.int64), []
    order = np.lexsort(tuple(columns)[::-1])
    stacked = np.stack(columns)[:, order]
    new = np.ones(num_rows, dtype=np.bool_)
    new[1:] = np.any(stacked[:, 1:] != stacked[:, :-1], axis=0)
    index = np.empty(num_rows, dtype=np.int64)
    index[order] = np.cumsum(new) - 1
    return index, list(stacked[:, new])
