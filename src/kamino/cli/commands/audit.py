"""`kamino audit`: does a run keep its promise on this table, and would the audit notice if it did not?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from kamino.cli.console import output_console, track
from kamino.cli.options import (
    DATA_HELP,
    AnywayOption,
    BackendOption,
    ColumnsOption,
    ConstraintsOption,
    DeltaOption,
    DropOption,
    EncodingOption,
    EpsilonOption,
    MaxRowsOption,
    NeighboursOption,
    PresetOption,
    PublicListOption,
    QueryOption,
    SamplingOption,
    SchemaOption,
    SeparatorOption,
    SequenceOption,
    SweepsOption,
    TrainingOption,
    UnitOption,
    WeightsOption,
    reading_of,
    told_constraints,
    value_lists,
)
from kamino.cli.render_audit import print_audit, print_self_test
from kamino.errors import InputError
from kamino.io import Reading
from kamino.pipeline import Preset, Synthesizer

# Also printed with `--json`, so that no file of an audit is without it.
FOR_THE_OWNER = "for the owner, not for release"


def audit(
    data: Annotated[str | None, typer.Argument(help=DATA_HELP)] = None,
    schema: SchemaOption = None,
    constraints: ConstraintsOption = None,
    epsilon: EpsilonOption = 1.0,
    delta: DeltaOption = 1e-6,
    trust_domain: Annotated[
        bool, typer.Option("--trust-domain", help="Types, values and ranges in the table are public: use them.")
    ] = False,
    anyway: AnywayOption = False,
    public_list: PublicListOption = None,
    unit: UnitOption = None,
    max_rows: MaxRowsOption = None,
    preset: PresetOption = Preset.DEFAULT,
    backend: BackendOption = None,
    sequence: SequenceOption = None,
    sampling: SamplingOption = None,
    weights: WeightsOption = None,
    training: TrainingOption = None,
    sweeps: SweepsOption = None,
    neighbours: NeighboursOption = None,
    query: QueryOption = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    runs: Annotated[
        int | None,
        typer.Option("--runs", min=100, help="Games to play; by default as many as take less than a minute."),
    ] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Plant faults in the code and look whether each is caught.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Test the promise of a run: replay, prices, and games against the claim. For the owner, not for release.

    Give the options that you give to kamino synth. The table is fitted several times in memory; nothing is written, and
    no release leaves, so that no budget is spent as long as you keep the output to yourself.
    """
    if self_test:
        _self_test(runs, as_json=as_json)
        return
    if data is None:
        raise InputError("found no table; expected one, or --self-test")
    synthesizer = Synthesizer(
        schema,
        told_constraints(constraints),
        preset=preset,
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        max_rows=max_rows,
        trust_domain=trust_domain,
        anyway=anyway,
        value_lists=value_lists(public_list),
        backend=backend,
        sequence=sequence,
        sampling=sampling,
        weights=weights,
        training=training,
        sweeps=sweeps,
        neighbours=neighbours,
    )
    if not synthesizer.settings.budget.is_private:
        raise InputError("found epsilon inf, which promises nothing; expected a number to audit")
    _audit_table(synthesizer, data, reading_of(query, separator, encoding, columns, drop), runs, as_json=as_json)


def _audit_table(synthesizer: Synthesizer, data: str, reading: Reading, runs: int | None, *, as_json: bool) -> None:
    from kamino.audit.auditing import CHECKS, audit
    from kamino.audit.subjects import subject_of_run

    request = synthesizer.job(data, reading=reading).request
    subject = subject_of_run("this table", data, request)
    result = audit(subject, runs=runs, track=track)
    if as_json:
        planned = None if subject.plan is None else subject.plan.to_json()
        typer.echo(json.dumps({"note": FOR_THE_OWNER, **result.to_json(), "plan": planned}, indent=2))
    else:
        print_audit(output_console(), result, CHECKS)
    if not result.passed:
        raise typer.Exit(1)


def _self_test(runs: int | None, *, as_json: bool) -> None:
    from kamino.audit.auditing import CHECKS
    from kamino.audit.probes import PROBES
    from kamino.audit.self_test import FEW_RUNS
    from kamino.audit.self_test import self_test as test_itself

    result = test_itself(runs=runs or FEW_RUNS, track=track)
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2))
    else:
        print_self_test(output_console(), result, CHECKS, PROBES)
    if not result.passed:
        raise typer.Exit(1)
