"""A run in a durable ledger: what it is entered as, whether it goes on with an earlier one, and under which name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kamino
from kamino.advice import starting_anew
from kamino.constraints.collection import Constraints
from kamino.errors import InputError, LedgerError
from kamino.io.databases.credentials import shown_source
from kamino.limits import MAX_NAME_CHARS
from kamino.pipeline.inputs import path_from
from kamino.pipeline.settings import Backend, Settings, WeightMode
from kamino.schema.schema import Schema

if TYPE_CHECKING:
    from kamino.privacy.durable.durable_run import DurableRun
    from kamino.privacy.durable.store import DurableLedger


def _silent(text: str) -> None:
    """Tell nobody."""
    del text


@dataclass(frozen=True, kw_only=True)
class LedgerUse:
    """Which durable ledger a run is entered in, and how.

    dataset: the name of what the releases are about; None for the name of the file, or the address of the database.
    resume: whether to go on with an unfinished run of the same plan: True must, False must not, None if there is one.
    anchor: a file on another disk where the heads of the ledger are kept, so that one that was set back is refused.
    tell: is told, in a line, of what the user should know.
    """

    path: Path
    dataset: str | None = None
    resume: bool | None = None
    anchor: Path | None = None
    tell: Callable[[str], None] = _silent

    @staticmethod
    def of(ledger: LedgerUse | str | os.PathLike[str] | None, dataset: str | None = None) -> LedgerUse | None:
        """What was given, in one form."""
        if isinstance(ledger, LedgerUse):
            return ledger
        if ledger is None:
            if dataset is not None:
                raise InputError(f"found the name of a dataset, {dataset!r}, and no ledger; expected both or none")
            return None
        return LedgerUse(path=path_from(ledger, what="ledger"), dataset=dataset)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What decides the releases of a run, besides the table. All of it is public.

    `files` are public files that are read beside the table; `untyped`: types are found within the budget.
    """

    command: str
    settings: Settings
    schema: Schema | None
    constraints: Constraints = field(default_factory=Constraints)
    files: Sequence[Path] = ()
    num_rows: int | None = None
    query: str | None = None
    untyped: bool = False
    finds_domains: bool = True
    more: Mapping[str, Any] | None = None

    def fingerprint(self, dataset: str) -> str:
        """A hash of all of it, and of the version of Kamino: two runs with the same one ask for the same releases."""
        from kamino.privacy.durable.hash_chain import canonical

        facts = {
            "version": kamino.__version__,
            "dataset": dataset,
            "command": self.command,
            "settings": self.settings.to_json(),
            "schema": None if self.schema is None else self.schema.to_yaml(),
            "constraints": str(self.constraints),
            "files": [[str(path), _sha256(path)] for path in self.files],
            "rows": self.num_rows,
            "query": self.query,
            "untyped": self.untyped,
            "more": dict(self.more or {}),
        }
        return hashlib.sha256(canonical(facts).encode("ascii")).hexdigest()

    @property
    def is_sampled(self) -> bool:
        """Whether the run may make sampled releases, whose price no mu² bounds."""
        soft = any(not each.is_hard for each in self.constraints)
        return self.settings.backend is Backend.NEURAL or (self.settings.weights is WeightMode.PAPER and soft)

    def reserved(self) -> tuple[float, float]:
        """The most mu², and the most delta for finding categories, that the run may spend under its relation."""
        from kamino.engine.finding_policy import FINDING
        from kamino.privacy.accounting.calibration import max_mu
        from kamino.schema import Categorical

        budget, share = self.settings.budget, self.settings.delta * FINDING.delta
        if not self.finds_domains or self.settings.trust_domain:
            return max_mu(budget) ** 2, 0.0
        if self.schema is None:
            # Typed columns may turn out to need no delta, and then all of it goes to the noise.
            return max_mu(budget, reserved_delta=share if self.untyped else 0.0) ** 2, share
        # What is missing may still come from public sources, and then all of delta goes to the noise.
        needed = any(isinstance(self.schema[name], Categorical) for name in self.schema.missing_domains)
        return max_mu(budget) ** 2, share if needed else 0.0


def dataset_name(use: LedgerUse, table: object) -> str:
    """The name of the dataset: as given, or the name of a file, or the address of a database without credentials.

    Guarantees:
        It follows from no private row.  [test_the_name_of_a_dataset_is_public]
    """
    name = use.dataset
    if name is None and isinstance(table, str | os.PathLike):
        text = os.fspath(table)
        name = shown_source(text) if "://" in text else Path(text).name
    if name is None:
        raise InputError("found a ledger and no name for the dataset; expected dataset='...' for a table in memory")
    if not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise InputError(
            f"found a name of a dataset of {len(name)} characters, expected 1 to {MAX_NAME_CHARS}, all printable"
        )
    return name


def open_run(use: LedgerUse, table: object, facts: RunFacts) -> DurableRun:
    """Go on with an unfinished run of the same plan, or enter a new one with all that it may spend.

    Called before the table is read.

    Raises:
        BudgetError: the policy of the dataset does not allow the run.
        LedgerError: the ledger cannot be used, or there is nothing to go on with.

    Guarantees:
        What a killed run paid for is not paid again.  [test_random_kills_then_resume]
        A run is refused before its table is read.  [test_a_run_over_the_policy_reads_nothing]
    """
    from kamino.privacy.durable.durable_run import begin, go_on
    from kamino.privacy.durable.store import DurableLedger

    _refuse_unfit(facts.settings)
    dataset = dataset_name(use, table)
    plan = facts.fingerprint(dataset)
    is_new = use.anchor is not None and not use.anchor.exists()
    ledger = DurableLedger.open(use.path, version=kamino.__version__, anchor=use.anchor)
    if is_new:
        use.tell(f"{use.anchor}: begun, to keep the heads of {use.path} from line {ledger.num_lines:,} on")
    try:
        earlier = go_on(ledger, plan, dataset) if use.resume is not False else None
        if earlier is not None:
            use.tell(_going_on(earlier))
            return earlier
        _tell_others(use, ledger, dataset, plan)
        return begin(ledger, _planned(facts, dataset, plan))
    except BaseException:
        ledger.close_file()
        raise


@contextmanager
def entered(use: LedgerUse | None, table: object, facts: RunFacts) -> Iterator[DurableRun | None]:
    """A run in the durable ledger, if there is one: closed when the block ends well, and else left to go on later."""
    if use is None:
        yield None
        return
    run = open_run(use, table, facts)
    try:
        yield run
        run.close()
    except BaseException:
        run.leave()
        raise


def with_draw_seed(settings: Settings, run: DurableRun) -> Settings:
    """The settings with the run's own seed for choices that cost no privacy."""
    return replace(settings, draw_seed=run.draw_seed)


def standing(run: DurableRun) -> str:
    """What the dataset of a run has come to, in a line."""
    from kamino.pipeline.output.release_mark import mark_of_runs
    from kamino.privacy.durable.policing import bound_of, epsilon_of_total, total_cost

    planned, ledger = run.state.planned, run.ledger
    policy, budget = ledger.policies.get(planned.dataset), planned.budget
    price = ledger.price(planned.dataset, delta=budget.delta, neighbours=budget.neighbours)
    if policy is None:
        text = f"epsilon {price:.4g} at delta {budget.delta:g}, without a policy"
    else:
        total = epsilon_of_total(total_cost(ledger.runs.values(), policy), policy)
        most = epsilon_of_total(bound_of(policy), policy)
        text = f"epsilon {total:.4g} of {most:.4g} at delta {policy.budget.delta:g}"
    made = ledger.runs_of(planned.dataset)
    runs = "1 run" if len(made) == 1 else f"{len(made):,} runs"
    mark = mark_of_runs(price, budget.delta, [each.planned.mark for each in made])
    end = f"; {mark}" if mark else ""
    return f"ledger {ledger.path}: run {planned.run}; {planned.dataset!r} is at {text}, after {runs}{end}"


def _planned(facts: RunFacts, dataset: str, plan: str) -> Any:
    from kamino.pipeline.output.release_mark import mark_before
    from kamino.privacy.durable.ledger_lines import PlannedRun

    settings, unit = facts.settings, facts.settings.privacy_unit
    gaussian, finding_delta = facts.reserved()
    before = mark_before(settings)
    return PlannedRun(
        run="new",
        dataset=dataset,
        command=facts.command,
        plan=plan,
        started=_now(),
        version=kamino.__version__,
        budget=settings.budget,
        unit=unit.column,
        max_rows=unit.max_rows,
        gaussian=gaussian,
        finding_delta=finding_delta,
        sampled=facts.is_sampled,
        mark="" if before.is_for_release else before.mark,
    )


def _now() -> str:
    """The time at which a run begins: it has read nothing yet, so that this says nothing of the table."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _refuse_unfit(settings: Settings) -> None:
    if not settings.budget.is_private:
        raise InputError(
            "found epsilon inf with a ledger; a run that is not private has no price. Leave the ledger out"
        )
    if settings.jobs > 1 or settings.cluster is not None:
        raise InputError(
            "found jobs or a cluster with a ledger; releases are stored one after the other. Leave them or the ledger "
            "out"
        )


def _going_on(run: DurableRun) -> str:
    planned, stored = run.state.planned, run.num_stored
    releases = "1 release is" if stored == 1 else f"{stored:,} releases are"
    return (
        f"going on with run {planned.run}, begun {planned.started}: {releases} stored, and what was charged is not "
        f"charged again ({starting_anew()} starts anew, and pays again)"
    )


def _tell_others(use: LedgerUse, ledger: DurableLedger, dataset: str, plan: str) -> None:
    """Say that there are unfinished runs of other plans; refuse where one had to be gone on with."""
    from kamino.privacy.durable.durable_run import unfinished

    others = unfinished(ledger, dataset)
    named = ", ".join(run.planned.run for run in others[:5])
    if use.resume:
        same = any(run.planned.plan == plan for run in others)
        found = f"found unfinished runs ({named})" if others else "found no unfinished run"
        reason = "a process is at work on it" if same else "expected one with the same settings, schema, rules, version"
        raise LedgerError(f"{use.path}: {found} of {dataset!r} to go on with; {reason}. Nothing was released")
    if others and use.resume is None:
        use.tell(
            f"ledger {use.path}: unfinished runs of {dataset!r} ({named}) have other settings, schema, rules or "
            "version, or are at work; this is a new run"
        )


def _sha256(path: Path) -> str | None:
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return None  # whoever reads it says what is wrong
