"""The front door in Python: fit, sample, write, save, load."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kamino.constraints.collection import Constraints
from kamino.constraints.language.printer import print_name
from kamino.errors import InputError, KaminoWarning, ModelError
from kamino.pipeline.inputs import constraints_from, folder_of, path_from, schema_from
from kamino.pipeline.ledgering import LedgerUse
from kamino.pipeline.parameters import Parameterised
from kamino.pipeline.settings import Backend, Engine, Preset, SequenceMode, Settings, Training, WeightMode
from kamino.pipeline.stages import Progress, Stage, quietly, shown
from kamino.privacy import Neighbours
from kamino.sampling import Sampling
from kamino.schema.attributes import Key
from kamino.schema.schema import Schema

# The stages of a run are imported by the methods that need them: all together they are slow to import.
if TYPE_CHECKING:
    import pyarrow as pa

    from kamino.io import Reading
    from kamino.io.databases.catalogue import Catalogue
    from kamino.pipeline.fitted import Fitted
    from kamino.pipeline.job import Job
    from kamino.pipeline.output.conditions import Given
    from kamino.pipeline.output.draws import RandomSource
    from kamino.pipeline.output.writing import WrittenTable
    from kamino.pipeline.plan.run_plan import RunPlan
    from kamino.pipeline.verifying.signatures import Sign
    from kamino.privacy.durable.durable_run import DurableRun
    from kamino.sampling import OnSweep
    from kamino.sampling.soft.sweeps import SweepLog


FITTING = (Stage.READ, Stage.DOMAINS, Stage.FIT, Stage.WEIGHTS)

# The parameters that are no fields of `Settings`.
_NO_SETTINGS = ("schema", "constraints", "preset", "ledger", "dataset")
# No preset chooses these, so that None is no choice but a slip.
_NEVER_NONE = ("epsilon", "delta", "trust_domain", "anyway", "value_lists", "accept")


class Synthesizer(Parameterised):
    r"""Fits a private table once and draws synthetic tables from the fit.

    A fit spends the budget; drawing spends nothing. The table is a data frame, a path or a database URL; a frame comes
    back as a frame of its kind. Most tables need `constraints`, `epsilon`, `delta`, and a schema or `trust_domain`; the
    rest chooses other methods. A seed is for examples and tests: what is made with it is marked "not for release".

    >>> from kamino.datasets import TAX_CONSTRAINTS, tax
    >>> made = Synthesizer(constraints=TAX_CONSTRAINTS, epsilon=1.0, trust_domain=True, seed=1).fit(tax(500))
    >>> made.sample(10).num_rows, made.certificate(made.sample(10))["mark"]
    (10, 'not for release')
    >>> made.sample(100, given={"state": ["CA", "NY"], "salary": (20_000, None)}).num_columns
    10
    >>> Synthesizer(constraints="zip -> city\nkey (ssn)", epsilon=0.5)
    Synthesizer(constraints='zip -> city\nkey (ssn)', epsilon=0.5, delta=1e-06)

    Args:
        schema: a `Schema`, its YAML text, or the `Path` of a schema file; None to draft one from names and types.
        constraints: `Constraints`, their text (one a line), or the `Path` of a constraint file; None for none.
        preset: choices that belong together; "paper" goes the paper's way with its errors mended, "printed" does what
            the paper prints (needs `kamino-synth[neural]`).
            What is given below wins over the preset; None leaves a choice to it.
        epsilon: the privacy loss that is allowed; smaller is more private, infinity is not private.
        delta: the chance that is allowed for a larger loss than epsilon; below one over the number of rows.
        neighbours: which two tables no one can tell apart: "add_remove", one has a row more (the default), or
            "replace", one row differs.
        unit: the column that says whose a row is, to protect all rows of a person; needs `max_rows`. Or "row", to say
            that one row is what is protected; asked for where a column looks like the id of a person.
        max_rows: how many rows of one unit are kept, chosen at random; the more, the more noise.
        trust_domain: say that types, values and ranges in the table are public, and use them. Otherwise what the schema
            does not declare is found within the budget.
        discovery_share: the part of the budget that finding types and domains takes, if some are missing; None to have
            it follow from the number of columns and the noisy number of rows.
        anyway: go on where most columns turn out useless with the domains that were found, or hidden by noise.
        value_lists: columns whose values are those of a public list, such as `[("state", "us-states")]`.
        backend: the model: "marginal" (the default), or "neural".
        sampling: how rows are drawn: "constraint-aware" (the default), "row-by-row" and others of `kamino.Sampling`.
        sequence: how attributes are ordered: "planned" (the default), "random" or "paper".
        weights: how soft constraints are weighed: "matching" (the default) or "paper".
        training: how the neural backend is trained: "fitted" to the budget, or "printed", as the paper has it.
        sweeps: how often rows are drawn again for soft constraints (4).
        candidates: how many values of a number are tried for a row, by row-by-row sampling (10).
        jobs: parts of a neural model trained at a time (1).
        cluster: the address of a Dask cluster that trains them, which then sees private rows.
        engine: where counts are computed: "memory", "streamed" (in passes over Parquet, CSV, DuckDB or PostgreSQL, for
            tables that are larger than memory), "spark" (on its executors), or "auto", by kind and size of the table.
        accept: mark what is drawn for release although epsilon is above 10, delta is above one over the rows, or
            real ids of persons, or values that one row alone has, are written because domains are trusted.
        seed: for tests only; fixes noise and draws, and marks the run "not for release".
        ledger: the path of a durable ledger in which each fit is entered (see docs/ledger.md), or a `LedgerUse`.
        dataset: the name of the dataset in the ledger; needed for a table in memory.

    Guarantees:
        What it draws is (epsilon, delta)-differentially private in the table.  [test_replay_passes_for_synth]
        The private table is not kept.  [test_synthesizer_keeps_no_private_row]
        Pickled or copied, it holds public facts only.  [test_a_pickle_holds_no_private_cell]
        A keyword that is not known is refused by type checkers.  [test_mypy_refuses_a_wrong_keyword]
    """

    _always_shown = ("epsilon", "delta")
    _elsewhere = MappingProxyType(
        {
            "random_state": "Say seed=..., for tests only: it marks the run not for release.",
            "eps": "Say epsilon=....",
            "privacy_budget": "Say epsilon=... and delta=....",
            "rules": "Say constraints=....",
            "metadata": "Say schema=...; kamino.schema.schema_from_sdv reads SDV's.",
            "drop": "Say fit(table, reading=kamino.Reading(drop=...)).",
            "columns": "Say fit(table, reading=kamino.Reading(columns=...)).",
            "num_rows": "Say sample(num_rows) or write(path, num_rows).",
        }
    )

    def __init__(
        self,
        schema: Schema | str | os.PathLike[str] | Mapping[str, Any] | None = None,
        constraints: Constraints | str | os.PathLike[str] | Sequence[str] | None = None,
        *,
        preset: Preset | str = Preset.DEFAULT,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: Neighbours | str | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
        trust_domain: bool = False,
        discovery_share: float | None = None,
        anyway: bool = False,
        value_lists: Sequence[tuple[str, str]] = (),
        backend: Backend | str | None = None,
        sampling: Sampling | str | None = None,
        sequence: SequenceMode | str | None = None,
        weights: WeightMode | str | None = None,
        training: Training | str | None = None,
        sweeps: int | None = None,
        candidates: int | None = None,
        jobs: int | None = None,
        cluster: str | None = None,
        engine: Engine | str | None = None,
        accept: bool = False,
        seed: int | None = None,
        ledger: LedgerUse | str | os.PathLike[str] | None = None,
        dataset: str | None = None,
    ) -> None:
        # The arguments are the parameters, and those beside `_NO_SETTINGS` are fields of `Settings`: a keyword
        # that is added here and there needs nothing else.
        self._take({name: value for name, value in locals().items() if name != "self"})
        self._fitted: Fitted | None = None
        self._job: Job | None = None
        self._random: RandomSource | None = None
        # What the database declares of the table that was fitted: types of a table that is drawn into one.
        self._catalogue: Catalogue | None = None

    def _take(self, given: Mapping[str, Any]) -> None:
        chosen = {name: value for name, value in given.items() if name not in _NO_SETTINGS}
        for name in _NEVER_NONE:
            if chosen[name] is None:
                raise InputError(f"found {name} None; leave it out to have {getattr(Settings, name)!r}")
        settings = Settings.of(given["preset"], **chosen)
        schema = schema_from(given["schema"])
        if schema is not None and schema.unit is not None and settings.unit is None:
            settings = replace(settings, unit=schema.unit, max_rows=schema.max_rows)
        self.constraints = constraints_from(given["constraints"])
        self.settings, self.schema = settings, schema
        self._folder = folder_of(given["constraints"])
        self._ledger = LedgerUse.of(given["ledger"], given["dataset"])
        self._given = given

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.shown_params().items())
        return f"{'fitted ' if self._fitted else ''}Synthesizer({shown})"

    def _repr_html_(self) -> str:
        """What a notebook shows: parameters, budget, plan and notes. Public facts only."""
        from kamino.pipeline.output.notebook import synthesizer_html

        return synthesizer_html(self)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy holds: the parameters, and the fitted model as it is saved."""
        return {**vars(self), "_fitted": self._fitted.to_bundle() if self._fitted else None, "_job": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from kamino.pipeline.fitted import Fitted

        saved = state["_fitted"]
        vars(self).update(state, _fitted=Fitted.from_bundle(saved, source="pickle") if saved else None)

    def fit(
        self,
        table: object,
        y: None = None,
        *,
        query: str | None = None,
        reading: Reading | None = None,
        num_rows: int | None = None,
        output: str | os.PathLike[str] | None = None,
        progress: Progress | bool | None = None,
        keep_releases: bool = False,
    ) -> Synthesizer:
        """Spend the budget on a table, and return the synthesizer, from which tables can be drawn.

        Every call spends the whole budget once more: two fits of one table cost twice. With a ledger, the run is
        entered there before the table is read, and goes on with one of the same plan that ended early.

        Args:
            table: a frame of pandas, polars, pyarrow or Spark; the path of a file; or the URL of a database.
            y: nothing; it is there for pipelines. Labels are a column of the table.
            query: for a database, a SELECT or the name of a table; for a workbook, the name of a sheet.
            reading: a `kamino.Reading`, which says what columns are read, and how a text file is written.
            num_rows: how many rows will be asked for: constraints that so many cannot satisfy are refused before
                anything is spent.
            output: where a table will be written, as for `write`: a place that cannot hold one of this schema is
                refused before anything is spent.
            progress: True shows a bar on a terminal, None in notebooks only, False nowhere; a function is told of each
                stage.
            keep_releases: with a ledger, let the run go on after this returns, until `finish` is called.
        """
        from kamino.pipeline.output.warned import warnings_of

        if y is not None:
            raise InputError("found labels as y; put them into the table as a column: fit(table.assign(label=y))")
        job = self.job(table, query=query, reading=reading, num_rows=num_rows, output=output)
        if self._ledger is not None:
            self.finish()
        with quietly(), shown(progress, *FITTING) as told:
            fitted = job.fit(progress=told, keep_releases=keep_releases)
        self._fitted, self._job, self._random, self._catalogue = fitted, job, job.random, job.facts.catalogue
        for line in warnings_of(fitted):
            warnings.warn(line, KaminoWarning, stacklevel=2)
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the synthetic table may not expect of it, a line each, as the certificate has them."""
        from kamino.pipeline.output.certificate import notes_of

        return notes_of(self.fitted, self.fitted.num_rows)

    def dry_run(
        self,
        table: object,
        *,
        query: str | None = None,
        reading: Reading | None = None,
        num_rows: int | None = None,
        output: str | os.PathLike[str] | None = None,
    ) -> RunPlan:
        """Go through everything that `fit` does before its first release, and return the plan. Spends nothing.

        Guarantees:
            It raises what `fit` would raise before the first release.  [test_a_dry_run_refuses_what_a_run_refuses]
        """
        return self.job(table, query=query, reading=reading, num_rows=num_rows, output=output).plan()

    def job(
        self,
        table: object,
        *,
        query: str | None = None,
        reading: Reading | None = None,
        num_rows: int | None = None,
        output: str | os.PathLike[str] | None = None,
    ) -> Job:
        """One run on a table, step by step: it can be planned, watched, cancelled and gone on with. Reads nothing yet.

        >>> from kamino.datasets import tax
        >>> job = Synthesizer(epsilon=1.0, trust_domain=True, seed=1).job(tax(200))
        >>> job.plan().is_complete, job.fit().num_rows > 0, job.state.value
        (True, True, 'fitted')
        """
        from kamino.io import Reading
        from kamino.pipeline.job import Job
        from kamino.pipeline.run_source import RunRequest

        how = reading or Reading()
        request = RunRequest(
            settings=self.settings,
            schema=self.schema,
            constraints=self.constraints,
            folder=self._folder,
            reading=how if query is None else replace(how, query=query),
            num_rows=num_rows,
            output=output,
            ledger=self._ledger,
        )
        return Job.open(table, request)

    @property
    def run(self) -> DurableRun | None:
        """The run in a durable ledger whose releases are still stored."""
        return self._job.run if self._job is not None else None

    def finish(self) -> None:
        """Remove the stored releases of a fit with `keep_releases`: what was drawn from it is safe."""
        if self._job is not None:
            self._job.finish()

    def leave(self) -> None:
        """Keep the stored releases of a fit with `keep_releases`, for another process to go on from."""
        if self._job is not None:
            self._job.leave()

    @property
    def not_taken_over(self) -> tuple[str, ...]:
        """What the database declares of the fitted table and rows were not drawn to keep, a line each."""
        if self._catalogue is None or self._fitted is None:
            return ()
        kept = {each.attributes for each in self._fitted.constraints if each.is_hard}
        made_up = {name for name, each in self._fitted.schema.attributes.items() if isinstance(each, Key)}
        names = set(self._fitted.schema)
        open_keys = [
            k for k in self._catalogue.not_made_up if k not in kept and not made_up & set(k) and set(k) <= names
        ]
        lines = [f"key ({', '.join(map(print_name, key))})" for key in open_keys]
        return tuple(f"{line} is declared in the database and not kept; to keep it, put it into -c" for line in lines)

    @property
    def folder(self) -> Path:
        """Where paths of reference tables start: the folder of the constraint file."""
        return self._folder

    @property
    def reference_files(self) -> tuple[Path, ...]:
        """The public tables that constraints name, which a run reads."""
        return tuple(self._folder / c.reference for c in self.constraints if c.reference is not None)

    def plan(self, num_rows: int | None = None) -> RunPlan:
        """What a run will do: order of attributes, steps, noise. Needs a schema, reads no private table."""
        from kamino.pipeline.plan.run_plan import plan_run

        if self.schema is None:
            raise InputError("found no schema to plan with; expected Synthesizer(schema=...)")
        return plan_run(self.schema, self.constraints, self.settings, num_rows=num_rows, folder=self._folder)

    @property
    def is_fitted(self) -> bool:
        """Whether there is a model to draw from."""
        return self._fitted is not None

    @property
    def fitted(self) -> Fitted:
        """The model and the facts of its making."""
        if self._fitted is None:
            raise ModelError("found no fitted model; call fit(table) or Synthesizer.load(path) first")
        return self._fitted

    def sample(
        self,
        num_rows: int | None = None,
        *,
        given: Given | None = None,
        sweeps: int | None = None,
        seed: int | None = None,
        draw_number: int = 0,
        progress: Progress | bool | None = None,
        on_sweep: OnSweep | None = None,
    ) -> Any:
        """Draw a synthetic table, of the kind of frame that was fitted. Costs no privacy, however often.

        Args:
            num_rows: how many rows; None for about as many as the fitted table had, give or take noise.
            given: what attributes are to be: `{"state": "CA"}`, `{"state": ["CA", "NY"]}` for any of several, or
                `{"age": (30, 40)}` for an interval with both ends, of which one may be None.
            sweeps: how often rows are drawn again for soft constraints; None for what the synthesizer says.
            seed: draws the same rows again; None for those of the operating system's randomness, unless the
                synthesizer has a seed.
            draw_number: with a seed, which of its tables: 0 is the first, 1 another.
            progress: as for `fit`.
            on_sweep: is told how the rates of soft constraints move.
        """
        from kamino.io.frame_types import frame_from
        from kamino.pipeline.output.drawn_table import Ways
        from kamino.pipeline.output.draws import DrawRequest, draw_frame

        asked = DrawRequest(num_rows=num_rows, given=given, seed=seed, draw_number=draw_number)
        with quietly(), shown(progress, Stage.SAMPLE) as told:
            ways = Ways(sweeps=sweeps, progress=told, on_sweep=on_sweep)
            drawn = draw_frame(self.fitted, asked, self._source_of_draws(), ways)
        return frame_from(drawn, self.fitted.frame, self.fitted.layout.seen)

    def write(
        self,
        path: str | os.PathLike[str],
        num_rows: int | None = None,
        *,
        given: Given | None = None,
        sweeps: int | None = None,
        seed: int | None = None,
        draw_number: int = 0,
        spreadsheet_safe: bool = False,
        workers: int | str | None = None,
        progress: Progress | bool | None = None,
        on_sweep: OnSweep | None = None,
        sign: Sign | None = None,
    ) -> WrittenTable:
        """Draw a table into a file or a database, with a certificate in a file beside it.

        The table is read back, and what is certified is counted in it. Table and certificate appear together. Long
        tables are drawn in blocks, so that they need not fit into memory.

        Args:
            path: a name ending in `.csv`, `.tsv`, `.jsonl`, `.parquet` or `.feather`; or a table of a database,
                `duckdb:///f.db#table` or `postgresql://…#table`.
            num_rows: how many rows, as for `sample`.
            given: what attributes are to be, as for `sample`.
            sweeps: as for `sample`.
            seed: as for `sample`.
            draw_number: as for `sample`.
            spreadsheet_safe: put an apostrophe before texts in a CSV file that a spreadsheet would run as formulas.
            workers: who draws the blocks: so many processes, or a cluster, `tcp://…` of Dask or `spark://…`. The table
                is the same, whoever draws it.
            progress: as for `fit`.
            on_sweep: as for `sample`.
            sign: a `kamino.pipeline.verifying.signatures.signer`, which puts a signature into the certificate.

        >>> import tempfile
        >>> from kamino.datasets import TAX_CONSTRAINTS, tax
        >>> made = Synthesizer(constraints=TAX_CONSTRAINTS, epsilon=1.0, trust_domain=True, seed=1).fit(tax(500))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = made.write(f"{folder}/out.csv", 10)
        >>> written.rows, sum(written.violations.values()), written.certificate_path.name
        (10, 0, 'out.csv.certificate.json')

        Guarantees:
            What is certified is what is in the file.  [test_what_is_certified_is_what_is_in_the_file]
            A table is never seen without its own certificate, whenever the process dies.
            [test_a_kill_at_any_step_leaves_no_table_beside_another_certificate]
        """
        from kamino.pipeline.output.block_workers import Workers
        from kamino.pipeline.output.drawn_table import Ways
        from kamino.pipeline.output.draws import DrawRequest, draw_into

        path_from(path, what="table to write")
        asked = DrawRequest(num_rows=num_rows, given=given, seed=seed, draw_number=draw_number)
        with quietly(), shown(progress, Stage.SAMPLE, Stage.WRITE, Stage.CHECK) as told:
            ways = Ways(
                sweeps=sweeps,
                progress=told,
                on_sweep=on_sweep,
                spreadsheet_safe=spreadsheet_safe,
                workers=Workers.of(workers),
            )
            source = self._source_of_draws()
            return draw_into(self.fitted, path, asked, source, ways, sign=sign, catalogue=self._catalogue)

    def _source_of_draws(self) -> RandomSource:
        """The random numbers of the next table."""
        from kamino.pipeline.output.draws import RandomSource

        if self._random is None:
            self._random = RandomSource()
        self._random.seed = self.settings.seed
        return self._random

    def why_whole(
        self, path: str | os.PathLike[str], num_rows: int | None = None, *, given: Given | None = None
    ) -> str | None:
        """Say why `write` would hold a long table in memory instead of drawing it in blocks; None if it would not."""
        from kamino.pipeline.output.in_blocks import why_whole

        rows = self.fitted.num_rows if num_rows is None else num_rows
        return why_whole(self.fitted, path, rows, given=given)

    def certificate(
        self,
        table: pa.Table,
        *,
        sha256: str | None = None,
        sweeps: SweepLog | None = None,
        given: Given | None = None,
    ) -> dict[str, Any]:
        """The privacy of the fit, and which constraints `table`, drawn from it with `given`, keeps: plain data.

        `sha256` is entered as the hash of its file, `sweeps` as how the rates of soft constraints moved.
        """
        from kamino.io import read_table
        from kamino.pipeline.output.certificate import certificate_of
        from kamino.pipeline.output.counted import count_table

        plain = read_table(table)
        counts = count_table(self.fitted, plain)
        return certificate_of(
            self.fitted,
            rows=plain.num_rows,
            violations=counts.violations,
            following=counts.following,
            sha256=sha256,
            sweeps=sweeps,
            given=given,
        )

    @property
    def ledger(self) -> dict[str, Any]:
        """Everything that was released, with its noise and its cost."""
        return self.fitted.ledger

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that holds public facts only."""
        from kamino.io.bundle import write_bundle

        write_bundle(self.fitted.to_bundle(), path_from(path, what="model"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Synthesizer:
        """Read a fitted model; runs no code from the file."""
        from kamino.io.bundle import read_bundle
        from kamino.layout.recoding import joined
        from kamino.pipeline.fitted import Fitted

        fitted = Fitted.from_bundle(read_bundle(path_from(path, what="model")), source=str(path))
        chosen = {each.name: getattr(fitted.settings, each.name) for each in fields(fitted.settings)}
        # What fixed the draws of the run that made the model has no say in others.
        del chosen["seed"], chosen["draw_seed"]
        # Fitted again, it computes the columns that it computes now.
        synthesizer = cls(fitted.schema, joined(fitted.constraints, fitted.layout.asking), **chosen)
        synthesizer._fitted = fitted
        return synthesizer
