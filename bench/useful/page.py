"""The page of all figures, in Markdown, made from the records alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.paper.pages import Grid
from bench.paper.spread import Spread, written
from bench.useful.cases import DEFAULT, MAIN_EPSILON, Mode, Record
from bench.useful.judging import LARGER_IS_BETTER, METRICS
from bench.useful.printed import MOST_COST, PRINTED, SOURCE, WANTED

Records = Sequence[Record]
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
{SOURCE}; for the paper's four tables that version's own figures."""
#: Metrics of which three digits are enough.
SMALL = frozenset({"query", "gap", "auc trees", "auc linear", "parity"})


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
    failed = [f"- {record.case.key}: {record.problem}" for record in records if record.problem]
    parts += ["## What failed", "\n".join(failed)] if failed else []
    parts.append(f"Made by:\n\n```sh\n{command}\n```")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


_KEPT = "Rows or pairs of rows that violate a hard constraint, and seconds of processor time to fit and draw."
_COST = (
    "Each figure with constraints over that of the same settings with constraints ignored "
    f'(`sampling="independent"`), for auc the other way round: above 1, constraints cost something. '
    f"Above {MOST_COST:g} in bold."
)
_RIGHT = "Share of rows with the value that the true table gives to their determinant, for each functional dependency."
_PARITY = "Share of rows in which the last of so many bits is the parity of the others. Chance: half of them."


def beside_others(records: Records) -> Grid:
    """Every table: what was printed, what is wanted, what was measured."""
    modes = (Mode.KEPT, Mode.OTHER)
    main = [r for r in _at_main(records) if r.case.mode in modes and not r.case.changes and "parity" not in r.metrics]
    shown = _shown(main)
    rows: list[tuple[str, ...]] = []
    for table, group in _by(main, lambda r: r.case.table):
        # figures of whole tables say nothing about a few of their rows
        whole = all(r.case.rows is None for r in group)
        for printed in PRINTED.get(table, ()) if whole else ():
            rows.append((table, printed.who, *(_plain(printed.figures.get(name)) for name in shown)))
        for who, runs in _by(group, lambda r: r.case.part):
            label = _kamino(runs) if who == DEFAULT else who
            rows.append((table, label, *(_cell(runs, name) for name in shown)))
            if who == DEFAULT and table in WANTED and whole:
                rows.append((table, "wanted", *(_wanted(table, name, runs) for name in shown)))
    return Grid(header=("table", "who", *shown), rows=tuple(rows))


def constraints_kept(records: Records) -> Grid:
    """Hard violations with constraints kept and ignored, and what a run takes."""
    rows = []
    for table, group in _by(_without_parts(_at_main(records)), lambda r: r.case.table):
        kept, ignored = _of(group, Mode.KEPT), _of(group, Mode.IGNORED)
        rows.append(
            (
                *(table, _count(kept), _count(ignored)),
                *(_spread(Spread.of(r.cpu for r in runs), 1) for runs in (kept, ignored)),
            )
        )
    return Grid(header=("table", "violations", "constraints ignored", "CPU s", "constraints ignored"), rows=tuple(rows))


def cost(records: Records) -> Grid:
    """Each figure with constraints over that without."""
    main = _without_parts(_at_main(records))
    shown = _shown(main)
    rows = []
    for table, group in _by(main, lambda r: r.case.table):
        kept, ignored = _of(group, Mode.KEPT), _of(group, Mode.IGNORED)
        if kept and ignored:
            rows.append((table, *(_ratio_cell(ratio(kept, ignored, name)) for name in shown)))
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
    for table, group in _by(_without_parts(_at_main(records)), lambda r: r.case.table):
        for text in dict.fromkeys(text for r in group for text in r.right):
            shares = [
                _spread(Spread.of(r.right.get(text) for r in _of(group, mode)), 3) for mode in (Mode.KEPT, Mode.IGNORED)
            ]
            rows.append((table, f"`{text}`", *shares))
    return Grid(header=("table", "dependency", "right", "constraints ignored"), rows=tuple(rows))


def parity(records: Records) -> Grid:
    """The share of rows with the right parity."""
    rows = []
    for table, group in _by(_without_parts(_at_main(records)), lambda r: r.case.table):
        kept = _of(group, Mode.KEPT)
        if _known(kept, "parity"):
            rows.append((table, _cell(kept, "parity"), _wanted(table, "parity", kept)))
    return Grid(header=("table", "right", "wanted"), rows=tuple(rows))


def budgets(records: Records) -> Grid:
    """Each table by budget, where there is more than one."""
    plain = [r for r in records if r.case.is_plain]
    shown = _shown(plain)
    rows = []
    for table, group in _by(plain, lambda r: r.case.table):
        found = sorted({r.case.epsilon for r in group})
        for epsilon in found if len(found) > 1 else []:
            runs = [r for r in group if r.case.epsilon == epsilon]
            rows.append((table, f"{epsilon:g}", *(_cell(runs, name) for name in shown)))
    return Grid(header=("table", "epsilon", *shown), rows=tuple(rows))


def ablation(records: Records) -> Grid:
    """Each table with parts of the model switched off."""
    main = [r for r in _at_main(records) if r.case.mode is Mode.KEPT]
    tables = {r.case.table for r in main if r.case.changes}
    found = [r for r in main if r.case.table in tables]
    shown = _shown(found)
    rows = []
    for table, group in _by(found, lambda r: r.case.table):
        for part, runs in _by(group, lambda r: r.case.part):
            seconds = _spread(Spread.of(r.cpu for r in runs), 1)
            rows.append((table, part, *(_cell(runs, name) for name in shown), seconds))
    return Grid(header=("table", "without", *shown, "CPU s"), rows=tuple(rows))


def _at_main(records: Records) -> list[Record]:
    return [r for r in records if r.case.epsilon == MAIN_EPSILON]


def _without_parts(records: Records) -> list[Record]:
    return [r for r in records if r.case.part == DEFAULT]


def _of(records: Records, mode: Mode) -> list[Record]:
    return [r for r in records if r.case.mode is mode]


def _shown(records: Records) -> list[str]:
    """The metrics that have a column: parity has a table of its own."""
    return [name for name in METRICS if name != "parity" and _known(records, name)]


def _known(records: Records, metric: str) -> bool:
    return any(r.metrics.get(metric) is not None for r in records)


def _by(records: Records, key: Callable[[Record], str]) -> Iterable[tuple[str, list[Record]]]:
    """The records in groups, in the order in which these first come."""
    return [(name, [r for r in records if key(r) == name]) for name in dict.fromkeys(map(key, records))]


def _kamino(runs: Records) -> str:
    versions = dict.fromkeys(r.kamino for r in runs if r.kamino)
    return f"Kamino now ({', '.join(versions)}), runs: {sum(not r.problem for r in runs)}"


def _digits(metric: str) -> int:
    return 3 if metric in SMALL else 4


def _cell(runs: Records, metric: str) -> str:
    return _spread(Spread.of(r.metrics.get(metric) for r in runs), _digits(metric))


def _spread(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return ""
    return f"{spread.mean:.{digits}f}" if spread.count == 1 else written(spread, digits)


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _wanted(table: str, metric: str, runs: Records) -> str:
    """The bound, and whether the mean misses it."""
    bound, found = WANTED.get(table, {}).get(metric), Spread.of(r.metrics.get(metric) for r in runs)
    if bound is None:
        return ""
    sign = "≥" if metric in LARGER_IS_BETTER else "≤"
    met = found is None or (found.mean >= bound if sign == "≥" else found.mean <= bound)
    return f"{sign} {bound:g}" if met else f"{sign} {bound:g}, **missed**"


def _ratio_cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"**{value:.2f}**" if value > MOST_COST else f"{value:.2f}"


def _count(runs: Records) -> str:
    spread = Spread.of(r.violations for r in runs)
    return "" if spread is None else f"{spread.mean:,.0f}"
