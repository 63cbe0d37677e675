"""A report without the private table: the synthetic table beside the statistics that were released and paid for.

The reference is the fitted model, which holds noisy statistics and what follows from them. Comparing with it costs no
privacy, and shows what sampling and constraints changed. How far the model is from the private table it does not tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints import Constraints
from kamino.constraints.types import value_type
from kamino.evaluate.measure.columns import Kind, require_columns
from kamino.evaluate.measure.correlation import corrected_v
from kamino.evaluate.measure.histograms import NUM_BINS, TOP_VALUES, Bar, Histogram
from kamino.evaluate.measure.identifiers import declared_identifiers, identifier_rows
from kamino.evaluate.measure.marginals import Distance, MarginalDistances, Names, distance
from kamino.evaluate.measure.statistics import describe
from kamino.evaluate.measure.violations import count_synthetic
from kamino.evaluate.report.document import (
    Document,
    Track,
    correlation_rows,
    heading,
    histogram_row,
    pair_matrix,
    silent,
    statistics_row,
    summary_of,
)
from kamino.evaluate.report.verdict import add_statement
from kamino.model import CodeMap, MarginalModel, TupleModel
from kamino.schema import AttributeCodec, Codec, GridCodec
from kamino.schema.coding.joint_codes import even_starts, flatten_codes

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
# Of a normal error, 95 of 100 lie within so many deviations.
_DEVIATIONS = 1.96
# A pair with more cells than this is left out: the model would have to be summed out over all of them.
MAX_CELLS = 2_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelSide:
    """The model's probabilities and the synthetic rows, on the same bins."""

    model: TupleModel
    maps: dict[str, CodeMap]
    codes: dict[str, Integers]

    def distributions(self, names: Names) -> tuple[Floats, Floats]:
        """The joint distribution of bins, by the model and in the synthetic table."""
        sizes = [self.maps[name].bins for name in names]
        if isinstance(self.model, MarginalModel):
            expected = self.model.bin_marginal(names)
        else:
            expected = self.model.marginal(names)
        cell = flatten_codes([self.maps[name](self.codes[name]) for name in names], sizes)
        found = np.bincount(cell, minlength=math.prod(sizes)) / max(1, len(cell))
        return expected.reshape(sizes), found.reshape(sizes)


def public_report(
    model: TupleModel,
    codec: Codec,
    synthetic: pa.Table,
    constraints: Constraints = Constraints(),
    *,
    mark: str,
    certificate: Document | None = None,
    ledger: Document | None = None,
    track: Track = silent,
) -> Document:
    """Compare a synthetic table with the model it was drawn from. Reads no private table: as public as that model.

    `mark` says whether the model may be published, and so whether the report may: `PUBLIC`, or why not.
    Dates that the model tells by their distance from another are compared by that distance.
    With the `ledger` of the model, bars of released statistics carry the noise of their counts.

    Guarantees:
        Depends on the model, the schema, the constraints and the synthetic table only.
        [test_public_report_needs_no_table]
    """
    schema = codec.schema
    require_columns(codec.attributes, synthetic.column_names, of="the model")
    types = {name: _stored_type(attribute.arrow_type) for name, attribute in schema.attributes.items()}
    expected = {name: value_type(kind) for name, kind in types.items()}
    constraints = constraints.bind(expected)
    coded = codec.encode(synthetic.select([name for name in schema.names if name in synthetic.column_names]))
    identifiers = declared_identifiers(schema, constraints)
    names = [name for name in codec.attributes if name not in identifiers]
    maps = {name: _map(model, name, codec[name].size) for name in names}
    side = ModelSide(model=model, maps=maps, codes=dict(coded.columns))
    one = _compare(side, [(name,) for name in maps], 1)
    pairs = [p for p in combinations(maps, 2) if maps[p[0]].bins * maps[p[1]].bins <= MAX_CELLS]
    two, v_model, v_synthetic = _compare_pairs(side, pairs, track)
    document = {
        **heading(mark=mark, reference="model", rows=(max(1, round(model.num_rows)), synthetic.num_rows)),
        "identifiers": identifier_rows(identifiers, None, synthetic, types),
        "extra_columns": [name for name in synthetic.column_names if name not in types],
        "constraints": count_synthetic(synthetic, constraints, expected, track),
        "marginals": [summary_of(each) for each in (one, two) if each.by_attributes],
        # both need the values of the true table, where the model has only its bins
        "equal_mass": [],
        "ranks": None,
        "pairs": {"names": names, "distance": pair_matrix(names, [one, two])},
        "correlations": correlation_rows(names, v_model, v_synthetic),
        "columns": [_with_noise(_column(codec, name, side, synthetic, one), model, ledger) for name in names],
        "learning": None,
        "certificate": certificate,
    }
    return add_statement(document)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _map(model: TupleModel, name: str, size: int) -> CodeMap:
    return model.node(name).cells.map if isinstance(model, MarginalModel) else CodeMap.identity(size)


def _compare(side: ModelSide, marginals: Sequence[Names], order: int) -> MarginalDistances:
    found = {names: distance(*side.distributions(names)) for names in marginals}
    return MarginalDistances(order=order, total=len(found), by_attributes=found)


def _compare_pairs(
    side: ModelSide, pairs: Sequence[Names], track: Track
) -> tuple[MarginalDistances, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Distances of pairs, and Cramér's V of their bins by the model and in the synthetic table."""
    place = {name: i for i, name in enumerate(side.maps)}
    v_model, v_synthetic = np.eye(len(place)), np.eye(len(place))
    found: dict[Names, Distance] = {}
    for names in track("Comparing pairs of columns")(pairs):
        expected, drawn = side.distributions(names)
        found[names] = distance(expected, drawn)
        i, j = place[names[0]], place[names[1]]
        v_model[i, j] = v_model[j, i] = _cramers_v(expected, np.inf)
        v_synthetic[i, j] = v_synthetic[j, i] = _cramers_v(drawn, len(side.codes[names[0]]))
    total = len(place) * (len(place) - 1) // 2
    return MarginalDistances(order=2, total=total, by_attributes=found), v_model, v_synthetic


def _cramers_v(joint: Floats, rows: float) -> float:
    a, b = joint.sum(axis=1), joint.sum(axis=0)
    joint, a, b = joint[np.ix_(a > 0, b > 0)], a[a > 0], b[b > 0]
    phi = float((joint / a[:, None] * joint / b[None, :]).sum() - 1) if joint.size else 0.0
    return corrected_v(max(0.0, phi), len(a), len(b), rows) if rows > 1 else 0.0


def _column(table: Codec, name: str, side: ModelSide, synthetic: pa.Table, one: MarginalDistances) -> Document:
    codec, column = table[name], synthetic.column(name)
    plain = table.plain[name]
    outside = _outside(column, plain.decode(plain.encode(column)))
    kind = Kind.CATEGORY
    if isinstance(codec, GridCodec):
        kind = Kind.TIME if pa.types.is_temporal(codec.arrow_type) else Kind.NUMBER
    bars = _histogram(codec, _runs(side.model, codec), side.codes[codec.name], kind)
    return {
        "name": codec.name,
        "kind": kind.value,
        "type": {"true": str(codec.arrow_type), "synthetic": str(column.type)},
        "type_fits": True,
        "outside": outside,
        "new_nulls": bool(column.null_count and codec.null_code is None),
        "distance": one.by_attributes[(codec.name,)].total_variation,
        "true": None,
        "synthetic": statistics_row(describe(column)),
        "histogram": histogram_row(bars),
    }


def _with_noise(column: Document, model: TupleModel, ledger: Document | None) -> Document:
    """The column with the noise of its first released counts: of one cell, and of each bar as an error of its share.

    A bar of several cells has the noise of their sum. Later releases make errors smaller, and none makes them larger.
    """
    entries = [] if ledger is None else ledger["entries"]
    first = next((e for e in entries if e["kind"] == "counts" and e["attributes"] == [column["name"]]), None)
    if first is None or not first["sigma"]:
        return column
    histogram, rows, cells = column["histogram"], max(1.0, model.num_rows), math.prod(first["shape"])
    scale = histogram["scale"]
    each = 1 if histogram["kind"] == Kind.CATEGORY.value else max(1.0, cells / max(1, len(scale)))
    error = _DEVIATIONS * first["sigma"] * math.sqrt(each) / rows
    return {
        **column,
        "noise": {"sigma": first["sigma"], "cells": cells, "error": error},
        "histogram": {**histogram, "scale": [{**bar, "error": error} for bar in scale]},
    }


def _outside(column: pa.ChunkedArray, inside: pa.Array) -> int:
    """How many values changed when they were brought into the domain."""
    different = pc.not_equal(column.combine_chunks().cast(inside.type, safe=False), inside)
    return int(pc.sum(different).as_py() or 0)


def _runs(model: TupleModel, codec: AttributeCodec) -> tuple[Integers, Floats]:
    """The model's distribution of one attribute as runs of codes: where each starts, and its probability."""
    if not isinstance(model, MarginalModel):
        return np.arange(codec.size, dtype=np.int64), model.marginal((codec.name,))
    cells = model.node(codec.name).cells
    return cells.map.starts, model.bin_marginal((codec.name,))[cells.map.labels] * cells.share


def _histogram(codec: AttributeCodec, runs: tuple[Integers, Floats], codes: Integers, kind: Kind) -> Histogram:
    starts, mass = runs
    size = codec.num_values
    cumulative = np.concatenate([[0.0], np.cumsum(mass)])
    width = np.diff(starts, append=codec.size)

    def below(code: Integers) -> Floats:
        """The model's probability of a smaller code: inside a run, codes are equally likely.

        Codes are subtracted as whole numbers: beyond 2^53, two neighbours are one float.
        """
        run = np.searchsorted(starts, code, side="right") - 1
        return np.asarray(cumulative[run] + mass[run] * ((code - starts[run]) / width[run]), dtype=np.float64)

    rest = _rest_bars(codec, codes, below)
    if kind is Kind.CATEGORY:
        return _of_values(codec, np.diff(below(np.arange(size + 1))), codes[codes < size], len(codes), rest)
    edges = np.append(even_starts(size, num_bins) if (num_bins := min(size, NUM_BINS)) else [], size).astype(np.int64)
    found = np.histogram(codes[codes < size], bins=edges)[0] if size else np.zeros(0)
    # the last bin of np.histogram is closed, and no code reaches its upper edge
    labels = [_interval(codec, int(a), int(b) - 1) for a, b in pairwise(edges)]
    shares = np.diff(below(edges)), found / max(1, len(codes))
    return Histogram(kind=kind, scale=_bars(labels, *shares), rest=rest)


def _rest_bars(codec: AttributeCodec, codes: Integers, below: Callable[[Integers], Floats]) -> tuple[Bar, ...]:
    if codec.null_code is None:
        return ()
    place = np.array([codec.null_code, codec.null_code + 1])
    share = float(np.diff(below(place))[0])
    return (Bar(label="null", true=share, synthetic=float((codes == codec.null_code).mean()) if len(codes) else 0.0),)


def _of_values(codec: AttributeCodec, expected: Floats, codes: Integers, rows: int, rest: tuple[Bar, ...]) -> Histogram:
    found = np.bincount(codes, minlength=len(expected)) / max(1, rows)
    order = np.argsort(-expected, kind="stable")
    top = order if len(order) <= TOP_VALUES + 1 else order[:TOP_VALUES]
    left = order[len(top) :]
    bars = _bars([str(codec.value_of(int(code))) for code in top], expected[top], found[top])
    if len(left):
        label = f"{len(left):,} others"
        rest = (Bar(label=label, true=float(expected[left].sum()), synthetic=float(found[left].sum())), *rest)
    return Histogram(kind=Kind.CATEGORY, scale=bars, rest=rest)


def _bars(labels: Sequence[str], expected: Floats, found: Floats) -> tuple[Bar, ...]:
    return tuple(
        Bar(label=label, true=float(one), synthetic=float(two))
        for label, one, two in zip(labels, expected, found, strict=True)
    )


def _interval(codec: AttributeCodec, low: int, high: int) -> str:
    one, two = _text(codec.value_of(low)), _text(codec.value_of(high))
    return one if one == two else f"{one} to {two}"


def _text(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
