"""Which columns of text would mostly become `other`, since few rows share a value. For the owner: counted exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.pipeline.plan.planned_discovery import Discovery, planned_domains
from kamino.pipeline.settings import Settings
from kamino.privacy import Gate, Sensitivity
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.mechanisms.categories import least_count
from kamino.schema import Categorical, Schema
from kamino.schema.files.written_numbers import read_as_numbers

# A column whose cells are lost in more than this part is useless, as for what a run finds.
_HALF = 0.5


@dataclass(frozen=True, kw_only=True)
class MostlyOther:
    """A column most of whose cells would become `other`; `written` says how, if its cells look like numbers."""

    name: str
    share: float
    written: Mapping[str, object] | None


def mostly_other(table: pa.Table, schema: Schema, settings: Settings | None = None) -> tuple[MostlyOther, ...]:
    """The columns of categories without a domain most of whose cells have a value that a run would not find.

    A value is found if about so many rows have it as the noise asks for; by default for a run at epsilon 1.

    Guarantees:
        What it expects is what a run loses.  [test_what_would_become_other_is_told]
    """
    settings = Settings() if settings is None else settings
    names = [n for n in schema.missing_domains if isinstance(schema[n], Categorical) and n in table.column_names]
    if not names or not table.num_rows or not settings.budget.is_private:
        return ()
    least = _least(schema, names, table.num_rows, settings)
    shares = {name: _rare(table.column(name), least) for name in names}
    return tuple(
        MostlyOther(name=name, share=share, written=read_as_numbers(table.column(name)))
        for name, share in shares.items()
        if share > _HALF
    )


def _least(schema: Schema, names: list[str], num_rows: int, settings: Settings) -> int:
    """How many rows must have a value to be found, about."""
    found = Discovery(num_columns=len(schema.missing_domains), untyped=False, about_rows=num_rows)
    planned = next(each for each in planned_domains(schema, found, settings).releases if each.kind == "categories")
    gate = Gate(settings.budget, unit=settings.privacy_unit)
    deviation = gate.deviation(planned.noise_multiplier, gate.sensitivity(Sensitivity.of_histogram(len(names))))
    return least_count(scale_for(deviation), found.domains(settings).delta / len(names), settings.privacy_unit.max_rows)


def _rare(column: pa.ChunkedArray, least: int) -> float:
    """The part of the cells that are not null whose value fewer rows have."""
    known = column.drop_null()
    if not len(known):
        return 0.0
    counts = np.asarray(pc.value_counts(known).field("counts"))
    return float(counts[counts < least].sum() / len(known))
