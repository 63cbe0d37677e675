"""How a run ends on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kamino.cli.console import safe
from kamino.cli.options import shown_epsilon
from kamino.errors import visible
from kamino.pipeline.output.taken import DECLARED
from kamino.pipeline.plan.mostly_noise import MOSTLY_NOISE

_RELATIONS = {"add_remove": "one more or one less", "replace": "one replaced"}


def print_run(
    console: Console, certificate: Mapping[str, Any], *, output: Path | str | None, seconds: float | None = None
) -> None:
    """Budget, domains, constraints and where the table went; `seconds` only where no private table was read.

    How long a run takes depends on the table, so `kamino synth` does not say it.
    """
    grid = Table.grid(padding=(0, 2))
    for label, text in _facts(certificate, output, seconds):
        grid.add_row(safe(label, style="bold"), text)
    console.print(grid)
    taken = certificate.get("columns", [])
    if any(each["why"] != DECLARED or each["lost"] is not None for each in taken):
        console.print(_columns(taken))
    console.print(safe(f"What it means: {certificate['words']['meaning']}."), soft_wrap=True)
    for each in (c for c in certificate["constraints"] if "reference" in c):
        shared = f"{each['reference']['share_following']:.1%} of the rows follow {each['reference']['file']}"
        console.print(safe(f"{each['text']}: {shared}."))
    soft = [c for c in certificate["constraints"] if not c["hard"]]
    if soft:
        console.print(_soft(soft))
        moved = [c for c in soft if c["sweeps"]]
        if moved:
            console.print(_sweeps(moved))
    for note in certificate["notes"]:
        warns = note.startswith(MOSTLY_NOISE)
        console.print(safe(f"{'Warning' if warns else 'Note'}: {note}.", style="bold red" if warns else "yellow"))


def _columns(columns: list[dict[str, Any]]) -> Table:
    """What each column was taken for, and why."""
    grid = Table(title="What each column was taken for", title_justify="left")
    for title in ("column", "taken for", "domain", "why"):
        grid.add_column(title, overflow="fold")
    grid.add_column("cells lost (noisy)", justify="right")
    for each in columns:
        lost = each["lost"]
        share = "–" if lost is None else f"{min(lost['outside'] + lost['unreadable'], 1.0):.1%} ± {lost['within']:.1%}"
        grid.add_row(safe(each["name"]), each["taken_for"], safe(each["domain"]), safe(each["why"]), share)
    return grid


def _soft(constraints: list[dict[str, Any]]) -> Table:
    """What was measured of soft constraints, and what the table does."""
    grid = Table(title="Soft constraints: part of pairs (or rows) that violate", title_justify="left")
    grid.add_column("constraint", overflow="fold")
    for title in ("measured (noisy)", "this table", "weight"):
        grid.add_column(title, justify="right")
    for each in constraints:
        known = "measured" in each and each["measured"] is not None
        measured = f"{each['measured']:.3%} ± {each['deviation']:.3%}" if known else "–"
        weight = f"{each['weight']:.4g}" if "weight" in each else "given"
        grid.add_row(safe(each["text"]), measured, f"{each['rate']:.3%}", weight)
    return grid


def _sweeps(constraints: list[dict[str, Any]]) -> Table:
    """How rates moved: after the first pass, and after each sweep."""
    longest = max(len(each["sweeps"]) for each in constraints)
    grid = Table(title="Rates after the first pass and after each sweep", title_justify="left")
    grid.add_column("constraint", overflow="fold")
    for number in range(longest):
        grid.add_column(str(number), justify="right")
    for each in constraints:
        grid.add_row(safe(each["text"]), *(f"{rate:.3%}" for rate in each["sweeps"]))
    return grid


def _facts(certificate: Mapping[str, Any], output: Path | str | None, seconds: float | None) -> list[tuple[str, Text]]:
    privacy = certificate["privacy"]
    spent = privacy["spent_epsilon"]
    facts = [
        ("privacy", safe(f"epsilon {shown_epsilon(spent[privacy['neighbours']])}, delta {privacy['delta']:g}, ")),
        ("", safe(_both_relations(spent, privacy["neighbours"]))),
        ("domains", safe(_domains(certificate["domains"]) + _finding(certificate["finding_domains"]))),
        ("constraints", _constraints(certificate["constraints"])),
    ]
    facts[0][1].append(safe(f"unit: {privacy['unit']}, {privacy['releases']} releases"))
    if certificate["mark"] != "for release":
        facts.append(("mark", safe(certificate["mark"], style="bold red")))
    if certificate.get("given"):
        facts.append(("given", safe(_given(certificate["given"]))))
    where = f" in {output}" if output else ""
    took = f", {seconds:.1f} s" if seconds is not None else ""
    facts.append(("rows", safe(f"{certificate['rows']:,}{where}{took}")))
    return facts


def _both_relations(spent: dict[str, float | None], own: str) -> str:
    """What was spent, and the most that it can be under the other relation."""
    said = (f"{_RELATIONS[r]}: epsilon {'' if r == own else 'at most '}{shown_epsilon(e)}" for r, e in spent.items())
    return ", ".join(said)


def _given(conditions: dict[str, Any]) -> str:
    parts = []
    for name, values in conditions.items():
        words = ["" if v is None else str(v) for v in (values.values() if isinstance(values, dict) else values)]
        parts.append(f"{name}={('..' if isinstance(values, dict) else ' or ').join(words)}")
    return visible(f"{', '.join(parts)} in every row")


def _domains(domains: dict[str, list[str]]) -> str:
    words = {
        "declared": "declared in the schema",
        "asserted": "taken from the table because you called them public",
        "private": "found within the budget",
    }
    found = [f"{len(names)} {words[source]}" for source, names in domains.items() if names]
    return ", ".join(found) or "none"


def _finding(cost: dict[str, float]) -> str:
    return f" (which took {cost['share']:.1%} of it, and {cost['delta']:.2g} of delta)" if cost["share"] else ""


def _constraints(constraints: list[dict[str, Any]]) -> Text:
    hard = [c for c in constraints if c["hard"]]
    broken = [c for c in hard if c["violations"]]
    if not constraints:
        return safe("none given")
    if broken:
        return safe(f"{len(broken)} of {len(hard)} hard constraints violated", style="bold red")
    soft = len(constraints) - len(hard)
    if not hard:
        return safe(f"{soft} soft, no hard given")
    return safe(f"no violation of {len(hard)} hard" + (f", {soft} soft" if soft else ""), style="green")
