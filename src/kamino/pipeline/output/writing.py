"""The one way out: a table is drawn, written, read back, counted and certified, and then gets its name."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint, print_constraint
from kamino.errors import SamplingError
from kamino.io.atomic import StagedFile, place_together, staged, target_of, telling_what_failed
from kamino.io.write import check_spreadsheet_safe, check_table_path, stage_parts, stage_stream
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.certificate import certificate_of
from kamino.pipeline.output.conditions import Condition, Given, read_condition
from kamino.pipeline.output.counted import Counted, count_parts, count_table
from kamino.pipeline.output.drawn_table import Ways, draw_columns, mend_columns
from kamino.pipeline.output.in_blocks import draw_in_blocks, in_blocks
from kamino.pipeline.stages import Stage
from kamino.sampling import OnSweep
from kamino.sampling.soft.sweeps import SweepLog
from kamino.schema import Codec, CodedTable
from kamino.schema.keys import check_keys

# Codes of a column in the smallest type that holds them.
AnyCodes: TypeAlias = npt.NDArray[np.integer[Any]]

_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True, kw_only=True)
class WrittenTable:
    """A table that was written, and what is certified of it. Every field may be published.

    `violations` are counts by the text of each constraint, in the file as it reads back; `sha256` is of its bytes.
    """

    path: Path
    certificate_path: Path
    rows: int
    sha256: str
    violations: Mapping[str, int]
    certificate: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.rows:,} rows in {self.path}, certificate in {self.certificate_path}"


def certificate_path(table: str | os.PathLike[str]) -> Path:
    """Where the certificate of a table goes."""
    path = Path(table)
    return path.with_name(f"{path.name}.certificate.json")


def certificate_paths(table: Path) -> tuple[Path, ...]:
    """All places of a table's certificate: beside its name and, where that is a link, beside the file as well."""
    paths = (certificate_path(table), certificate_path(target_of(table)))
    return tuple({target_of(path): path for path in reversed(paths)}.values())[::-1]


def write_drawn(
    fitted: Fitted,
    path: str | os.PathLike[str],
    num_rows: int,
    rng: np.random.Generator,
    *,
    given: Given | None = None,
    ways: Ways = Ways(),
    sign: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None,
) -> WrittenTable:
    """Draw a table and write it with its certificate; an old table and its certificate are replaced.

    `sign` adds a signature to the certificate.

    Raises:
        InputError: the place cannot be written; what was there is untouched.
        SamplingError: no table that keeps the hard constraints was found; nothing is written.

    Guarantees:
        What is certified was counted in the bytes that were written, once.  [test_violations_are_counted_once]
        A table is never seen without its own certificate, whenever the process dies.
        [test_a_kill_at_any_step_leaves_no_table_beside_another_certificate]
        What breaks a hard constraint is not written, unless constraints were to be ignored.
        [test_a_table_that_breaks_a_hard_constraint_is_not_written]
    """
    output = Path(path)
    check_table_path(output)
    if ways.spreadsheet_safe:
        check_spreadsheet_safe(output)
    certificates = certificate_paths(output)
    sweeps = SweepLog()
    ways.progress(Stage.SAMPLE)
    logged = replace(ways, on_sweep=_both(ways, sweeps), check=False)
    by_block = in_blocks(fitted, num_rows, given=given, ways=ways)
    columns = {} if by_block else _compact(fitted, draw_columns(fitted, num_rows, rng, given=given, ways=logged))
    with ExitStack() as stack:
        table = stack.enter_context(staged(output))
        vouchers = [stack.enter_context(staged(each)) for each in certificates]
        stack.enter_context(telling_what_failed(output))
        condition, _ = read_condition(Codec(fitted.schema), given).split(fitted.differences)
        if by_block:
            counts = _write_blocks(fitted, num_rows, table, rng, logged)
        else:
            counts = _write_clean(fitted, columns, num_rows, table, rng, ways, condition)
        digest = _sha256(table.temporary)
        certificate = certificate_of(
            fitted,
            rows=num_rows,
            violations=counts.violations,
            following=counts.following,
            sha256=digest,
            sweeps=sweeps,
            given=given,
        )
        if ways.spreadsheet_safe:
            certificate["spreadsheet_safe"] = True
        if sign is not None:
            certificate = sign(certificate)
        for voucher in vouchers:
            with voucher.open() as handle:
                handle.write(json.dumps(certificate, indent=2, ensure_ascii=False).encode())
        place_together(table, vouchers)
    return WrittenTable(
        path=output,
        certificate_path=certificates[0],
        rows=num_rows,
        sha256=digest,
        violations=MappingProxyType({print_constraint(each): count for each, count in counts.violations.items()}),
        certificate=certificate,
    )


def _write_blocks(fitted: Fitted, num_rows: int, file: StagedFile, rng: np.random.Generator, ways: Ways) -> Counted:
    """Draw and write block after block, and count what the file breaks as it reads back, part by part.

    Guarantees:
        Memory does not grow with the rows.  [test_memory_of_blocks_does_not_grow]
    """
    check_keys(fitted.schema.attributes.values(), num_rows)
    written = stage_stream(_block_parts(fitted, num_rows, rng, ways), file, spreadsheet_safe=ways.spreadsheet_safe)
    ways.progress(Stage.CHECK)
    counts = count_parts(fitted, written)
    if counts.broken:
        raise _broken(counts)
    return counts


def _block_parts(fitted: Fitted, num_rows: int, rng: np.random.Generator, ways: Ways) -> Iterator[pa.Table]:
    """The values of all blocks, a part of a block at a time."""
    start = 0
    for block in draw_in_blocks(fitted, num_rows, rng, ways):
        rows = len(next(iter(block.values())))
        yield from _parts(fitted, block, rows, first=start)
        start += rows


def _broken(counts: Counted) -> SamplingError:
    named = "; ".join(print_constraint(each) for each in counts.broken)
    return SamplingError(
        f"found a drawn table that breaks {named}; nothing was written. Ask for fewer rows, widen the domains, "
        "or make a constraint soft"
    )


def _write_clean(
    fitted: Fitted,
    columns: Mapping[str, AnyCodes],
    num_rows: int,
    file: StagedFile,
    rng: np.random.Generator,
    ways: Ways,
    condition: Condition,
) -> Counted:
    """Write the rows and count what they break as they read back; rows that break hard constraints are mended once,
    and so are rows that do not meet the condition.
    """
    mode = fitted.settings.sampling if ways.mode is None else ways.mode
    if not condition.is_met(columns) and mode.keeps_hard_constraints:
        columns = mend_columns(fitted, columns, num_rows, rng, condition)
    counts = _write_and_count(fitted, columns, num_rows, file, ways)
    if not mode.keeps_hard_constraints or not counts.broken:
        return counts
    mended = mend_columns(fitted, columns, num_rows, rng, condition)
    counts = _write_and_count(fitted, mended, num_rows, file, ways)
    if counts.broken:
        raise _broken(counts)
    return counts


def _write_and_count(
    fitted: Fitted, columns: Mapping[str, AnyCodes], num_rows: int, file: StagedFile, ways: Ways
) -> Counted:
    ways.progress(Stage.WRITE)
    check_keys(fitted.schema.attributes.values(), num_rows)
    counted = sorted({name for constraint in fitted.promised for name in constraint.attributes})
    written: pa.Table = stage_parts(
        _parts(fitted, columns, num_rows), file, names=counted, spreadsheet_safe=ways.spreadsheet_safe
    )
    ways.progress(Stage.CHECK)
    return count_table(fitted, written)


def _parts(fitted: Fitted, columns: Mapping[str, AnyCodes], num_rows: int, *, first: int = 0) -> Iterator[pa.Table]:
    """The values of so many rows at a time: the whole table is never held as values. `first` rows came before."""
    for start in range(0, max(num_rows, 1), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, num_rows)
        part = {name: codes[start:stop].astype(np.int64) for name, codes in columns.items()}
        yield fitted.codec.decode(CodedTable(columns=part, num_rows=stop - start), first_key=first + start + 1)


def _compact(fitted: Fitted, columns: Mapping[str, IntArray]) -> dict[str, AnyCodes]:
    """The same codes in the smallest type that holds them."""
    sizes = fitted.codec.sizes
    return {name: codes.astype(np.min_scalar_type(max(sizes[name] - 1, 0))) for name, codes in columns.items()}


def _both(ways: Ways, log: SweepLog) -> OnSweep:
    """Tell the log of the certificate and whoever else wants to know how rates move."""

    def tell(attribute: str, sweep: int, rates: Mapping[DenialConstraint, float]) -> None:
        log(attribute, sweep, rates)
        if ways.on_sweep is not None:
            ways.on_sweep(attribute, sweep, rates)

    return tell


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
