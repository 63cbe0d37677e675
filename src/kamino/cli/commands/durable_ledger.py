"""`kamino ledger`: what was released about datasets over all runs, whether the record is whole, and how much may be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import kamino
from kamino.cli.console import counted, output_console, safe
from kamino.cli.options import shown_epsilon
from kamino.cli.plain_help import PlainCommand, PlainGroup
from kamino.errors import InputError, LedgerError
from kamino.pipeline.output.release_mark import mark_of_runs
from kamino.privacy import Budget, Neighbours
from kamino.privacy.durable.durable_run import close_by_hand, faults_of_stored, unfinished
from kamino.privacy.durable.hash_chain import START
from kamino.privacy.durable.ledger_lines import Composition, Policy
from kamino.privacy.durable.policing import RunState, bound_of, epsilon_of_total, keeps, total_cost
from kamino.privacy.durable.store import DurableLedger

ledger = typer.Typer(
    cls=PlainGroup,
    help="Show, check and limit what was released about a dataset, over all runs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="A ledger is made by kamino synth --ledger FILE, or by kamino ledger policy FILE.",
)
FileArgument = Annotated[Path, typer.Argument(help="The ledger: the FILE of kamino synth --ledger FILE.")]
AnchorOption = Annotated[
    Path | None, typer.Option("--anchor", help="The file that keeps the heads too: synth --anchor FILE.")
]
_MOST_RUNS = 50


@ledger.command(cls=PlainCommand)
def show(
    file: FileArgument,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only this dataset.")] = None,
    delta: Annotated[
        float | None,
        typer.Option("-d", "--delta", help="Price at this delta; by default that of the policy, or the largest asked."),
    ] = None,
) -> None:
    """Show what was released about each dataset, what all of it costs together, and the head of the ledger.

    The price is that of all releases of all runs at once, under both relations. Keep the head: `kamino ledger verify
    --head` then finds lines that were cut from the end.
    """
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"found delta {delta:g}; expected a number between 0 and 1")
    console = output_console()
    with DurableLedger.read(file) as found:
        names = [dataset] if dataset is not None else _datasets(found)
        if dataset is not None and dataset not in _datasets(found):
            raise LedgerError(f"{file}: found no dataset {dataset!r}; expected one of {', '.join(_datasets(found))}")
        for name in names:
            _print_dataset(console, found, name, delta)
        if not names:
            console.print("Nothing was released yet, and there is no policy.")
        console.print(safe(f"head {found.head}, {counted(found.num_lines, 'line')}"))
        _print_half(console, found)


@ledger.command(cls=PlainCommand)
def verify(
    file: FileArgument,
    head: Annotated[
        str | None, typer.Option("--head", help="A head that `kamino ledger show` printed: it must be in the chain.")
    ] = None,
    anchor: AnchorOption = None,
) -> None:
    """Check every line of a ledger, and stored releases: nothing changed, put back or elsewhere, no policy exceeded.

    Lines that were cut from the end are found with --head, or with --anchor. Exit code 1 if anything is wrong.
    """
    console = output_console()
    try:
        lines = _check_chain(file, head)
        with DurableLedger.read(file, anchor=anchor) as found:
            over = [name for name, policy in found.policies.items() if not _keeps(found, policy)]
            half, faults = found.half_line, faults_of_stored(found)
    except LedgerError as problem:
        console.print(safe(str(problem), style="bold red"))
        raise typer.Exit(1) from None
    for name in over:
        console.print(safe(f"{name}: what was released and is set aside goes over the policy", style="bold red"))
    if half:
        console.print(
            safe(
                f"{file}: {half:,} bytes follow the last whole line: cut, or left by a process that died "
                "(the next run removes them)",
                style="bold red",
            )
        )
    for fault in faults:
        console.print(safe(fault, style="bold red"))
    if over or half or faults:
        raise typer.Exit(1)
    console.print(
        safe(
            f"{file}: {counted(lines, 'line')}, the chain is whole"
            f"{'' if head is None else ' and has the given head'}"
            f"{'' if anchor is None else f' and the last head of {anchor}'}; every policy holds"
        )
    )


@ledger.command(cls=PlainCommand)
def policy(
    file: FileArgument,
    dataset: Annotated[str | None, typer.Option("--dataset", help="The dataset that the policy is for.")] = None,
    epsilon: Annotated[
        float | None, typer.Option("-e", "--epsilon", help="The most that all runs together may cost.")
    ] = None,
    delta: Annotated[float, typer.Option("-d", "--delta", help="At this delta.")] = 1e-6,
    neighbours: Annotated[
        Neighbours, typer.Option("--neighbours", help="One unit more or less, or one replaced.")
    ] = Neighbours.ADD_REMOVE,
    unit: Annotated[
        str | None, typer.Option("--unit", help="Column that says whose a row is; by default single rows.")
    ] = None,
    composition: Annotated[
        Composition,
        typer.Option(
            "--composition",
            help="gaussian: all releases as one Gaussian mechanism; basic: epsilons of runs add up (for neural runs).",
        ),
    ] = Composition.GAUSSIAN,
    finding_delta: Annotated[
        float | None,
        typer.Option(
            "--finding-delta",
            help="Part of delta kept for finding categories; by default a tenth, or none if the first run needs all.",
        ),
    ] = None,
    anchor: AnchorOption = None,
) -> None:
    """Set how much all runs about a dataset may cost together; without --epsilon, show the policies.

    A run that could go over is refused before it reads anything. The last policy of a dataset counts; earlier ones
    stay in the ledger.
    """
    console = output_console()
    if epsilon is None:
        with DurableLedger.read(file) as found:
            _print_policies(console, found, dataset)
        return
    if dataset is None:
        raise InputError("found a policy for no dataset; expected --dataset NAME (a file's name, unless a run says so)")
    wanted = Policy(
        dataset=dataset,
        budget=Budget(epsilon=epsilon, delta=delta, neighbours=neighbours),
        unit=unit,
        composition=composition,
        finding_delta=finding_delta,
    )
    with DurableLedger.open(file, version=kamino.__version__, anchor=anchor) as found:
        entered = found.set_policy(wanted)
        console.print(safe(f"{dataset}: {_policy_text(entered)}"))
        if not _keeps(found, entered):
            console.print(
                safe("Note: the runs so far are over it already; no further run will be allowed.", style="yellow")
            )


@ledger.command(cls=PlainCommand)
def close(
    file: FileArgument,
    run: Annotated[str, typer.Argument(help="The run, as `kamino ledger show` lists it.")],
    anchor: AnchorOption = None,
) -> None:
    """Give up an unfinished run: what it was charged for stays charged, and what it had set aside is free again."""
    with DurableLedger.open(file, version=kamino.__version__, anchor=anchor) as found:
        state = close_by_hand(found, run)
        output_console().print(
            safe(f"run {run}: {counted(len(state.charged), 'charge')} stay; closed as {state.outcome}")
        )


def _check_chain(file: Path, head: str | None) -> int:
    """Read every line; a head that is given must be the hash of one of them."""
    if head is not None and (len(head) != len(START) or set(head) - set("0123456789abcdef")):
        raise InputError(f"found a head of {len(head)} characters; expected the 64 that kamino ledger show prints")
    with DurableLedger.read(file) as found:
        if head is not None and head not in found.heads:
            raise LedgerError(
                f"{file}: found no line with the given head; lines were cut from the end, or it is another ledger"
            )
        return found.num_lines


def _datasets(found: DurableLedger) -> list[str]:
    return list(dict.fromkeys([*found.policies, *(run.planned.dataset for run in found.runs.values())]))


def _keeps(found: DurableLedger, policy: Policy) -> bool:
    return keeps(total_cost(found.runs.values(), policy), bound_of(policy))


def _print_dataset(console: Console, found: DurableLedger, name: str, delta: float | None) -> None:
    runs, policy = found.runs_of(name), found.policies.get(name)
    console.print(safe(name, style="bold"))
    if policy is not None:
        total = epsilon_of_total(total_cost(runs, policy), policy)
        console.print(safe(f"  policy      {_policy_text(policy)}; spent and set aside: epsilon {total:.4g}"))
    if runs:
        at = delta or (policy.budget.delta if policy else max(run.planned.budget.delta for run in runs))
        prices = {each: found.price(name, delta=at, neighbours=each) for each in Neighbours}
        text = ", ".join(f"{_RELATIONS[each]}: epsilon {_price(prices[each])}" for each in Neighbours)
        console.print(safe(f"  released    {text}, at delta {at:g}"))
        own = prices[runs[-1].planned.budget.neighbours]
        mark = mark_of_runs(own, at, [run.planned.mark for run in runs])
        if mark:
            console.print(safe(f"  mark        {mark}", style="bold red"))
        if len({run.planned.unit for run in runs}) > 1:
            console.print(
                safe("  Note: runs protect different units; their common price means little.", style="yellow")
            )
        console.print(_runs_table(found, runs))


_RELATIONS = {Neighbours.ADD_REMOVE: "one more or one less", Neighbours.REPLACE: "one replaced"}


def _runs_table(found: DurableLedger, runs: tuple[RunState, ...]) -> Table:
    grid = Table(
        title=f"{counted(len(runs), 'run')}{'' if len(runs) <= _MOST_RUNS else ', the last of them'}",
        title_justify="left",
    )
    for title in ("run", "begun", "command", "epsilon", "delta", "neighbours", "unit"):
        grid.add_column(title)
    grid.add_column("charges", justify="right")
    grid.add_column("state")
    waiting = {run.planned.run for name in _datasets(found) for run in unfinished(found, name)}
    for run in runs[-_MOST_RUNS:]:
        planned = run.planned
        cells = (
            planned.run,
            planned.started,
            planned.command,
            shown_epsilon(planned.budget.epsilon),
            f"{planned.budget.delta:g}",
            planned.budget.neighbours.value,
            planned.unit or "a row",
            f"{len(run.charged):,}",
            _state(run, is_waiting=planned.run in waiting),
        )
        grid.add_row(*(safe(cell) for cell in cells))
    return grid


def _state(run: RunState, *, is_waiting: bool) -> str:
    marked = f", {run.planned.mark}" if run.planned.mark else ""
    if run.is_open:
        return ("unfinished" if is_waiting else "unfinished, releases lost") + marked
    return f"{run.outcome}{', output not written' if is_waiting else ''}{marked}"


def _print_policies(console: Console, found: DurableLedger, dataset: str | None) -> None:
    chosen = {name: each for name, each in found.policies.items() if dataset in (None, name)}
    for name, each in chosen.items():
        console.print(safe(f"{name}: {_policy_text(each)}"))
    if not chosen:
        console.print("There is no policy: every run is entered, and none refused.")


def _policy_text(policy: Policy) -> str:
    budget = policy.budget
    unit = "a row" if policy.unit is None else f"all rows with one value of {policy.unit!r}"
    kept = "" if not policy.finding_delta else f", {policy.finding_delta:g} of it for finding categories"
    return (
        f"at most epsilon {budget.epsilon:g} at delta {budget.delta:g}{kept}; {budget.neighbours.value}, unit: {unit}, "
        f"{policy.composition.value} composition"
    )


def _price(epsilon: float) -> str:
    return "infinite" if epsilon == float("inf") else f"{epsilon:.4g}"


def _print_half(console: Console, found: DurableLedger) -> None:
    if found.half_line:
        console.print(
            safe(f"Note: {found.half_line:,} bytes follow the last whole line and count for nothing.", style="yellow")
        )
