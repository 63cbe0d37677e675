"""`kamino synth`: from a private table to a synthetic one, in one command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kamino.cli.asking import LEDGER, READING, Asked, options
from kamino.cli.console import error_console, output_console, safe
from kamino.cli.options import (
    DataArgument,
    OutputOption,
    RowsOption,
    SpreadsheetOption,
    WorkersOption,
    tell,
    tell_if_whole,
)
from kamino.cli.outputs import certificates_of, refuse_model, refuse_overwriting, refuse_table
from kamino.cli.render_run import print_run
from kamino.cli.stage_bar import show_stages
from kamino.errors import KaminoWarning, ModelError
from kamino.io.atomic import atomic_file
from kamino.io.databases.credentials import shown_source
from kamino.io.write import check_spreadsheet_safe
from kamino.pipeline import Engine, Stage, Synthesizer
from kamino.pipeline.engines import describe_engine, told_engine
from kamino.pipeline.ledgering import standing
from kamino.pipeline.output.block_workers import Workers
from kamino.pipeline.output.release_mark import weak_promises
from kamino.pipeline.output.release_note import release_note as note_of
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.pipeline.spending import telling_what_is_spent
from kamino.pipeline.verifying.signatures import signer

STAGES = (Stage.READ, Stage.DOMAINS, Stage.FIT, Stage.WEIGHTS, Stage.SAMPLE, Stage.CHECK, Stage.WRITE)


@options(
    *("data", "output", "schema", "constraints", "epsilon", "delta", "rows", "trust_domain", "anyway", "value_lists"),
    *("unit", "max_rows", "accept", "preset", "backend", "sequence", "sampling", "weights", "training"),
    *("sweeps", "candidates", "neighbours", "jobs", "cluster", "engine", "workers", "save_model", "release_note"),
    *("sign", "query", *READING, "spreadsheet_safe", "seed", "dry_run", *LEDGER),
)
def synth(
    data: DataArgument,
    output: OutputOption,
    *,
    asked: Asked,
    rows: RowsOption = None,
    workers: WorkersOption = None,
    save_model: Annotated[Path | None, typer.Option("--save-model", help="Also keep the fitted model.")] = None,
    release_note: Annotated[
        Path | None,
        typer.Option("--release-note", help="Also write a page in plain language that goes with the table (.md)."),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign the certificate with this private key: an ed25519 PEM file.")
    ] = None,
    spreadsheet_safe: SpreadsheetOption = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check everything, release nothing: say what a run would do, spend and take."),
    ] = False,
) -> None:
    """Make a private synthetic table that keeps the constraints.

    Beside it goes OUT.certificate.json: how private the table is, and which constraints it keeps. With --ledger, a run
    that was killed goes on where it was when the same command is given again, and pays nothing twice.

    Whose privacy is promised is yours to say: by default that of one row. If a person has several rows, name the column
    that tells persons apart with --unit; a table with such a column is refused until you do, or say --unit row.

    With a schema of several tables, DATA and OUT are folders with a file for each table (see docs/databases.md).
    """
    if asked.schema is not None and _is_of_several_tables(asked.schema):
        from kamino.cli.commands.synth_database import synth_database

        unused = {"workers": workers, "save_model": save_model, "release_note": release_note, "sign": sign}
        synth_database(data, output, asked, rows, dry_run, {**unused, "spreadsheet_safe": spreadsheet_safe})
        return
    synthesizer = asked.synthesizer()
    use, settings = asked.ledger, synthesizer.settings
    public = (asked.schema, asked.constraints, *synthesizer.reference_files)
    inputs = (data, *public, *(() if use is None else (use.path, use.anchor)), sign)
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
    reading = asked.reading
    if dry_run:
        told = told_engine(data, settings, reading)
        planned = synthesizer.dry_run(data, reading=reading, num_rows=rows, output=output)
        _print_dry_run(output_console(), planned, told, output, save_model)
        return
    # How many rows the private table has is not known yet; delta is held against their noisy number afterwards.
    for warning in weak_promises(settings.epsilon, settings.delta, None):
        end = "" if settings.accept else "; the table will be marked not for release, unless you say --accept"
        error_console().print(f"Warning: {warning}{end}.", style="bold red", markup=False, soft_wrap=True)
    if use is not None:
        refuse_overwriting(use.path, data, *public)
    with show_stages(*STAGES) as progress, leaving_in_order(synthesizer):
        with warnings.catch_warnings():
            # They are printed with the certificate.
            warnings.simplefilter("ignore", KaminoWarning)
            synthesizer.fit(data, reading=reading, num_rows=rows, output=output, progress=progress, keep_releases=True)
        with telling_what_is_spent(
            lambda: synthesizer.ledger,
            settings,
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


def _is_of_several_tables(schema: Path) -> bool:
    from kamino.databases.synthesizer_of_databases import is_database

    return is_database(schema)


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
