"""The page of all figures, in Markdown, made from the records alone."""

from __future__ import annotations

from pathlib import Path

from bench.paper.pages import Grid
from bench.paper.spread import Spread
from bench.useful.cases import DEFAULT, Mode, Record
from bench.useful.cells import (
    Records,
    at_main,
    cell,
    count_cell,
    grouped,
    is_known,
    kamino_label,
    of_mode,
    plain_cell,
    ratio_cell,
    shown_metrics,
    spread_cell,
    wanted_cell,
    without_parts,
)
from bench.useful.judging import LARGER_IS_BETTER, METRICS
from bench.useful.peers import label_of, read_peers, verdicts
from bench.useful.printed import MOST_COST, PRINTED, SOURCE, WANTED

WORDS = f"""\
Budget (1, 1e-6) where no other is given, domains public, constraints on. Mean ± deviation over runs; a figure without
deviation is one run. Tables with a description for an outside judge have that judge's figures, the others ours, which
are defined alike:

- *width*: mean total variation distance (half the L1) of all 1-way and 2-way and of 100 random 3-way marginals, numbers
  in 16 bins of equal width; *mass*: the same in 20 bins of equal mass
- *query*: mean relative error of 500 random counting queries; *rank*: mean error of Spearman correlations
- *gap*: distance of the quartiles of differences of related columns, in standard deviations; *nulls*: error of the
  share of rows in which two columns are null together
- *auc*: area under the curve, on true rows held back, of boosted trees and of logistic regression trained on the
  synthetic table; *accuracy*: of nine classifiers for each column. Of these, larger is better

*Kamino 0.1*, *MST* and *chance* (the true rows drawn again with replacement) were not measured here:
{SOURCE}; for the paper's four tables that version's own figures.
*dpmm*'s rows are one run each of `python -m bench.peers.judged`, with public domains and at most 900 CPU s: numbers by
its own discretiser, dates as days and times as seconds. Those with widths only are from [peers](experiments/peers.md),
with the same functions and budget. It takes no constraints."""


def write_page(records: Records, path: Path, *, command: str) -> None:
    """Write the page; a part without records is left out."""
    parts = ["# How useful the tables are", WORDS]
    few = sorted({r.case.rows for r in records if r.case.rows is not None})
    parts += [f"**A quick look, at {', '.join(f'{rows:,}' for rows in few)} rows of each table only.**"] if few else []
    for title, make, words in (
        ("Beside others", beside_others, ""),
        ("Constraints kept", constraints_kept, _KEPT),
        ("What constraints cost", cost, _COST),
        ("Right values", right_values, _RIGHT),
        ("Parity", parity, _PARITY),
        ("By budget", budgets, ""),
        ("Parts of the model switched off", ablation, "Figures without the part; *default* has all parts."),
    ):
        grid = make(records)
        if grid.rows:
            parts += [f"## {title}", *filter(None, [words]), grid.to_markdown()]
        if make is beside_others and (lines := [f"- {line}" for line in peers_ahead(records)]):
            parts += [_AHEAD, "\n".join(lines)]
    failed = [f"- {record.case.key}: {record.problem}" for record in records if record.problem]
    parts += ["## What failed", "\n".join(failed)] if failed else []
    parts.append(f"Made by:\n\n```sh\n{command}\n```")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


_AHEAD = "The mean of ours beside each peer, at the digits shown:"
_KEPT = "Rows or pairs of rows that violate a hard constraint, and seconds of processor time to fit and draw."
_COST = (
    "Each figure with constraints over that of the same settings with constraints ignored "
    f'(`sampling="independent"`), for auc the other way round: above 1, constraints cost something. '
    f"Above {MOST_COST:g} in bold."
)
_RIGHT = "Share of rows with the value that the true table gives to their determinant, for each functional dependency."
_PARITY = "Share of rows in which the last of so many bits is the parity of the others. Chance: half of them."


def beside_others(records: Records) -> Grid:
    """Every table: what was printed, what peers made, what was measured, what is wanted."""
    main, measured = _main_figures(records), read_peers()
    shown = shown_metrics(main)
    rows: list[tuple[str, ...]] = []
    for table, group in grouped(main, lambda r: r.case.table):
        # figures of whole tables say nothing about a few of their rows
        whole = _is_whole(group)
        for printed in PRINTED.get(table, ()) if whole else ():
            rows.append((table, printed.who, *(plain_cell(printed.figures.get(name)) for name in shown)))
        for peer in measured if whole else ():
            if peer.case.table == table:
                rows.append((table, label_of(peer), *(cell([peer], name) for name in shown)))
        for who, runs in grouped(group, lambda r: r.case.part):
            label = kamino_label(runs) if who == DEFAULT else who
            rows.append((table, label, *(cell(runs, name) for name in shown)))
            if who == DEFAULT and table in WANTED and whole:
                rows.append((table, "wanted", *(wanted_cell(table, name, runs) for name in shown)))
    return Grid(header=("table", "who", *shown), rows=tuple(rows))


def peers_ahead(records: Records) -> list[str]:
    """For each whole table, the columns in which a peer is not worse than the mean of ours."""
    ours: dict[str, dict[str, float]] = {}
    for table, group in grouped(without_parts(_main_figures(records)), lambda r: r.case.table):
        if _is_whole(group):
            means = {name: Spread.of(r.metrics.get(name) for r in group) for name in METRICS}
            ours[table] = {name: spread.mean for name, spread in means.items() if spread is not None}
    return list(verdicts(ours, read_peers()))


def _main_figures(records: Records) -> list[Record]:
    """Ours with constraints kept, and others', at the main budget."""
    modes = (Mode.KEPT, Mode.OTHER)
    main = [r for r in at_main(records) if r.case.mode in modes and not r.case.changes]
    return [r for r in main if "parity" not in r.metrics]


def _is_whole(records: Records) -> bool:
    return all(r.case.rows is None for r in records)


def constraints_kept(records: Records) -> Grid:
    """Hard violations with constraints kept and ignored, and what a run takes."""
    rows = []
    for table, group in grouped(without_parts(at_main(records)), lambda r: r.case.table):
        kept, ignored = of_mode(group, Mode.KEPT), of_mode(group, Mode.IGNORED)
        rows.append(
            (
                *(table, count_cell(kept), count_cell(ignored)),
                *(spread_cell(Spread.of(r.cpu for r in runs), 1) for runs in (kept, ignored)),
            )
        )
    return Grid(header=("table", "violations", "constraints ignored", "CPU s", "constraints ignored"), rows=tuple(rows))


def cost(records: Records) -> Grid:
    """Each figure with constraints over that without."""
    main = without_parts(at_main(records))
    shown = shown_metrics(main)
    rows = []
    for table, group in grouped(main, lambda r: r.case.table):
        kept, ignored = of_mode(group, Mode.KEPT), of_mode(group, Mode.IGNORED)
        if kept and ignored:
            rows.append((table, *(ratio_cell(ratio(kept, ignored, name)) for name in shown)))
    return Grid(header=("table", *shown), rows=tuple(rows))


def ratio(kept: Records, ignored: Records, metric: str) -> float | None:
    """The mean figure with constraints over that without, turned round where larger is better."""
    one, two = (Spread.of(r.metrics.get(metric) for r in runs) for runs in (kept, ignored))
    if one is None or two is None:
        return None
    above, below = (two.mean, one.mean) if metric in LARGER_IS_BETTER else (one.mean, two.mean)
    return above / below if below else 1.0 if not above else None


def right_values(records: Records) -> Grid:
    """The share of right values of each dependency, constraints kept and ignored."""
    rows = []
    for table, group in grouped(without_parts(at_main(records)), lambda r: r.case.table):
        for text in dict.fromkeys(text for r in group for text in r.right):
            shares = [
                spread_cell(Spread.of(r.right.get(text) for r in of_mode(group, mode)), 3)
                for mode in (Mode.KEPT, Mode.IGNORED)
            ]
            rows.append((table, f"`{text}`", *shares))
    return Grid(header=("table", "dependency", "right", "constraints ignored"), rows=tuple(rows))


def parity(records: Records) -> Grid:
    """The share of rows with the right parity."""
    rows = []
    for table, group in grouped(without_parts(at_main(records)), lambda r: r.case.table):
        kept = of_mode(group, Mode.KEPT)
        if is_known(kept, "parity"):
            rows.append((table, cell(kept, "parity"), wanted_cell(table, "parity", kept)))
    return Grid(header=("table", "right", "wanted"), rows=tuple(rows))


def budgets(records: Records) -> Grid:
    """Each table by budget, where there is more than one."""
    plain = [r for r in records if r.case.is_plain]
    shown = shown_metrics(plain)
    rows = []
    for table, group in grouped(plain, lambda r: r.case.table):
        found = sorted({r.case.epsilon for r in group})
        for epsilon in found if len(found) > 1 else []:
            runs = [r for r in group if r.case.epsilon == epsilon]
            rows.append((table, f"{epsilon:g}", *(cell(runs, name) for name in shown)))
    return Grid(header=("table", "epsilon", *shown), rows=tuple(rows))


def ablation(records: Records) -> Grid:
    """Each table with parts of the model switched off."""
    main = [r for r in at_main(records) if r.case.mode is Mode.KEPT]
    tables = {r.case.table for r in main if r.case.changes}
    found = [r for r in main if r.case.table in tables]
    shown = shown_metrics(found)
    rows = []
    for table, group in grouped(found, lambda r: r.case.table):
        for part, runs in grouped(group, lambda r: r.case.part):
            seconds = spread_cell(Spread.of(r.cpu for r in runs), 1)
            rows.append((table, part, *(cell(runs, name) for name in shown), seconds))
    return Grid(header=("table", "without", *shown, "CPU s"), rows=tuple(rows))
