"""From a fitted model to a table: rows drawn, conditions met."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.errors import InputError, SamplingError
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.stages import Progress, Stage, silent
from kamino.sampling import Sampling, SamplingPlan, build_plan, draw_table
from kamino.sampling.comparing import Judge
from kamino.sampling.repair import repair
from kamino.sampling.steps.task import OnSweep
from kamino.schema import AttributeCodec, Codec, CodedTable, GridCodec

Codes = NDArray[np.int64]
Given = Mapping[str, Any]
# Rows that are drawn at most to find those that meet a condition; and after how many without any the search ends.
MAX_POOL = 4_000_000
MAX_POOL_WITHOUT = 250_000
# Of a domain with more values than this, a message lists the first.
_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Ways:
    """How a table is drawn from a fitted model; by default as the fit was asked to.

    `progress` is told how many attributes are drawn; `on_sweep` how the rates of soft constraints move. Without `check`
    violations are not counted while drawing: whoever draws counts them, and mends.
    """

    mode: Sampling | None = None
    sweeps: int | None = None
    progress: Progress = silent
    on_sweep: OnSweep | None = None
    check: bool = True


def draw(
    fitted: Fitted, num_rows: int, rng: np.random.Generator, *, given: Given | None = None, ways: Ways = Ways()
) -> pa.Table:
    """Draw a table of exactly `num_rows` rows, all of which meet `given`.

    Guarantees:
        Exactly as many rows as asked for.  [test_sample_has_the_asked_rows]
    """
    columns = draw_columns(fitted, num_rows, rng, given=given, ways=ways)
    return fitted.codec.decode(CodedTable(columns=columns, num_rows=num_rows))


def draw_columns(
    fitted: Fitted, num_rows: int, rng: np.random.Generator, *, given: Given | None = None, ways: Ways = Ways()
) -> dict[str, Codes]:
    """Draw the codes of a table of exactly `num_rows` rows, all of which meet `given`."""
    if num_rows < 0:
        raise InputError(f"found {num_rows} rows asked for; expected none or more")
    codec = fitted.codec
    wanted = {name: _codes_of(codec, name, value) for name, value in (given or {}).items()}
    return _pooled(fitted, num_rows, rng, ways, wanted) if wanted else draw_codes(fitted, num_rows, rng, ways)


def draw_codes(fitted: Fitted, num_rows: int, rng: np.random.Generator, ways: Ways = Ways()) -> dict[str, Codes]:
    """Draw the codes of a table by the plan of its constraints, along the model's sequence."""
    asked = fitted.settings
    return draw_table(
        _plan(fitted, num_rows),
        fitted.model,
        fitted.codec,
        num_rows,
        rng,
        sampling=asked.sampling if ways.mode is None else ways.mode,
        weights=fitted.soft.weights,
        targets=fitted.soft.targets,
        sweeps=asked.sweeps if ways.sweeps is None else ways.sweeps,
        candidates=asked.candidates,
        progress=lambda step, place, total: ways.progress(Stage.SAMPLE, place, total),
        on_sweep=ways.on_sweep,
        check=ways.check,
    )


def mend_columns(
    fitted: Fitted, columns: Mapping[str, Codes], num_rows: int, rng: np.random.Generator
) -> dict[str, Codes]:
    """Replace the rows of a drawn table that break hard constraints.

    Raises:
        SamplingError: no table of so many rows that keeps them was found.
    """
    return repair(Judge(fitted.codec), columns, _plan(fitted, num_rows).hard, num_rows, rng)


def _plan(fitted: Fitted, num_rows: int) -> SamplingPlan:
    return build_plan(
        fitted.codec,
        fitted.constraints,
        num_rows=num_rows,
        references=fitted.references,
        sequence=fitted.model.sequence,
    )


def _pooled(
    fitted: Fitted, num_rows: int, rng: np.random.Generator, ways: Ways, wanted: Mapping[str, Codes]
) -> dict[str, Codes]:
    """Draw one large table and keep rows that meet the condition: any part of a table keeps its constraints."""
    size, most = max(1_000, 4 * num_rows), MAX_POOL
    while True:
        try:
            # Rows are taken out of the pool by a condition that mending would not keep: the pool is checked itself.
            columns = draw_codes(fitted, size, rng, replace(ways, check=True))
        except SamplingError:
            # So many rows may break a key that fewer do not.
            if size <= num_rows:
                raise
            size = most = max(num_rows, size // 2)
            continue
        meets = np.ones(size, dtype=np.bool_)
        for name, codes in wanted.items():
            meets &= np.isin(columns[name], codes)
        rows = np.flatnonzero(meets)
        if len(rows) >= num_rows:
            chosen = np.sort(rng.choice(rows, size=num_rows, replace=False))
            return {name: codes[chosen] for name, codes in columns.items()}
        limit = most if len(rows) else min(most, MAX_POOL_WITHOUT)
        if size >= limit:
            raise SamplingError(_too_few(fitted.codec, wanted, len(rows), num_rows, size))
        growth = 2 * num_rows / max(len(rows), 1)
        size = int(min(limit, size * min(max(growth, 2), 64)))


def _codes_of(codec: Codec, name: str, value: Any) -> Codes:
    """The codes that a condition allows: of one value, or of several in a list."""
    values = allowed_values(value)
    attribute = codec[name]
    codes = [attribute.code_of(each) for each in values]
    outside = [_shown(each) for each, code in zip(values, codes, strict=True) if code is None]
    if not values or outside:
        raise InputError(
            f"found a condition on {name!r} with {', '.join(outside) or 'no value'}; expected {_domain(attribute)}"
        )
    return np.array(codes, dtype=np.int64)


def allowed_values(value: Any) -> list[Any]:
    """The values that a condition allows: those of a list, or the one it is."""
    return list(value) if isinstance(value, Collection) and not isinstance(value, str | bytes) else [value]


def _domain(attribute: AttributeCodec) -> str:
    """What an attribute may be, in words. Domains are public."""
    null = "" if attribute.null_code is None else ", or nothing"
    count = attribute.num_values
    if isinstance(attribute, GridCodec):
        return f"a value from {_shown(attribute.value_of(0))} to {_shown(attribute.value_of(count - 1))}{null}"
    shown = ", ".join(_shown(attribute.value_of(code)) for code in range(min(count, _SHOWN)))
    more = f" and {count - _SHOWN:,} more" if count > _SHOWN else ""
    return f"one of {shown}{more}{null}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _too_few(codec: Codec, wanted: Mapping[str, Codes], found: int, asked: int, size: int) -> str:
    """The message for a condition that too few of the drawn rows meet."""
    parts = [
        f"{name}={' or '.join(_shown(codec[name].value_of(int(code))) for code in codes[:_SHOWN])}"
        for name, codes in wanted.items()
    ]
    condition = " and ".join(parts) + (" together" if len(parts) > 1 else "")
    if not found:
        return f"none of {size:,} drawn rows had {condition}; relax a condition"
    return (
        f"found {found:,} of {asked:,} rows with {condition} among {size:,} drawn; ask for fewer or relax a condition"
    )
