"""A report as plain data: every number that a page or a terminal shows, and nothing that they do not need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import kamino
from kamino.constraints import Constraints
from kamino.evaluate.learn.learning import Learning, attributes_of, models_of
from kamino.evaluate.measure.columns import Kind, align, kind_of, type_fits
from kamino.evaluate.measure.correlation import correlate
from kamino.evaluate.measure.histograms import Histogram, histogram
from kamino.evaluate.measure.identifiers import compared_columns, find_identifiers, identifier_rows
from kamino.evaluate.measure.marginals import MarginalDistances, compare_marginals, halve_rows, split_halves
from kamino.evaluate.measure.metrics import BinnedPair, bin_tables, bin_tables_by_mass
from kamino.evaluate.measure.rank_correlation import compare_ranks
from kamino.evaluate.measure.shapes_of_numbers import compare_shapes
from kamino.evaluate.measure.statistics import ColumnStatistics, describe, find_faults
from kamino.evaluate.measure.violations import count_both
from kamino.evaluate.report.verdict import add_verdict
from kamino.schema import Schema

FORMAT = "kamino-report-1"
INTERNAL = "internal: computed from the private table"
PUBLIC = "public: computed from released statistics only"
# Three-way marginals grow with the cube of the columns; beyond this many, an even choice of them is compared.
MAX_TRIPLES = 1_000

Document: TypeAlias = dict[str, Any]
Track: TypeAlias = Callable[[str], Callable[[Iterable[Any]], Iterable[Any]]]


def silent(label: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """No progress bar."""
    del label
    return iter


def internal_report(
    true: pa.Table,
    synthetic: pa.Table,
    constraints: Constraints = Constraints(),
    *,
    learning: Learning | None = None,
    certificate: Document | None = None,
    schema: Schema | None = None,
    track: Track = silent,
) -> Document:
    """Compare a synthetic table with the true one. For the owner of the true table: nothing here is private.

    `schema` is that of the synthetic table, if it is known: it tells which ids were made up.

    >>> table = pa.table({"zip": ["1", "1"], "city": ["A", "A"]})
    >>> report = internal_report(table, table, Constraints.parse("zip -> city"))
    >>> report["verdict"]["level"], report["marginals"][1]["mean"], report["mark"]
    ('good', 0.0, 'internal: computed from the private table')

    Guarantees:
        Holds only what JSON can hold, and no number that is not finite.  [test_document_is_plain_json]
        Holds no value of an identifier.  [test_identifiers_are_left_out_and_none_is_listed]
    """
    extra = [name for name in synthetic.column_names if name not in true.column_names]
    synthetic = align(true, synthetic)
    identifiers = find_identifiers(true, constraints, schema)
    names = compared_columns(true, identifiers)
    one, two = true.select(names), synthetic.select(names)
    pair = bin_tables(one, two)
    orders = [
        compare_marginals(pair, order=1),
        compare_marginals(pair, order=2, progress=track("Comparing pairs of columns")),
        compare_marginals(pair, order=3, limit=MAX_TRIPLES, progress=track("Comparing triples of columns")),
    ]
    document: Document = {
        **heading(mark=INTERNAL, reference="true", rows=(true.num_rows, synthetic.num_rows)),
        "identifiers": identifier_rows(identifiers, true, synthetic, {f.name: f.type for f in true.schema}),
        "extra_columns": extra,
        "constraints": count_both(true, synthetic, constraints, track),
        "marginals": _marginals(pair, orders, track),
        "equal_mass": _equal_mass(one, two, track),
        "ranks": _ranks(one, two, track),
        "pairs": {"names": names, "distance": pair_matrix(names, orders)},
        "correlations": _correlations(one, two, track),
        "columns": [_column(name, one, two, orders[0]) for name in names],
        "learning": None if learning is None else _learning(learning),
        "certificate": certificate,
    }
    return add_verdict(document)


def heading(*, mark: str, reference: str, rows: tuple[int, int]) -> Document:
    """What a report is of, and its mark. The rows of a model's table are not known: they were measured, with noise."""
    internal = mark == INTERNAL
    return {
        "format": FORMAT,
        "kamino": kamino.__version__,
        "internal": internal,
        "mark": mark,
        "reference": reference,
        "rows": {"true" if internal else "measured": rows[0], "synthetic": rows[1]},
    }


def _marginals(pair: BinnedPair, orders: Sequence[MarginalDistances], track: Track) -> list[Document]:
    """The distances of each order; for the first two beside those between two random halves of the true table."""
    halves = split_halves(pair)
    rows = []
    for found in (each for each in orders if each.by_attributes):
        between = None
        if found.order <= 2:
            between = compare_marginals(halves, order=found.order, progress=track("Comparing halves of the true table"))
        rows.append(summary_of(found, halves=None if between is None else between.mean))
    return rows


def _equal_mass(true: pa.Table, synthetic: pa.Table, track: Track) -> list[Document]:
    """The distances of one and two columns, numbers in bins of equal mass."""
    pair = bin_tables_by_mass(true, synthetic)
    label = "Comparing pairs of columns by mass"
    return _marginals(pair, [compare_marginals(pair, order=order, progress=track(label)) for order in (1, 2)], track)


def _ranks(true: pa.Table, synthetic: pa.Table, track: Track) -> Document | None:
    """Rank correlations of ordered columns; None where there are not two of them."""
    found = compare_ranks(true, synthetic, progress=track("Correlating ranks"))
    if len(found.names) < 2:
        return None
    one, two = (true.take(pa.array(rows)) for rows in halve_rows(true.num_rows))
    between = compare_ranks(one, two, names=found.names).mean_error
    return {**correlation_rows(found.names, found.true, found.synthetic), "halves": between}


def summary_of(found: MarginalDistances, *, halves: float | None = None) -> Document:
    """The distances of one order; `halves` is how far chance alone drives two halves of the true table apart."""
    return {
        "order": found.order,
        "total": found.total,
        "measured": len(found.by_attributes),
        "mean": found.mean,
        "max": found.maximum,
        "halves": halves,
        "mean_max_cell": found.mean_max_cell,
        "max_cell": found.max_cell,
        "worst": list(found.worst),
    }


def pair_matrix(names: Sequence[str], orders: Sequence[MarginalDistances]) -> list[list[float | None]]:
    """Two-way distances of all pairs, with the one-way distances on the diagonal."""
    found = {k: d.total_variation for each in orders[:2] for k, d in each.by_attributes.items()}
    place = {name: i for i, name in enumerate(names)}
    matrix: list[list[float | None]] = [[None] * len(names) for _ in names]
    for attributes, value in found.items():
        i, j = place[attributes[0]], place[attributes[-1]]
        matrix[i][j] = matrix[j][i] = value
    return matrix


def _correlations(true: pa.Table, synthetic: pa.Table, track: Track) -> Document:
    kinds = {name: _common_kind(true.column(name), synthetic.column(name)) for name in true.column_names}
    one = correlate(true, kinds=kinds, progress=track("Correlating columns, true")).values
    two = correlate(synthetic, kinds=kinds, progress=track("Correlating columns, synthetic")).values
    return correlation_rows(true.column_names, one, two)


def correlation_rows(names: Sequence[str], one: npt.NDArray[np.float64], two: npt.NDArray[np.float64]) -> Document:
    """Correlations of both sides, their difference, and its mean absolute size over pairs."""
    gap = two - one
    off = np.abs(gap[np.triu_indices(len(names), 1)])
    return {
        "names": list(names),
        "true": one.tolist(),
        "synthetic": two.tolist(),
        "difference": gap.tolist(),
        "mean_difference": float(off.mean()) if len(off) else 0.0,
        "max_difference": float(off.max(initial=0.0)),
    }


def _common_kind(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> Kind:
    return kind_of(true.type) if type_fits(true.type, synthetic.type) else Kind.CATEGORY


def _column(name: str, true: pa.Table, synthetic: pa.Table, distances: MarginalDistances) -> Document:
    one, two = true.column(name), synthetic.column(name)
    faults = find_faults(one, two)
    return {
        "name": name,
        "kind": kind_of(one.type).value,
        "type": {"true": str(one.type), "synthetic": str(two.type)},
        "type_fits": faults.type_fits,
        "outside": faults.outside,
        "new_nulls": faults.new_nulls,
        "distance": distances.by_attributes[(name,)].total_variation,
        "true": statistics_row(describe(one)),
        "synthetic": statistics_row(describe(two)),
        "shape": _shape(one, two),
        "histogram": histogram_row(histogram(one, two)),
    }


def _shape(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> Document | None:
    """Deviation, tails and invented values of a number, beside those of two halves of the true table."""
    found = compare_shapes(true, synthetic)
    return None if found is None else {**asdict(found.found), "halves": asdict(found.halves)}


def statistics_row(found: ColumnStatistics) -> Document:
    """One table's statistics of one column."""
    low, first, median, third, high = found.quantiles or (None,) * 5
    return {
        "nulls": found.nulls,
        "null_share": found.null_share,
        "distinct": found.distinct,
        "mean": found.mean,
        "std": found.std,
        "min": low,
        "q1": first,
        "median": median,
        "q3": third,
        "max": high,
    }


def histogram_row(found: Histogram) -> Document:
    """Bars as plain data."""
    return {
        "kind": found.kind.value,
        "scale": [asdict(bar) for bar in found.scale],
        "rest": [asdict(bar) for bar in found.rest],
    }


def _learning(learning: Learning) -> Document:
    def row(**which: str) -> Document:
        return {
            measure: {side: learning.mean(measure, side, **which) for side in ("true", "synthetic")}
            for measure in ("accuracy", "f1")
        }

    return {
        "train_rows": learning.train_rows,
        "test_rows": learning.test_rows,
        **row(),
        "attributes": [{"name": name, **row(attribute=name)} for name in attributes_of(learning)],
        "models": [{"name": name, **row(model=name)} for name in models_of(learning)],
    }
