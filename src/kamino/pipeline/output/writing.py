"""The one way out: a table is drawn, written, read back, counted and certified, and then gets its name."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.constraints import DenialConstraint, print_constraint
from kamino.errors import InputError, SamplingError
from kamino.io.atomic import StagedFile, moved_aside, place_together, staged, target_of, telling_what_failed
from kamino.io.databases.catalogue import Catalogue
from kamino.io.databases.row_digest import digest_of_parts, digest_of_rows
from kamino.io.databases.storing import MADE_BY, DatabaseTable, StagedTable, staged_table
from kamino.io.normalise import normalise_table
from kamino.io.write import check_spreadsheet_safe, check_table_path, stage_parts, stage_stream
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.block_workers import compact
from kamino.pipeline.output.certificate import certificate_of
from kamino.pipeline.output.conditions import Condition, Given, read_condition
from kamino.pipeline.output.counted import Counted, count_parts, count_table
from kamino.pipeline.output.drawn_table import Ways, draw_columns, mend_columns
from kamino.pipeline.output.in_blocks import draw_in_blocks, in_blocks, takes_blocks
from kamino.pipeline.stages import Stage
from kamino.sampling import OnSweep
from kamino.sampling.soft.sweeps import SweepLog
from kamino.schema import Codec, CodedTable, Date, Datetime, Key, Schema
from kamino.schema.files.written_dates import written_dates
from kamino.schema.keys import check_keys
from kamino.schema.table_parts import Parts

# Codes of a column in the smallest type that holds them.
AnyCodes: TypeAlias = npt.NDArray[np.integer[Any]]

_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True, kw_only=True)
class WrittenTable:
    """A table that was written, and what is certified of it. Every field may be published.

    `violations` are counts by the text of each constraint, in the file as it reads back; `sha256` is of its bytes, or,
    in a database, of its rows. `place` is where it is: a path, or the address of a table.
    """

    path: Path
    certificate_path: Path
    rows: int
    sha256: str
    place: str
    violations: Mapping[str, int]
    certificate: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.rows:,} rows in {self.place}, certificate in {self.certificate_path}"


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
    catalogue: Catalogue | None = None,
) -> WrittenTable:
    """Draw a table and write it with its certificate; an old table and its certificate are replaced.

    `path` may name a table of a database, whose columns then have the types of `catalogue`, where that is in the same
    language. `sign` adds a signature to the certificate.

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
    drawing = _Drawing(fitted=fitted, num_rows=num_rows, rng=rng, given=given, ways=ways, sign=sign or dict)
    target = DatabaseTable.of(path)
    if target is not None:
        return _write_to_database(drawing, target, catalogue)
    output = Path(path)
    check_table_path(output)
    if ways.spreadsheet_safe:
        check_spreadsheet_safe(output)
    certificates = certificate_paths(output)
    by_block = takes_blocks(output) and in_blocks(fitted, num_rows, given=given, ways=ways)
    sweeps, columns = (SweepLog(), {}) if by_block else drawing.draw()
    with ExitStack() as stack:
        table = stack.enter_context(staged(output))
        vouchers = [stack.enter_context(staged(each)) for each in certificates]
        stack.enter_context(telling_what_failed(output))
        if by_block:
            counts = _write_blocks(drawing, _blocks_into_file(table, fitted.schema, ways))
        else:
            counts = drawing.write_clean(columns, _into_file(table, fitted.schema, ways))
        digest = _sha256(table.temporary)
        certificate = drawing.certify(
            counts, sweeps, digest, {"spreadsheet_safe": True} if ways.spreadsheet_safe else {}
        )
        for voucher in vouchers:
            _write_json(certificate, voucher)
        place_together(table, vouchers)
    return drawing.written(str(path), output, certificates[0], counts, certificate)


def _write_to_database(drawing: _Drawing, target: DatabaseTable, catalogue: Catalogue | None) -> WrittenTable:
    """Draw a table into a database, in one transaction; its certificate goes into a file.

    A certificate of an older table of this name is moved aside before the new table gets its name, and the new one gets
    its own afterwards: a table never stands beside the certificate of another.

    Guarantees:
        A failure leaves the database and the certificate as they were.  [test_a_failing_write_leaves_the_database]
    """
    if drawing.ways.spreadsheet_safe:
        raise InputError(f"{target}: found spreadsheet-safe for a database; only cells of CSV become formulas")
    schema = drawing.fitted.schema
    kinds = normalise_table(next(_parts(drawing.fitted, drawing.none(), 0)), where=str(target)).schema
    by_block = in_blocks(drawing.fitted, drawing.num_rows, given=drawing.given, ways=drawing.ways)
    sweeps, columns = (SweepLog(), {}) if by_block else drawing.draw()
    with staged(target.certificate) as voucher, telling_what_failed(target.certificate):
        with stage_in_database(target, kinds, schema, catalogue) as table:
            if by_block:
                counts = _write_blocks(drawing, _blocks_into_database(table))
                digest = digest_of_parts(table)
            else:
                counts = drawing.write_clean(columns, _into_database(table))
                digest = digest_of_rows(table.read())
            certificate = drawing.certify(counts, sweeps, digest, {"table": str(target)})
            _write_json(certificate, voucher)
            with moved_aside(voucher):
                table.place(f"{MADE_BY}. sha256 of its rows: {digest}")
        place_together(voucher, ())
    return drawing.written(str(target), Path(target.name), target.certificate, counts, certificate)


def stage_in_database(
    target: DatabaseTable, columns: pa.Schema, schema: Schema, catalogue: Catalogue | None
) -> AbstractContextManager[StagedTable]:
    """Prepare a table of these columns in a database, with what the schema says of nulls and of keys.

    Guarantees:
        Ids that repeat are no key of the table.  [test_ids_that_repeat_are_no_primary_key]
    """
    strict = [name for name, each in schema.attributes.items() if not each.nullable]
    keys = [name for name, each in schema.attributes.items() if isinstance(each, Key) and not each.repeats]
    return staged_table(target, columns, catalogue=catalogue, strict=strict, keys=keys)


def _write_json(certificate: Mapping[str, Any], file: StagedFile) -> None:
    with file.open() as handle:
        handle.write(json.dumps(certificate, indent=2, ensure_ascii=False).encode())


# Writes parts of a table, and gives the columns that are named as they read back.
Put: TypeAlias = Callable[[Iterator[pa.Table], list[str]], pa.Table]


def _into_file(file: StagedFile, schema: Schema, ways: Ways) -> Put:
    safe, decimals, dates = ways.spreadsheet_safe, time_decimals(schema), written_dates(schema)
    return lambda parts, names: stage_parts(
        parts, file, names=names, spreadsheet_safe=safe, decimals=decimals, dates=dates
    )


def _into_database(table: StagedTable) -> Put:
    def put(parts: Iterator[pa.Table], names: list[str]) -> pa.Table:
        table.write(normalise_table(part, where="drawn table") for part in parts)
        return table.read().select(names)

    return put


@dataclass(frozen=True, kw_only=True)
class _Drawing:
    """What is drawn, and how."""

    fitted: Fitted
    num_rows: int
    rng: np.random.Generator
    given: Given | None
    ways: Ways
    sign: Callable[[Mapping[str, Any]], dict[str, Any]]

    def draw(self) -> tuple[SweepLog, dict[str, AnyCodes]]:
        sweeps = SweepLog()
        self.ways.progress(Stage.SAMPLE)
        unchecked = replace(self.ways, on_sweep=_both(self.ways, sweeps), check=False)
        drawn = draw_columns(self.fitted, self.num_rows, self.rng, given=self.given, ways=unchecked)
        return sweeps, compact(self.fitted, drawn)

    def none(self) -> dict[str, AnyCodes]:
        """No row of all columns."""
        return {
            name: np.zeros(0, dtype=np.int64) for name in (*self.fitted.codec.groups, *self.fitted.codec.attributes)
        }

    def write_clean(self, columns: Mapping[str, AnyCodes], put: Put) -> Counted:
        condition, _ = read_condition(Codec(self.fitted.schema), self.given).split(self.fitted.differences)
        return _write_clean(self.fitted, columns, self.num_rows, put, self.rng, self.ways, condition)

    def certify(self, counts: Counted, sweeps: SweepLog, digest: str, more: Mapping[str, Any]) -> dict[str, Any]:
        made = certificate_of(
            self.fitted,
            rows=self.num_rows,
            violations=counts.violations,
            following=counts.following,
            sha256=digest,
            sweeps=sweeps,
            given=self.given,
        )
        return self.sign({**made, **more})

    def written(
        self, place: str, path: Path, certificate_path: Path, counts: Counted, certificate: Mapping[str, Any]
    ) -> WrittenTable:
        violations = {print_constraint(each): count for each, count in counts.violations.items()}
        return WrittenTable(
            place=place,
            path=path,
            certificate_path=certificate_path,
            rows=self.num_rows,
            sha256=certificate["sha256"],
            violations=MappingProxyType(violations),
            certificate=certificate,
        )


# Writes parts of a table, and gives what reads them back in parts.
PutParts: TypeAlias = Callable[[Iterator[pa.Table]], Parts]


def _blocks_into_file(file: StagedFile, schema: Schema, ways: Ways) -> PutParts:
    safe, decimals, dates = ways.spreadsheet_safe, time_decimals(schema), written_dates(schema)
    return lambda parts: stage_stream(parts, file, spreadsheet_safe=safe, decimals=decimals, dates=dates)


def _blocks_into_database(table: StagedTable) -> PutParts:
    def put(parts: Iterator[pa.Table]) -> Parts:
        table.write(normalise_table(part, where="drawn table") for part in parts)
        return table

    return put


def _write_blocks(drawing: _Drawing, put: PutParts) -> Counted:
    """Draw and write block after block, and count what was written as it reads back, part by part.

    Guarantees:
        Memory does not grow with the rows.  [test_memory_of_blocks_does_not_grow]
        A database gets the rows that a file gets.  [test_blocks_go_into_a_database]
    """
    fitted, ways = drawing.fitted, drawing.ways
    check_keys(fitted.schema.attributes, drawing.num_rows)
    written = put(_block_parts(fitted, drawing.num_rows, drawing.rng, ways))
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
    put: Put,
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
    counts = _write_and_count(fitted, columns, num_rows, put, ways)
    if not mode.keeps_hard_constraints or not counts.broken:
        return counts
    mended = mend_columns(fitted, columns, num_rows, rng, condition)
    counts = _write_and_count(fitted, mended, num_rows, put, ways)
    if counts.broken:
        raise _broken(counts)
    return counts


def _write_and_count(fitted: Fitted, columns: Mapping[str, AnyCodes], num_rows: int, put: Put, ways: Ways) -> Counted:
    ways.progress(Stage.WRITE)
    check_keys(fitted.schema.attributes, num_rows)
    counted = sorted({name for constraint in fitted.promised for name in constraint.attributes})
    written = put(_parts(fitted, columns, num_rows), counted)
    pa.default_memory_pool().release_unused()  # what writing took, before counting takes as much again
    ways.progress(Stage.CHECK)
    return count_table(fitted, written)


def time_decimals(schema: Schema) -> dict[str, int]:
    """How many decimals of a second the times of each column need, by its resolution.

    Guarantees:
        Times are written at their resolution.  [test_times_are_written_at_their_resolution]
    """
    times = {name: each.decimals for name, each in schema.attributes.items() if isinstance(each, Datetime)}
    return times | {name: 0 for name, each in schema.attributes.items() if isinstance(each, Date)}


def _parts(fitted: Fitted, columns: Mapping[str, AnyCodes], num_rows: int, *, first: int = 0) -> Iterator[pa.Table]:
    """The values of so many rows at a time: the whole table is never held as values. `first` rows came before."""
    for start in range(0, max(num_rows, 1), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, num_rows)
        part = {name: codes[start:stop].astype(np.int64) for name, codes in columns.items()}
        coded = CodedTable(columns=part, num_rows=stop - start)
        yield fitted.layout.decode(coded, np.random.default_rng(first + start), first=first + start)


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
