"""The page of the comparison: tables in Markdown and two plots, made from the records alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.paper.pages import Grid
from bench.paper.plots import bars
from bench.paper.spread import Spread, percent, written
from bench.peers.judge import TRUTH
from bench.peers.methods import METHODS
from bench.peers.records import LEARNING_ROWS, Record
from bench.peers.verdict import verdicts

WORDS = """\
The same table, the same budget, as many rows as the table has, one process for each run, judged by the same functions:
total variation of marginals (numbers in 16 bins of equal width over the true range), pairs of rows that violate a
constraint. Domains (categories, bounds, whether there are nulls) are public for all. CPU seconds are user and system
time of the whole process, from reading the table to writing the result, children included, with one thread each;
memory is the largest resident set. Peers know nothing of constraints: none of them takes any.
Mean ± deviation over the runs; peers run once, because of their length."""
NOTES = (
    "PATE-CTGAN, as installed, draws the conditions for its output from rows of the true table and from exact "
    "frequencies of categories; neither is part of its accounting.",
    "SmartNoise takes the list of categories from the data; with public domains that is the same list.",
    "smartnoise-synth does not declare `packaging`, which PATE-CTGAN imports; its environment here has it.",
    "The sampler of SmartNoise MST (mbi 1.1.0) gives a column its values in order along the rows of a group; columns "
    "with a common parent therefore move together, which is seen in 2-way distances and not in 1-way ones.",
    "The DP-VAE was written for this comparison and was not tuned. Its noise is found with the same accounting "
    "library as ours.",
)
Group = Sequence[Record]


def write_page(records: Group, docs: Path, *, limit: float) -> None:
    """Write peers.md and its plots."""
    docs.mkdir(parents=True, exist_ok=True)
    tables = sorted({record.table for record in records})
    first = next(iter(records), None)
    budget = f"(epsilon, delta) = ({first.epsilon:g}, {first.delta:g})" if first else "not run"
    parts = ["# Beside other synthesizers", WORDS, f"Budget: {budget}. A run may take {limit:,.0f} CPU s at most."]
    parts += ["## What it shows", "\n".join(f"- {line}" for line in verdicts(records))]
    for name, unit, measure, log in (
        ("two-way", "total variation", _two, False),
        ("cpu", "CPU seconds, logarithmic", _cpu, True),
    ):
        file, title = f"peers-{name}.svg", "Mean 2-way distance" if name == "two-way" else "CPU seconds of a run"
        (docs / file).write_text(_plot(title, unit, records, tables, measure, log=log), encoding="utf-8")
        parts.append(f"![{title}, by table and method; the same figures are in the tables below]({file})")
    for table in tables:
        mine = [record for record in records if record.table == table]
        parts += [f"## {table}", results(mine).to_markdown(), "Violations, in percent of pairs:"]
        parts.append(violations(mine).to_markdown())
    parts += ["## Models trained on adult", learning(records)]
    given = Grid(header=("method", "given"), rows=tuple((method.name, method.given) for method in METHODS))
    parts += ["## What each was given", given.to_markdown(), "\n".join(f"- {note}" for note in NOTES)]
    command = f"make bench-peers DATA=FOLDER   # python -m bench.peers.run --data FOLDER --limit {limit:g}"
    parts.append(f"Made by:\n\n```sh\n{command}\n```")
    (docs / "peers.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def results(records: Group) -> Grid:
    """One row for each method: distances, violations, cost, and what went wrong."""
    header = ("method", "runs", "1-way mean", "1-way max", "2-way mean", "hard violations, pairs", "CPU s", "GiB", "")
    rows: list[tuple[str, ...]] = []
    for method in METHODS:
        group = [record for record in records if record.method == method.name]
        good = [record for record in group if record.two is not None]
        problem = next((record.problem for record in group if record.problem), "")
        if not group:
            rows.append((method.name, "0", *("",) * 6, "not run"))
            continue
        spent = good or group
        rows.append(
            (
                method.name,
                str(len(good)),
                *(_cell(good, measure, 4) for measure in (_one, _one_max, _two)),
                _cell(good, _pairs, 0) if _any_hard(good) else "none is hard",
                _cell(spent, _cpu, 0),
                _cell(spent, _memory, 2),
                problem,
            )
        )
    return Grid(header=header, rows=tuple(rows))


def violations(records: Group) -> Grid:
    """One row for each method that made a table, and for the true one; one column for each constraint."""
    good = [record for record in records if record.violations]
    rules = list(good[0].violations) if good else []
    rows = []
    for name in (TRUTH, *(method.name for method in METHODS)):
        group = [record for record in good if record.method == name]
        if group:
            cells = (percent(Spread.of(r.violations.get(rule) for r in group)) for rule in rules)
            rows.append((name, *(cell.removesuffix(" (one run)") for cell in cells)))
    return Grid(header=("method", *(f"`{rule}`" for rule in rules)), rows=tuple(rows))


def learning(records: Group) -> str:
    """The mean accuracy and F1 over all attributes and nine classifiers."""
    scored = {record.method: record for record in records if record.accuracy is not None}
    if not scored:
        return "Not run."
    words = (
        "Nine classifiers for each attribute, trained on the first output of each method and tested on true rows that "
        f"*truth* was not trained on; at most {LEARNING_ROWS:,} training rows. Mean over attributes and classifiers."
    )
    rows = []
    for name in (TRUTH, *(method.name for method in METHODS)):
        found = scored.get(name)
        cells = (f"{found.accuracy:.4f}", f"{found.f1:.4f}") if found else ("not run", "not run")
        rows.append((name, *cells))
    return f"{words}\n\n{Grid(header=('trained on', 'accuracy', 'F1'), rows=tuple(rows)).to_markdown()}"


def _cell(group: Group, measure: Callable[[Record], float | None], digits: int) -> str:
    spread = Spread.of(measure(record) for record in group)
    if spread is None:
        return ""
    if not spread.mean and not spread.deviation:
        return "0"
    return written(spread, digits).removesuffix(" (one run)")


def _plot(
    title: str,
    unit: str,
    records: Group,
    tables: Sequence[str],
    measure: Callable[[Record], float | None],
    *,
    log: bool,
) -> str:
    """Bars of the methods that made a table."""
    good = [record for record in records if record.two is not None]
    series = {}
    for method in METHODS:
        mine = [record for record in good if record.method == method.name]
        if mine:
            series[method.name] = [Spread.of(measure(r) for r in mine if r.table == table) for table in tables]
    return bars(title, unit, tables, series, log=log)


def _any_hard(group: Group) -> bool:
    rules = [rule for record in group for rule in record.violations]
    return not rules or any(not rule.startswith("soft:") for rule in rules)


def _one(record: Record) -> float | None:
    return record.one


def _one_max(record: Record) -> float | None:
    return record.one_max


def _two(record: Record) -> float | None:
    return record.two


def _pairs(record: Record) -> float | None:
    return record.hard_pairs


def _cpu(record: Record) -> float | None:
    return record.cpu


def _memory(record: Record) -> float | None:
    return record.memory
