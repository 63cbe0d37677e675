"""`kamino synth`: from a private table to a synthetic one, in one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kamino.cli.console import error_console, output_console, safe
from kamino.cli.options import (
    AcceptOption,
    AnchorOption,
    AnywayOption,
    BackendOption,
    CandidatesOption,
    ClusterOption,
    ColumnsOption,
    ConstraintsOption,
    DataArgument,
    DatasetOption,
    DeltaOption,
    DropOption,
    EncodingOption,
    EngineOption,
    EpsilonOption,
    JobsOption,
    LedgerOption,
    MaxRowsOption,
    NeighboursOption,
    OutputOption,
    PresetOption,
    PublicListOption,
    QueryOption,
    ResumeOption,
    RowsOption,
    SamplingOption,
    SchemaOption,
    SeedOption,
    SeparatorOption,
    SequenceOption,
    SpreadsheetOption,
    SweepsOption,
    TrainingOption,
    UnitOption,
    WeightsOption,
    WorkersOption,
    ledger_use,
    reading_of,
    tell,
    tell_if_whole,
    told_constraints,
    value_lists,
)
from kamino.cli.outputs import certificates_of, refuse_model, refuse_overwriting, refuse_table
from kamino.cli.render_run import print_run
from kamino.cli.stage_bar import show_stages
from kamino.errors import ModelError
from kamino.io.atomic import atomic_file
from kamino.io.databases.credentials import shown_source
from kamino.io.write import check_spreadsheet_safe
from kamino.pipeline import Engine, Preset, Stage, Synthesizer
from kamino.pipeline.engines import describe_engine, told_engine
from kamino.pipeline.ledgering import standing
from kamino.pipeline.output.block_workers import Workers
from kamino.pipeline.output.release_mark import weak_promises
from kamino.pipeline.output.release_note import release_note as note_of
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.pipeline.spending import telling_what_is_spent
from kamino.pipeline.verifying.signatures import signer

STAGES = (Stage.READ, Stage.DOMAINS, Stage.FIT, Stage.WEIGHTS, Stage.SAMPLE, Stage.CHECK, Stage.WRITE)


def synth(
    data: DataArgument,
    output: OutputOption,
    schema: SchemaOption = None,
    constraints: ConstraintsOption = None,
    epsilon: EpsilonOption = 1.0,
    delta: DeltaOption = 1e-6,
    rows: RowsOption = None,
    trust_domain: Annotated[
        bool, typer.Option("--trust-domain", help="Types, values and ranges in the table are public: use them.")
    ] = False,
    anyway: AnywayOption = False,
    public_list: PublicListOption = None,
    unit: UnitOption = None,
    max_rows: MaxRowsOption = None,
    accept: AcceptOption = False,
    preset: PresetOption = Preset.DEFAULT,
    backend: BackendOption = None,
    sequence: SequenceOption = None,
    sampling: SamplingOption = None,
    weights: WeightsOption = None,
    training: TrainingOption = None,
    sweeps: SweepsOption = None,
    candidates: CandidatesOption = None,
    neighbours: NeighboursOption = None,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    engine: EngineOption = None,
    workers: WorkersOption = None,
    save_model: Annotated[Path | None, typer.Option("--save-model", help="Also keep the fitted model.")] = None,
    release_note: Annotated[
        Path | None,
        typer.Option("--release-note", help="Also write a page in plain language that goes with the table (.md)."),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign the certificate with this private key: an ed25519 PEM file.")
    ] = None,
    query: QueryOption = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    spreadsheet_safe: SpreadsheetOption = False,
    seed: SeedOption = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check everything, release nothing: say what a run would do, spend and take."),
    ] = False,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    anchor: AnchorOption = None,
    resume: ResumeOption = None,
) -> None:
    """Make a private synthetic table that keeps the constraints.

    Beside it goes OUT.certificate.json: how private the table is, and which constraints it keeps. With --ledger, a run
    that was killed goes on where it was when the same command is given again, and pays nothing twice.

    Whose privacy is promised is yours to say: by default that of one row. If a person has several rows, name the column
    that tells persons apart with --unit; a table with such a column is refused until you do, or say --unit row.
    """
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
        candidates=candidates,
        neighbours=neighbours,
        jobs=jobs,
        cluster=cluster,
        engine=engine,
        accept=accept,
        seed=seed,
        ledger=ledger_use(ledger, dataset, resume, anchor),
    )
    inputs = (data, schema, constraints, ledger, anchor, sign, *synthesizer.reference_files)
    Workers.of(workers)
    # A key that cannot be read is told before anything is spent.
    vouch = signer(sign) if sign is not None else None
    refuse_table(output, *inputs)
    if spreadsheet_safe:
        check_spreadsheet_safe(Path(output))
    if save_model is not None:
        refuse_model(save_model, output, *inputs)
    if release_note is not None:
        refuse_model(release_note, output, *inputs, save_model)
    reading = reading_of(query, separator, encoding, columns, drop)
    if dry_run:
        told = told_engine(data, synthesizer.settings, reading)
        planned = synthesizer.dry_run(data, reading=reading, num_rows=rows, output=output)
        _print_dry_run(output_console(), planned, told, output, save_model)
        return
    # How many rows the private table has is not known yet; delta is held against their noisy number afterwards.
    for warning in weak_promises(epsilon, delta, None):
        end = "" if accept else "; the table will be marked not for release, unless you say --accept"
        error_console().print(f"Warning: {warning}{end}.", style="bold red", markup=False, soft_wrap=True)
    if ledger is not None:
        refuse_overwriting(ledger, data, schema, constraints, *synthesizer.reference_files)
    with show_stages(*STAGES) as progress, leaving_in_order(synthesizer):
        synthesizer.fit(data, reading=reading, num_rows=rows, output=output, progress=progress, keep_releases=True)
        with telling_what_is_spent(
            lambda: synthesizer.ledger,
            synthesizer.settings,
            model=save_model,
            resumable=synthesizer.run is not None,
        ):
            unsaved = _save(synthesizer, save_model)
            tell_if_whole(synthesizer, output, rows)
            written = synthesizer.write(
                output, rows, spreadsheet_safe=spreadsheet_safe, workers=workers, progress=progress, sign=vouch
            )
            if release_note is not None:
                with atomic_file(release_note) as handle:
                    handle.write(note_of(written.certificate, table=written.path.name).encode())
        stands = standing(synthesizer.run) if synthesizer.run is not None else None
        synthesizer.finish()
    print_run(output_console(), written.certificate, output=written.place)
    for line in synthesizer.not_taken_over:
        tell(line)
    if stands is not None:
        tell(stands)
    if unsaved is not None:
        raise unsaved


def _save(synthesizer: Synthesizer, path: Path | None) -> ModelError | None:
    """Save the model, if asked to; what keeps it from being saved is told once the table, which was paid for, is there.

    Guarantees:
        A model that no file holds costs nobody the table.  [test_a_model_too_large_to_save_costs_no_table]
    """
    try:
        if path is not None:
            synthesizer.save(path)
    except ModelError as problem:
        return problem
    return None


@contextmanager
def leaving_in_order(synthesizer: Synthesizer) -> Iterator[None]:
    """Let go of the run in a durable ledger, however the block ends, so that it can go on."""
    try:
        yield
    finally:
        synthesizer.leave()


def _print_dry_run(console: Console, plan: RunPlan, engine: Engine, output: str, model: Path | None) -> None:
    """The plan, what it takes and what it would write."""
    from kamino.cli.commands.plan import print_plan
    from kamino.pipeline.plan.expectations import effort_of

    print_plan(console, plan)
    console.print(safe(f"It takes {effort_of(plan).describe()}."), soft_wrap=True)
    console.print(safe(describe_engine(engine, plan)), soft_wrap=True)
    files = [str(path) for path in (shown_source(output), *certificates_of(output), *((model,) if model else ()))]
    rows = "about as many rows as there are" if plan.num_rows is None else f"{plan.num_rows:,} rows"
    console.print(safe(f"It would spend the whole budget and write {', '.join(files)} with {rows}."), soft_wrap=True)
    console.print(safe("Dry run: nothing was released, spent or written.", style="bold"))
