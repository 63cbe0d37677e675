"""A job: one run on one table, from opening it to the written table. The command line, Python, audits and suggestions
all run through it, so that what is planned, audited and run is the same.

    open -> planned -> fitting -> fitted -> writing -> written

It may be watched and cancelled from other threads, and goes on where it can without paying twice.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kamino.errors import CancelledError, InputError, ModelError
from kamino.pipeline.job_events import EventLog, JobEvent, JobState
from kamino.pipeline.ledgering import RunFacts, entered, with_draw_seed
from kamino.pipeline.output.draws import DrawRequest, RandomSource, draw_into
from kamino.pipeline.output.trying import try_target
from kamino.pipeline.run_source import RunRequest, SourceFacts, open_source, plan_source
from kamino.pipeline.spending import telling_what_is_spent
from kamino.pipeline.stages import Progress, Stage, silent
from kamino.privacy import Entry, Gate

if TYPE_CHECKING:
    from kamino.io.frame_types import FrameKind
    from kamino.pipeline.fitted import Fitted
    from kamino.pipeline.output.drawn_table import Ways
    from kamino.pipeline.output.writing import WrittenTable
    from kamino.pipeline.plan.run_plan import RunPlan
    from kamino.pipeline.settings import Settings
    from kamino.pipeline.verifying.signatures import Sign
    from kamino.privacy.durable.durable_run import DurableRun
    from kamino.privacy.private import PrivateTable

Made = TypeVar("Made")


class Job:
    """One run on one table. It holds the sealed table as long as it is not fitted, and public facts after that.

    >>> from kamino.datasets import tax
    >>> from kamino.pipeline.settings import Settings
    >>> job = Job.open(tax(300), RunRequest(settings=Settings(trust_domain=True, seed=1), num_rows=20))
    >>> job.plan().is_complete, job.state.value
    (True, 'planned')
    >>> job.fit().num_rows > 0, job.state.value
    (True, 'fitted')

    Guarantees:
        Whoever opens a table plans the same.  [test_an_audit_plans_what_a_run_plans]
        A cancelled job makes no further release.  [test_a_cancelled_job_releases_nothing_more]
        It goes on only where nothing is paid twice.  [test_a_job_goes_on_where_nothing_is_paid_twice]
        What it shows depends on releases and public facts.  [test_what_a_job_shows_is_public]
        The private table is not kept.  [test_a_fitted_job_keeps_no_private_row]
    """

    def __init__(self, source: object, request: RunRequest) -> None:
        self.request = request
        self._source = source
        self._state = JobState.OPEN
        self._log = EventLog()
        self._cancelled = threading.Event()
        self._opened: tuple[PrivateTable, SourceFacts] | None = None
        self._facts: SourceFacts | None = None
        self._plan: RunPlan | None = None
        self._gate: Gate | None = None
        self._run: DurableRun | None = None
        self._fitted: Fitted | None = None
        self._written: WrittenTable | None = None
        self._random = RandomSource(seed=request.settings.seed)

    @classmethod
    def open(cls, source: object, request: RunRequest | None = None) -> Job:
        """A job on a data frame, a path or the address of a database. Nothing is read before it is planned."""
        return cls(source, RunRequest() if request is None else request)

    def __repr__(self) -> str:
        return f"Job({self._state.value})"

    @property
    def state(self) -> JobState:
        """How far it is."""
        return self._state

    @property
    def facts(self) -> SourceFacts:
        """What is public about the table."""
        return self._facts if self._facts is not None else self._open()[1]

    @property
    def fitted(self) -> Fitted:
        """The fitted model."""
        if self._fitted is None:
            raise ModelError(f"found a job that is {self._state.value}; expected one that is fitted: call fit() first")
        return self._fitted

    @property
    def run(self) -> DurableRun | None:
        """The run in a durable ledger whose releases are still stored."""
        return self._run

    @property
    def random(self) -> RandomSource:
        """The random numbers of the tables that are drawn."""
        return self._random

    def events(self, since: int = 0, *, timeout: float = 0.0) -> tuple[JobEvent, ...]:
        """What happened, from a number on; waits so many seconds for something, from whichever thread."""
        return self._log.since(since, timeout=timeout)

    def cancel(self) -> None:
        """Ask it to stop, from whichever thread: it does before its next release, or the next part of a table."""
        self._cancelled.set()

    def plan(self) -> RunPlan:
        """Read the table and plan the run: everything before the first release. Spends nothing.

        Guarantees:
            It raises what `fit` would raise before the first release.  [test_a_dry_run_refuses_what_a_run_refuses]
        """
        if self._plan is None:
            self._plan = self._planned(self.request.settings)
            self._enter(JobState.PLANNED)
        return self._plan

    def fit(self, *, progress: Progress = silent, keep_releases: bool = False) -> Fitted:
        """Spend the budget on the table, and return the fitted model.

        With a ledger, the run is entered there before the table is read, unless it was planned before. With
        `keep_releases` it can go on after this returns, until `finish` is called.
        """
        from kamino.pipeline.fitting import fit

        self._refuse_paying_twice()
        told = self._telling(progress)

        def work(settings: Settings) -> Fitted:
            told(Stage.READ)
            plan = self._planned(settings)
            return self.spend(lambda private, gate: fit(private, plan, gate, progress=told), settings=settings)

        with self._doing(JobState.FITTING, then=JobState.FITTED):
            with self.entered(self.run_facts()) as run:
                fitted = work(self._settings(run))
            self._fitted = replace(fitted, frame=self._frame())
            self._kept_only()
            if self._run is not None and not keep_releases:
                self.finish()
        return self._fitted

    def resume(self, *, progress: Progress = silent, keep_releases: bool = False) -> Fitted:
        """Go on after it was cancelled or failed: with a ledger from the releases that are stored there."""
        if self._state not in (JobState.CANCELLED, JobState.FAILED):
            raise InputError(f"found a job that is {self._state.value}; expected one that was cancelled or failed")
        self._cancelled.clear()
        return self.fit(progress=progress, keep_releases=keep_releases)

    def write(
        self,
        path: str | os.PathLike[str],
        asked: DrawRequest | None = None,
        ways: Ways | None = None,
        *,
        sign: Sign | None = None,
    ) -> WrittenTable:
        """Draw a table into a file or a database, with its certificate. Costs no privacy."""
        from kamino.pipeline.output.drawn_table import Ways

        chosen = ways or Ways()
        with self._doing(JobState.WRITING, then=JobState.WRITTEN):
            self._written = draw_into(
                self.fitted,
                path,
                asked or DrawRequest(num_rows=self.request.num_rows),
                self._random,
                replace(chosen, progress=self._telling(chosen.progress)),
                sign=sign,
                catalogue=self.facts.catalogue,
            )
        return self._written

    def finish(self) -> None:
        """Remove the stored releases: what was drawn from them is safe."""
        if self._run is not None:
            self._run.finish()
            self._run = None

    def leave(self) -> None:
        """Keep the stored releases, for another process to go on from."""
        if self._run is not None:
            self._run.leave()
            self._run = None

    def to_json(self) -> dict[str, Any]:
        """The job as plain data, for a page that shows it."""
        entries = self._gate.ledger.entries if self._gate is not None else ()
        return {
            "state": self._state.value,
            "settings": self.request.settings.to_json(),
            "rows": self.request.num_rows,
            "plan": None if self._plan is None else self._plan.to_json(),
            "releases": len(entries),
            "events": len(self.events()),
            "ledger": None if self._gate is None else self._gate.ledger.to_dict(),
            "written": None if self._written is None else str(self._written),
        }

    def spend(self, work: Callable[[PrivateTable, Gate], Made], *, settings: Settings | None = None) -> Made:
        """Let `work` release something of the table through a gate that this job watches, charges and stores."""
        from kamino.pipeline.fitting import open_gate

        settings = self.request.settings if settings is None else settings
        gate = self._gate = open_gate(settings)
        gate.ledger.watch(self._before_release, after=self._after_release)
        if self._run is not None:
            self._run.attach(gate)
        with telling_what_is_spent(gate.ledger.to_dict, settings, resumable=self._run is not None):
            return work(self._open()[0], gate)

    @contextmanager
    def entered(self, facts: RunFacts) -> Iterator[DurableRun | None]:
        """The run in the durable ledger, if there is one: closed when the block ends well, else left to go on later."""
        try:
            with entered(self.request.ledger, self._source, facts) as run:
                self._run = run
                yield run
        except BaseException:
            self._run = None
            raise
        if run is not None:
            self._random = RandomSource(seed=self.request.settings.seed, draw_seed=run.draw_seed)

    def run_facts(self) -> RunFacts:
        """What decides the releases of the run, as a durable ledger enters it."""
        from kamino.io import is_untyped

        asked = self.request
        return RunFacts(
            command=asked.command,
            settings=asked.settings,
            schema=asked.schema,
            constraints=asked.constraints,
            files=asked.files,
            num_rows=asked.num_rows,
            query=asked.reading.query,
            untyped=is_untyped(self._source) and asked.guarded,
            more=asked.reading.to_json() or None,
        )

    def _open(self) -> tuple[PrivateTable, SourceFacts]:
        if self._opened is None:
            self._opened = open_source(self._source, self.request)
            self._facts = self._opened[1]
        return self._opened

    def _planned(self, settings: Settings) -> RunPlan:
        if self._plan is not None and self._plan.settings == settings:
            return self._plan
        private, facts = self._open()
        self._plan = plan_source(private, facts, replace(self.request, settings=settings))
        if self.request.output is not None:
            try_target(self.request.output, self._plan.schema, self._plan.columns, facts.catalogue)
        return self._plan

    def _settings(self, run: DurableRun | None) -> Settings:
        return self.request.settings if run is None else with_draw_seed(self.request.settings, run)

    def _frame(self) -> FrameKind | None:
        """The types that what is drawn comes back with: those of the frame, unless the given schema names another."""
        kind, schema = self.facts.kind, self.request.schema
        given = schema.attributes.items() if schema is not None else ()
        return None if kind is None else kind.without([name for name, attribute in given if attribute.dtype])

    def _kept_only(self) -> None:
        """Let go of the table, and of the source, which may be a data frame."""
        self._opened, self._source = None, None

    def _refuse_paying_twice(self) -> None:
        if self._state.is_busy or self._fitted is not None:
            raise InputError(f"found a job that is {self._state.value}; expected a new one: a second fit pays again")
        made = len(self._gate.ledger.entries) if self._gate is not None else 0
        if made and self.request.ledger is None:
            raise InputError(
                f"found a job that was stopped after {made} releases, which no ledger holds; expected one with a "
                "ledger, which goes on. Another job on the table pays again"
            )

    @contextmanager
    def _doing(self, state: JobState, *, then: JobState) -> Iterator[None]:
        before = self._state
        self._enter(state)
        try:
            yield
        except BaseException as problem:
            if state is JobState.WRITING:
                self._enter(before)  # the model is still there
            else:
                self._enter(JobState.CANCELLED if isinstance(problem, CancelledError) else JobState.FAILED)
            raise
        self._enter(then)

    def _enter(self, state: JobState) -> None:
        self._state = state
        self._log.add("state", state.value)

    def _telling(self, progress: Progress) -> Progress:
        """Who is told of stages, and the events of the job as well."""

        def tell(stage: Stage, done: int | None = None, total: int = 1) -> None:
            self._stop_if_asked()
            self._log.add("stage", stage.value, done=done or 0, total=total)
            # Whoever cares for stages only is told of no parts.
            progress(stage) if done is None else progress(stage, done, total)

        return cast("Progress", tell)

    def _before_release(self, entry: Entry) -> None:
        del entry
        self._stop_if_asked()

    def _after_release(self, entry: Entry) -> None:
        self._log.add("release", entry.what, attributes=entry.attributes)

    def _stop_if_asked(self) -> None:
        if self._cancelled.is_set():
            raise CancelledError("the job was cancelled; what it had released before is in its ledger")
