"""The front door in Python: fit, sample, write, save, load."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kamino.constraints.collection import Constraints
from kamino.errors import InputError, ModelError
from kamino.io.text import read_text
from kamino.pipeline.ledgering import LedgerUse, RunFacts, open_run, with_draw_seed
from kamino.pipeline.settings import Preset, Settings
from kamino.pipeline.spending import telling_what_is_spent
from kamino.pipeline.stages import Progress, Stage, silent
from kamino.schema.schema import Schema

# The stages of a run are imported by the methods that need them: all together they are slow to import.
if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from kamino.pipeline.fitted import Fitted
    from kamino.pipeline.output.conditions import Given
    from kamino.pipeline.output.writing import WrittenTable
    from kamino.pipeline.plan.run_plan import RunPlan
    from kamino.pipeline.verifying.signatures import Sign
    from kamino.privacy.durable.durable_run import DurableRun
    from kamino.sampling import OnSweep
    from kamino.sampling.soft.sweeps import SweepLog


class Synthesizer:
    """Fits a private table once and draws synthetic tables from the fit.

    Args:
        schema: a `Schema`, or the path of a schema file; None to draft one from names and types.
        constraints: `Constraints`, their text, or the path of a constraint file.
        preset: choices that belong together; "paper" does everything as the paper does (needs `kamino[neural]`).
        ledger: the path of a durable ledger in which each fit is entered (see docs/ledger.md), or a `LedgerUse`.
        dataset: the name of the dataset in the ledger; needed for a table in memory.
        settings: keywords of `Settings`: epsilon, delta, neighbours, unit, max_rows, trust_domain, seed, ...; each
            wins over the preset.

    >>> from kamino.datasets import TAX_CONSTRAINTS, tax
    >>> made = Synthesizer(constraints=TAX_CONSTRAINTS, epsilon=1.0, trust_domain=True, seed=1).fit(tax(500))
    >>> made.sample(10).num_rows, made.certificate(made.sample(10))["mark"]
    (10, 'not for release')

    Guarantees:
        What it draws is (epsilon, delta)-differentially private in the table.  [test_replay_passes_for_synth]
        The private table is not kept.  [test_synthesizer_keeps_no_private_row]
    """

    def __init__(
        self,
        schema: Schema | str | os.PathLike[str] | None = None,
        constraints: Constraints | str | os.PathLike[str] = Constraints(),
        *,
        preset: Preset | str = Preset.DEFAULT,
        ledger: LedgerUse | str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        **settings: Any,
    ) -> None:
        self.settings = Settings.of(preset, **settings)
        self.schema = _schema(schema)
        self.constraints = _constraints(constraints)
        self._folder = Path(constraints).parent if isinstance(constraints, os.PathLike) else Path()
        if self.schema is not None and self.schema.unit is not None and self.settings.unit is None:
            self.settings = replace(self.settings, unit=self.schema.unit, max_rows=self.schema.max_rows)
        self._fitted: Fitted | None = None
        self._like: type | None = None
        self._ledger = LedgerUse.of(ledger, dataset)
        self._run: DurableRun | None = None
        self._draw_seed: int | None = None
        self._num_draws = 0

    def __repr__(self) -> str:
        state = "fitted" if self._fitted else "not fitted"
        return f"Synthesizer(epsilon={self.settings.epsilon:g}, delta={self.settings.delta:g}, {state})"

    def fit(
        self,
        table: object,
        *,
        query: str | None = None,
        num_rows: int | None = None,
        progress: Progress = silent,
        keep_releases: bool = False,
    ) -> Synthesizer:
        """Spend the budget on a table: a data frame, a path, or a database URL with a query. Can be repeated.

        Every call spends the whole budget once more: two fits of one table cost twice. `num_rows` says how many rows
        will be asked for, so that constraints which so many cannot satisfy are refused before anything is spent.

        With a ledger, the run is entered there before the table is read, and goes on with one of the same plan that
        ended early. With `keep_releases`, it can still go on after this returns, until `finish` is called.
        """
        if self._ledger is None:
            self._fit(table, self.settings, query=query, num_rows=num_rows, progress=progress)
            return self
        run = self._open_run(self._ledger, table, query=query, num_rows=num_rows)
        try:
            settings = with_draw_seed(self.settings, run)
            self._fit(table, settings, query=query, num_rows=num_rows, progress=progress, run=run)
            run.close()
        except BaseException:
            run.leave()
            raise
        self._run, self._draw_seed, self._num_draws = run, run.draw_seed, 0
        if not keep_releases:
            self.finish()
        return self

    def _fit(
        self,
        table: object,
        settings: Settings,
        *,
        query: str | None,
        num_rows: int | None,
        progress: Progress,
        run: DurableRun | None = None,
    ) -> None:
        """Read, plan and fit."""
        from kamino.io import read_table
        from kamino.pipeline.fitting import fit, open_gate
        from kamino.pipeline.plan.run_plan import plan_table
        from kamino.privacy.private import PrivateTable

        progress(Stage.READ)
        guarded = not settings.trust_domain
        private = PrivateTable(read_table(table, query=query, private=guarded))
        plan = plan_table(
            private,
            self.schema,
            self.constraints,
            settings,
            untyped=_is_csv(table) and guarded,
            folder=self._folder,
            num_rows=num_rows,
        )
        gate = open_gate(settings)
        if run is not None:
            run.attach(gate)
        with telling_what_is_spent(gate.ledger.to_dict, resumable=run is not None):
            self._fitted = fit(private, plan, gate, progress=progress)
        self._like = None if isinstance(table, str | os.PathLike) else type(table)

    def _open_run(self, use: LedgerUse, table: object, *, query: str | None, num_rows: int | None) -> DurableRun:
        """Enter the run in the ledger, before anything is read."""
        self.finish()
        facts = RunFacts(
            command="synth",
            settings=self.settings,
            schema=self.schema,
            constraints=self.constraints,
            files=self.reference_files,
            num_rows=num_rows,
            query=query,
            untyped=_is_csv(table) and not self.settings.trust_domain,
        )
        return open_run(use, table, facts)

    @property
    def run(self) -> DurableRun | None:
        """The run in a durable ledger whose releases are still stored."""
        return self._run

    def finish(self) -> None:
        """Remove the stored releases of a fit with `keep_releases`: what was drawn from it is safe."""
        if self._run is not None:
            self._run.finish()
            self._run = None

    def leave(self) -> None:
        """Keep the stored releases of a fit with `keep_releases`, for another process to go on from."""
        if self._run is not None:
            self._run.leave()
            self._run = None

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
        progress: Progress = silent,
        on_sweep: OnSweep | None = None,
    ) -> Any:
        """Draw a synthetic table of the kind that was fitted; by default as many rows as that had, give or take noise.

        `given` fixes attributes: `{"state": "CA"}`, or `{"state": ["CA", "NY"]}` for any of several. `sweeps` is how
        often rows are drawn again for soft constraints; `on_sweep` is told how their rates move. Drawing costs no
        privacy, however often.
        """
        from kamino.io.frames import like
        from kamino.pipeline.output.drawn_table import Ways, draw

        rows, rng = self._drawing(num_rows, seed, draw_number)
        ways = Ways(sweeps=sweeps, progress=progress, on_sweep=on_sweep)
        return like(draw(self.fitted, rows, rng, given=given, ways=ways), self._like)

    def write(
        self,
        path: str | os.PathLike[str],
        num_rows: int | None = None,
        *,
        given: Given | None = None,
        sweeps: int | None = None,
        seed: int | None = None,
        draw_number: int = 0,
        progress: Progress = silent,
        on_sweep: OnSweep | None = None,
        sign: Sign | None = None,
    ) -> WrittenTable:
        """Draw a table into a `.csv` or `.parquet` file, with its certificate beside it; options as in `sample`.

        The file is read back, and what is certified is counted in it. Table and certificate appear together. `sign`
        is a `kamino.pipeline.verifying.signatures.signer`, which puts a signature into the certificate.

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
        from kamino.pipeline.output.drawn_table import Ways
        from kamino.pipeline.output.writing import write_drawn

        rows, rng = self._drawing(num_rows, seed, draw_number)
        ways = Ways(sweeps=sweeps, progress=progress, on_sweep=on_sweep)
        return write_drawn(self.fitted, path, rows, rng, given=given, ways=ways, sign=sign)

    def _drawing(self, num_rows: int | None, seed: int | None, draw_number: int) -> tuple[int, np.random.Generator]:
        """How many rows to draw, and the source of randomness: the operating system's, unless there is a seed."""
        import numpy as np

        chosen = seed if seed is not None else self.settings.seed
        key = None if chosen is None else [chosen, draw_number]
        if chosen is None and self._draw_seed is not None:
            # The first draw of a run that went on is the first draw of that run; later ones differ from it.
            key = [self._draw_seed, draw_number, self._num_draws]
            self._num_draws += 1
        rng = np.random.default_rng(key)
        return self.fitted.num_rows if num_rows is None else num_rows, rng

    def certificate(
        self,
        table: pa.Table,
        *,
        sha256: str | None = None,
        sweeps: SweepLog | None = None,
        given: Given | None = None,
    ) -> dict[str, Any]:
        """The privacy of the fit and the constraints that `table`, drawn from it with `given`, keeps."""
        from kamino.io import read_table
        from kamino.pipeline.output.certificate import certificate_of, count_promised

        plain = read_table(table)
        counts = count_promised(self.fitted, plain)
        return certificate_of(
            self.fitted, rows=plain.num_rows, violations=counts, sha256=sha256, sweeps=sweeps, given=given
        )

    @property
    def ledger(self) -> dict[str, Any]:
        """Everything that was released, with its noise and its cost."""
        return self.fitted.ledger

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that holds public facts only."""
        from kamino.io.bundle import write_bundle

        write_bundle(self.fitted.to_bundle(), Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Synthesizer:
        """Read a fitted model; runs no code from the file."""
        from kamino.io.bundle import read_bundle
        from kamino.pipeline.fitted import Fitted

        fitted = Fitted.from_bundle(read_bundle(Path(path)), source=str(path))
        synthesizer = cls(fitted.schema, fitted.constraints)
        synthesizer.settings = replace(fitted.settings, seed=None)
        synthesizer._fitted = fitted
        return synthesizer


def _schema(schema: Schema | str | os.PathLike[str] | None) -> Schema | None:
    if schema is None or isinstance(schema, Schema):
        return schema
    return Schema.from_yaml(read_text(Path(schema), what="schema file"), source=str(schema))


def _constraints(constraints: Constraints | str | os.PathLike[str]) -> Constraints:
    if isinstance(constraints, Constraints):
        return constraints
    if isinstance(constraints, os.PathLike):
        path = Path(constraints)
        return Constraints.parse(read_text(path, what="constraint file"), source=str(path))
    return Constraints.parse(constraints)


def _is_csv(table: object) -> bool:
    return isinstance(table, str | os.PathLike) and os.fspath(table).lower().endswith((".csv", ".csv.gz"))
