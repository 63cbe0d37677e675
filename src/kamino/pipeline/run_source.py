"""Opening the table of a run: its rows are sealed, and what is public about it is kept beside them.

Whatever makes a plan for a table goes through here, so that a run, its dry run and its audit plan the same.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kamino.constraints.collection import Constraints
from kamino.constraints.language.printer import print_name
from kamino.io import Reading, is_untyped
from kamino.io.databases.catalogue import Catalogue, declared_attributes, read_catalogue
from kamino.io.databases.sql import declared_enums
from kamino.io.frame_types import FrameKind, kind_of
from kamino.layout.recoding import joined
from kamino.pipeline.engines import read_private, read_whole
from kamino.pipeline.inputs import named_by, refuse_unread
from kamino.pipeline.plan.checked_domains import with_checks
from kamino.pipeline.plan.run_plan import RunPlan, plan_table
from kamino.pipeline.settings import Settings
from kamino.privacy.private import PrivateTable
from kamino.schema import Attribute, Schema

if TYPE_CHECKING:
    from kamino.pipeline.ledgering import LedgerUse


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What somebody asks of a run on a table, besides the table. Every field may be published.

    `folder` is where paths of reference tables start, `num_rows` how many rows will be asked for, `output` where the
    table will be written, `command` what the run is entered as in a durable ledger.
    """

    settings: Settings = field(default_factory=Settings)
    schema: Schema | None = None
    constraints: Constraints = field(default_factory=Constraints)
    folder: Path = Path()
    reading: Reading = field(default_factory=Reading)
    num_rows: int | None = None
    output: str | os.PathLike[str] | None = None
    command: str = "synth"
    ledger: LedgerUse | None = None

    @property
    def guarded(self) -> bool:
        """Whether no value of the table may be looked at but through the gate."""
        return not self.settings.trust_domain

    @property
    def files(self) -> tuple[Path, ...]:
        """The public tables that constraints name, which a run reads."""
        return tuple(self.folder / c.reference for c in self.constraints if c.reference is not None)


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """What is public about the table of a run, whatever its rows are.

    `listed` are domains that types of columns list themselves, some of them made `of_cells`; `declared` are attributes
    of which a database declares more than a type, and `catalogue` is all that it declares. `untyped`: types are found
    within the budget; `dated`: texts may be dates as people write them. `kind` is the kind of a data frame.
    """

    columns: pa.Schema
    listed: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    of_cells: Collection[str] = ()
    declared: Mapping[str, Attribute] = field(default_factory=dict)
    untyped: bool = False
    dated: bool = False
    kind: FrameKind | None = None
    catalogue: Catalogue | None = None


def open_source(source: object, request: RunRequest) -> tuple[PrivateTable, SourceFacts]:
    """Read and seal the table of a run, or what reads it in parts, with what is public about it.

    Guarantees:
        What is public follows from names, types and declarations.  [test_replay_passes_for_synth]
    """
    reading, catalogue = _reading(source, request)
    private = read_private(source, request.settings, reading, catalogue)
    return private, _facts(source, private.without_rows().schema, request, reading, catalogue)


def open_for_audit(source: object, request: RunRequest) -> tuple[pa.Table, SourceFacts]:
    """Read the table of a run into memory, for its owner to audit, with what is public about it.

    Guarantees:
        What is planned on it is what a run plans.  [test_an_audit_plans_what_a_run_plans]
    """
    reading, catalogue = _reading(source, request)
    rows = read_whole(source, request.settings, reading, catalogue)
    return rows, _facts(source, PrivateTable(rows).without_rows().schema, request, reading, catalogue)


def plan_source(private: PrivateTable, facts: SourceFacts, request: RunRequest) -> RunPlan:
    """Plan a run on a table: everything that comes before the first release."""
    return plan_table(
        private,
        request.schema,
        request.constraints if request.schema is not None else _with_keys(request.constraints, facts.catalogue),
        request.settings,
        untyped=facts.untyped,
        folder=request.folder,
        num_rows=request.num_rows,
        listed=facts.listed,
        declared=facts.declared,
        of_cells=facts.of_cells,
        dated=facts.dated,
    )


def _reading(source: object, request: RunRequest) -> tuple[Reading, Catalogue | None]:
    """How the table is read, and what a database declares of it."""
    unit = request.settings.privacy_unit.column
    refuse_unread(request.reading, request.constraints, request.schema, unit)
    reading = named_by(request.reading, source, request.schema, unit)
    return reading, read_catalogue(source, reading.query)


def _facts(
    source: object, columns: pa.Schema, request: RunRequest, reading: Reading, catalogue: Catalogue | None
) -> SourceFacts:
    trusted = not request.guarded
    kind, by_type = kind_of(source, columns, trust_domain=trusted), kind_of(source, columns)
    listed = kind.domains if kind is not None else declared_enums(source, reading.query)
    if catalogue is not None:
        catalogue = catalogue.select(columns.names)
    declared = {} if catalogue is None else declared_attributes(catalogue, columns)
    return SourceFacts(
        columns=columns,
        listed={name: values for name, values in listed.items() if name in columns.names},
        of_cells=frozenset() if by_type is None else frozenset(listed) - frozenset(by_type.domains),
        declared=with_checks(declared, catalogue, columns),
        untyped=is_untyped(source) and not trusted,
        dated=is_untyped(source),
        kind=kind,
        catalogue=catalogue,
    )


def _with_keys(constraints: Constraints, catalogue: Catalogue | None) -> Constraints:
    """The constraints, and the keys of one column that a database declares, whose values are made up all different."""
    alone = [key[0] for key in catalogue.keys if len(key) == 1] if catalogue is not None else []
    declared = Constraints.parse("\n".join(f"key ({print_name(name)})" for name in alone), source="catalogue")
    return joined(constraints, declared)
