"""Which columns of text would mostly become `other`, since few rows share a value. For the owner: counted exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from kamino.pipeline.plan.planned_discovery import Discovery, planned_domains
from kamino.pipeline.settings import Settings
from kamino.privacy import Gate, Sensitivity
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.mechanisms.categories import least_count
from kamino.schema import Categorical, Schema
from kamino.schema.files.written_numbers import count_texts, read_as_numbers

# A column whose cells are lost in more than this part is useless, as for what a run finds.
_HALF = 0.5


@dataclass(frozen=True, kw_only=True)
class MostlyOther:
    """A column most of whose cells would become `other`; `written` says how, if its cells look like numbers."""

    name: str
    share: float
    written: Mapping[str, object] | None


def mostly_other(
    tables: Iterable[pa.Table], schema: Schema, settings: Settings | None = None
) -> tuple[MostlyOther, ...]:
    """The columns of categories without a domain most of whose cells have a value that a run would not find.

    `tables` are the table, or the parts of one. A value is found if about so many rows have it as the noise asks for;
    by default for a run at epsilon 1.

    Guarantees:
        What it expects is what a run loses.  [test_what_would_become_other_is_told]
    """
    settings = Settings() if settings is None else settings
    names = [name for name in schema.missing_domains if isinstance(schema[name], Categorical)]
    if not names or not settings.budget.is_private:
        return ()
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    num_rows = 0
    for part in tables:
        num_rows += part.num_rows
        for name in names:
            counts[name].update(count_texts(part.column(name)))
    if not num_rows:
        return ()
    least = _least(schema, names, num_rows, settings)
    shares = {name: _rare(each, least) for name, each in counts.items()}
    return tuple(
        MostlyOther(name=name, share=share, written=read_as_numbers(counts[name]))
        for name, share in shares.items()
        if share > _HALF
    )


def _least(schema: Schema, names: list[str], num_rows: int, settings: Settings) -> int:
    """How many rows must have a value to be found, about."""
    found = Discovery(num_columns=len(schema.missing_domains), untyped=False, about_rows=num_rows)
    planned = next(each for each in planned_domains(schema, found, settings).releases if each.kind == "categories")
    gate = Gate(settings.budget, unit=settings.privacy_unit)
    assert planned.noise_multiplier is not None, "what finds categories has noise"
    deviation = gate.deviation(planned.noise_multiplier, gate.sensitivity(Sensitivity.of_histogram(len(names))))
    return least_count(scale_for(deviation), found.domains(settings).delta / len(names), settings.privacy_unit.max_rows)


def _rare(counts: Mapping[str, int], least: int) -> float:
    """The part of the cells that are not null whose value fewer rows have."""
    total = sum(counts.values())
    return sum(count for count in counts.values() if count < least) / total if total else 0.0
