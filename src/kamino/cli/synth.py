"""`kamino synth`: from a private table to a synthetic one, in one command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from kamino.cli.console import output_console
from kamino.cli.options import (
    BackendOption,
    CandidatesOption,
    ClusterOption,
    ConstraintsOption,
    DataArgument,
    DeltaOption,
    EpsilonOption,
    JobsOption,
    NeighboursOption,
    PresetOption,
    QueryOption,
    RowsOption,
    SamplingOption,
    SchemaOption,
    SeedOption,
    SequenceOption,
    SweepsOption,
    WeightsOption,
)
from kamino.cli.outputs import (
    certificate_path,
    refuse_overwriting,
    refuse_same,
    refuse_unwritable,
    refuse_unwritable_table,
)
from kamino.cli.render_run import print_run
from kamino.cli.stages import show_stages
from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.io import write_table
from kamino.io.atomic import atomic_file
from kamino.pipeline import Preset, Stage, Synthesizer
from kamino.pipeline.spending import telling_what_is_spent
from kamino.sampling.sweeps import SweepLog

STAGES = (Stage.READ, Stage.DOMAINS, Stage.FIT, Stage.WEIGHTS, Stage.SAMPLE, Stage.CHECK, Stage.WRITE)


def synth(
    data: DataArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The synthetic table: .csv or .parquet.")],
    schema: SchemaOption = None,
    constraints: ConstraintsOption = None,
    epsilon: EpsilonOption = 1.0,
    delta: DeltaOption = 1e-6,
    rows: RowsOption = None,
    trust_domain: Annotated[
        bool, typer.Option("--trust-domain", help="Types, values and ranges in the table are public: use them.")
    ] = False,
    unit: Annotated[
        str | None, typer.Option("--unit", help="Column that says whose a row is; protects all of it.")
    ] = None,
    max_rows: Annotated[int | None, typer.Option("--max-rows", min=1, help="Rows kept of one unit.")] = None,
    preset: PresetOption = Preset.DEFAULT,
    backend: BackendOption = None,
    sequence: SequenceOption = None,
    sampling: SamplingOption = None,
    weights: WeightsOption = None,
    sweeps: SweepsOption = None,
    candidates: CandidatesOption = None,
    neighbours: NeighboursOption = None,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    save_model: Annotated[Path | None, typer.Option("--save-model", help="Also keep the fitted model.")] = None,
    query: QueryOption = None,
    seed: SeedOption = None,
) -> None:
    """Make a private synthetic table that keeps the constraints.

    Beside it goes OUT.certificate.json: how private the table is, and which constraints it keeps.
    """
    synthesizer = Synthesizer(
        schema,
        constraints or Constraints(),
        preset=preset,
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        max_rows=max_rows,
        trust_domain=trust_domain,
        backend=backend,
        sequence=sequence,
        sampling=sampling,
        weights=weights,
        sweeps=sweeps,
        candidates=candidates,
        neighbours=neighbours,
        jobs=jobs,
        cluster=cluster,
        seed=seed,
    )
    _refuse_outputs(output, save_model, data, schema, constraints, *synthesizer.reference_files)
    with show_stages(*STAGES) as progress:
        synthesizer.fit(data, query=query, num_rows=rows, progress=progress)
        with telling_what_is_spent(lambda: synthesizer.ledger, model=save_model):
            if save_model is not None:
                synthesizer.save(save_model)
            certificate = make(synthesizer, rows, output, progress)
    print_run(output_console(), certificate, output=output)


def make(synthesizer: Synthesizer, rows: int | None, output: Path, progress: Any, **options: Any) -> dict[str, Any]:
    """Draw a table, write it with its certificate, and return the certificate.

    Guarantees:
        What breaks a hard constraint is not written, unless constraints were to be ignored.
        [test_a_table_that_breaks_a_hard_constraint_is_not_written]
    """
    progress(Stage.SAMPLE)
    sweeps = SweepLog()
    table = synthesizer.sample(rows, progress=progress, on_sweep=sweeps, **options)
    progress(Stage.WRITE)
    strict = synthesizer.settings.sampling.keeps_hard_constraints
    write_table(table, output, verify=lambda written: _verify(written, synthesizer.fitted.promised, strict, progress))
    digest = hashlib.sha256(output.read_bytes()).hexdigest()
    certificate = synthesizer.certificate(table, sha256=digest, sweeps=sweeps, given=options.get("given"))
    with atomic_file(certificate_path(output)) as handle:
        handle.write(json.dumps(certificate, indent=2, ensure_ascii=False).encode())
    return certificate


def _refuse_outputs(output: Path, model: Path | None, *inputs: Path | str | None) -> None:
    """Fail before any budget is spent where an output could not be written, or would replace an input."""
    refuse_table(output, *inputs)
    if model is not None:
        refuse_overwriting(model, *inputs)
        refuse_same(output, model)
        refuse_same(certificate_path(output), model)
        refuse_unwritable(model)


def refuse_table(output: Path, *inputs: Path | str | None) -> None:
    """Refuse a table, or its certificate, that cannot be written or that would replace an input."""
    for path in (output, certificate_path(output)):
        refuse_overwriting(path, *inputs)
    refuse_unwritable_table(output)
    refuse_unwritable(certificate_path(output))


def _verify(written: pa.Table, constraints: Constraints, strict: bool, progress: Any) -> None:
    """Check what was written, as it reads back, before it gets its name."""
    from kamino.constraints import count_violations, print_constraint

    progress(Stage.CHECK)
    broken = [c for c in constraints if strict and c.is_hard and count_violations(written, c)]
    if broken:
        named = "; ".join(print_constraint(c) for c in broken)
        raise SamplingError(
            f"found a drawn table that breaks {named}; nothing was written. Ask for fewer rows, widen the domains, "
            "or make a constraint soft"
        )
