"""Rows as features and labels for classifiers, the same for the true and the synthetic table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.evaluate.measure.columns import Kind, Numbers, kind_of, numbers, texts

Matrix = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]
# Values of a category that get a feature of their own where a model wants one for each; the rest share none.
ONE_HOT_VALUES = 30


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedColumn:
    """One column of one table: a number for each row for trees, scaled or one-hot features for the others."""

    name: str
    plain: Matrix
    wide: Matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """A table ready for training: its columns as features, and one binary label for each column that can have one."""

    columns: tuple[EncodedColumn, ...]
    labels: dict[str, Labels]

    def features(self, label: str, *, wide: bool) -> Matrix:
        """All columns but the one that is to be predicted."""
        used = [c.wide if wide else c.plain for c in self.columns if c.name != label]
        return np.hstack(used) if used else np.zeros((len(self.labels[label]), 1))


def encode_pair(true: pa.Table, synthetic: pa.Table) -> tuple[Rows, Rows]:
    """Both tables as features and labels. Scales, codes and thresholds come from the true table.

    A number's label is whether it is above the median; a category's whether it is the most frequent value, or, with
    two values, the rarer one. A column whose label would be the same in every true row has none.
    """
    encoded = [_encode(name, true.column(name), synthetic.column(name)) for name in true.column_names]
    sides = []
    for side in (0, 1):
        columns = tuple(columns[side] for columns, _ in encoded)
        labels = {c.name: both[side] for c, (_, both) in zip(columns, encoded, strict=True) if both is not None}
        sides.append(Rows(columns=columns, labels=labels))
    return sides[0], sides[1]


Pair = tuple[EncodedColumn, EncodedColumn]


def _encode(name: str, true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> tuple[Pair, tuple[Labels, Labels] | None]:
    kind = kind_of(true.type)
    if kind is not Kind.CATEGORY and kind_of(synthetic.type) is kind:
        one, two = numbers(true), numbers(synthetic)
        return _number_features(name, one, two), _number_labels(one, two)
    ranked = _ranked(texts(true))
    one_codes, two_codes = _codes(texts(true), ranked), _codes(texts(synthetic), ranked)
    pair = _category_column(name, one_codes, len(ranked)), _category_column(name, two_codes, len(ranked))
    return pair, _category_labels(one_codes, two_codes, len(ranked))


def _number_features(name: str, true: Numbers, synthetic: Numbers) -> Pair:
    finite = true[np.isfinite(true)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    spread = (float(finite.std()) if len(finite) else 0.0) or 1.0

    def column(values: Numbers) -> EncodedColumn:
        filled = np.where(np.isfinite(values), values, middle)
        missing = (~np.isfinite(values)).astype(np.float64)
        # far outliers of a synthetic table would blow up the models that work with scaled numbers
        scaled = np.clip((filled - middle) / spread, -50, 50)
        return EncodedColumn(name=name, plain=filled[:, None], wide=np.column_stack([scaled, missing]))

    return column(true), column(synthetic)


def _number_labels(true: Numbers, synthetic: Numbers) -> tuple[Labels, Labels] | None:
    finite = true[np.isfinite(true)]
    if not len(finite):
        return None
    middle = float(np.median(finite))
    # where half of the rows or more hold the largest value, nothing is above the median
    if (true > middle).any():
        return true > middle, synthetic > middle
    return _varied(true >= middle, synthetic >= middle)


def _ranked(column: pa.ChunkedArray) -> pa.Array:
    """The values, the most frequent first."""
    counts = pc.value_counts(column.drop_null())
    frequency, values = counts.field("counts").to_numpy(zero_copy_only=False), counts.field("values")
    order = np.lexsort((np.array(values.to_pylist(), dtype=object), -frequency)) if len(values) else np.empty(0, int)
    return values.take(pa.array(order, pa.int64()))


def _codes(column: pa.ChunkedArray, ranked: pa.Array) -> npt.NDArray[np.int64]:
    """The rank of each value; those that the true table lacks, and null, come last."""
    found = pc.index_in(column, value_set=ranked, skip_nulls=True)
    return np.asarray(found.combine_chunks().fill_null(len(ranked))).astype(np.int64)


def _category_column(name: str, codes: npt.NDArray[np.int64], size: int) -> EncodedColumn:
    width = min(size, ONE_HOT_VALUES)
    wide = (codes[:, None] == np.arange(width)[None, :]).astype(np.float64)
    return EncodedColumn(name=name, plain=codes[:, None].astype(np.float64), wide=wide)


def _category_labels(
    true: npt.NDArray[np.int64], synthetic: npt.NDArray[np.int64], size: int
) -> tuple[Labels, Labels] | None:
    wanted = 1 if size == 2 else 0
    return _varied(true == wanted, synthetic == wanted)


def _varied(true: Labels, synthetic: Labels) -> tuple[Labels, Labels] | None:
    return (true, synthetic) if true.any() and not true.all() else None
