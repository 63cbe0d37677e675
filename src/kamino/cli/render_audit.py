"""How an audit looks on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from kamino.audit.auditing import Audit, Check
from kamino.audit.playing import GameResult
from kamino.audit.probes import Probe
from kamino.cli.console import counted, safe
from kamino.planted.self_test import SelfTest

_FOR_THE_OWNER = (
    "For the owner, not for release: it was computed from the table itself. Of code without faults, passing says "
    "nothing about the table; which neighbour was worst, and what went wrong, does."
)
_NO_PROOF = "An audit is a test, no proof: it can show a fault, and cannot show that there is none."


def print_audit(console: Console, result: Audit, checks: Sequence[Check]) -> None:
    """The checks of one table with what they show, the game, and the verdict."""
    console.print(
        f"{counted(result.releases, 'release')}; claimed: epsilon {result.epsilon:g} at delta {result.delta:g}"
    )
    grid = Table()
    for name in ("check", "result", "what was done", "what it shows", "what it cannot show"):
        grid.add_column(name, overflow="fold")
    problems = {finding.check: finding.problems for finding in result.findings}
    for check in checks:
        found = problems[check.name]
        verdict = safe("FAILED", style="bold red") if found else safe("passed", style="green")
        grid.add_row(check.name, verdict, check.does, check.shows, check.cannot)
    console.print(grid)
    if result.game is not None:
        console.print(safe(_game_sentence(result.game)))
    for name, found in problems.items():
        for problem in found:
            console.print(safe(f"{name}: {problem}", style="red"))
    said = "No problem was found." if result.passed else "Problems were found: do not release what this run makes."
    console.print(safe(said, style="bold" if result.passed else "bold red"))
    console.print(safe(_NO_PROOF))
    console.print(safe(_FOR_THE_OWNER, style="dim"))


def print_self_test(console: Console, result: SelfTest, checks: Sequence[Check], probes: Sequence[Probe]) -> None:
    """The clean code, the planted faults, and what each check and each probe means."""
    console.print(_clean(result, checks))
    console.print(_probes(result, probes))
    console.print(_faults(result))
    looked: list[Check | Probe] = [*checks, *probes]
    for each in looked:
        console.print(safe(f"{each.name}: {each.does} {each.cannot}", style="dim"))
    for found in result.sound:
        for problem in found.problems:
            console.print(safe(f"{found.check} finds in the clean code: {problem}", style="bold red"))
    caught = sum(each.is_caught for each in result.faults)
    console.print(safe(f"{caught} of {counted(len(result.faults), 'planted fault')} caught.", style="bold"))
    if result.left_out:
        faults = counted(result.left_out, "fault")
        console.print(safe(f"{faults} of the neural backend not planted: kamino-synth[neural] is not installed."))
    console.print(
        safe("The clean code passes all checks." if result.is_clean else "The clean code FAILS.", style="bold")
    )
    console.print(safe(_NO_PROOF))


def _clean(result: SelfTest, checks: Sequence[Check]) -> Table:
    grid = Table(title="clean code, on made-up tables")
    grid.add_column("run", overflow="fold")
    for check in checks:
        grid.add_column(check.name)
    for name in ("claimed epsilon", "at least (95%)", "part of the claim", "games"):
        grid.add_column(name, justify="right")
    for audit in result.clean:
        passed = {finding.check: not finding.problems for finding in audit.findings}
        marks = [safe("ok" if passed[check.name] else "FAILED") for check in checks]
        game = audit.game
        numbers = [f"{game.bound:.3f}", f"{game.ratio:.2f}", f"{game.runs:,}"] if game else ["", "", ""]
        grid.add_row(audit.subject, *marks, f"{audit.epsilon:g}", *numbers)
    return grid


def _probes(result: SelfTest, probes: Sequence[Probe]) -> Table:
    grid = Table(title="clean code, part by part")
    for name in ("probe", "result", "what was done"):
        grid.add_column(name, overflow="fold")
    problems = {finding.check: finding.problems for finding in result.probed}
    for probe in probes:
        found = problems.get(probe.name, ())
        grid.add_row(probe.name, safe("; ".join(found) or "ok", style="bold red" if found else ""), probe.does)
    return grid


def _faults(result: SelfTest) -> Table:
    grid = Table(title="planted faults")
    grid.add_column("#", justify="right")
    for name in ("fault", "what is wrong", "caught by", "which said"):
        grid.add_column(name, overflow="fold")
    for number, each in enumerate(result.faults, start=1):
        check = each.check if each.is_caught else "MISSED"
        style = "" if each.is_caught else "bold red"
        grid.add_row(str(number), each.fault, each.wrong, safe(check, style=style), safe(each.said))
    return grid


def _game_sentence(game: GameResult) -> str:
    left = f" {counted(game.left_out, 'sampled release')} left out of the games." if game.left_out else ""
    return (
        f"Games: {game.right:,} of {game.runs:,} won, on the pair '{game.pair}'. With 95% confidence epsilon at delta "
        f"{game.delta:g} is at least {game.bound:.3f}; claimed: {game.claimed:g} (part: {game.ratio:.2f}). This holds "
        f"for noise of the claimed kind; whatever the noise, at least {game.plain:.3f}. By how far the truths of this "
        f"pair move, releases that are not sampled cost epsilon {game.pair_epsilon:.3f}: no game can show more of "
        f"them.{left}"
    )
