"""Tables that other synthesizers made, judged once, and where such a table is better than ours.

A peer takes minutes to hours for what takes us seconds. So its figures are kept in the sources: `bench.peers.judged`
measures them and writes the file, and the page shows them beside new figures of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.useful.cases import Record
from bench.useful.judging import LARGER_IS_BETTER, METRICS
from bench.useful.printed import MST, PRINTED

FIGURES = Path(__file__).with_name("peers.json")
#: Digits that are kept, more than the page shows.
KEPT_DIGITS = 6
#: Metrics of which three digits are shown, of the others four.
SMALL = frozenset({"query", "gap", "auc trees", "auc linear", "parity"})
#: Whose figures were printed elsewhere, and the methods that `bench.peers.judged` runs.
GOOGLE = "MST of google/dpsynth"
COMPARED = ("dpmm MST", "dpmm AIM")
Figures = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A synthesizer's figures of one table, or why there are none."""

    who: str
    figures: Figures
    problem: str = ""


def digits_of(metric: str) -> int:
    """How many digits of a metric are shown."""
    return 3 if metric in SMALL else 4


def read_peers(path: Path = FIGURES) -> list[Record]:
    """All that was measured, in the order of the file."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return [Record.from_json(document) for document in found]


def merge_peers(records: Iterable[Record], path: Path = FIGURES) -> None:
    """Add records to the file, each in place of an older one of the same case.

    Guarantees:
        Records of other cases stay.  [test_figures_of_peers_are_merged]
    """
    merged = {record.case.key: record for record in [*read_peers(path), *map(_rounded, records)]}
    documents = [merged[key].to_json() for key in sorted(merged)]
    path.write_text(json.dumps(documents, indent=1) + "\n", encoding="utf-8")


def _rounded(record: Record) -> Record:
    metrics = {name: None if value is None else round(value, KEPT_DIGITS) for name, value in record.metrics.items()}
    return replace(record, metrics=metrics, right={}, cpu=None if record.cpu is None else round(record.cpu, 1))


def label_of(record: Record) -> str:
    """Who, and what it took; or what came of it.

    >>> from bench.useful.cases import Case
    >>> label_of(Record(case=Case(table="t", part="AIM"), cpu=12.3))
    'AIM (one run, 12 CPU s)'
    >>> label_of(Record(case=Case(table="t", part="AIM"), cpu=900.1, problem="stopped at the limit of 900 CPU s"))
    'AIM (stopped at the limit of 900 CPU s)'
    """
    seconds = "" if record.cpu is None else f", {record.cpu:,.0f} CPU s"
    return f"{record.case.part} ({record.problem or f'one run{seconds}'})"


def peers_of(table: str, measured: Sequence[Record]) -> list[Peer]:
    """Every peer whose figures of a table are known: those that were printed, then those measured here."""
    rows = [row for row in PRINTED.get(table, ()) if row.who == MST]
    known = [Peer(who=GOOGLE, figures=row.figures) for row in rows]
    for record in measured:
        if record.case.table == table:
            figures = {name: value for name, value in record.metrics.items() if value is not None}
            known.append(Peer(who=record.case.part, figures=figures, problem=record.problem))
    return known


def verdicts(ours: Mapping[str, Figures], measured: Sequence[Record]) -> Iterator[str]:
    """For each table, the columns in which a peer is better than ours, or as good, at the digits that are shown.

    Guarantees:
        A peer that was not run on a table is named.  [test_the_page_shows_peers_and_where_they_are_ahead]
    """
    for table, figures in ours.items():
        peers = peers_of(table, measured)
        said = [verdict(figures, peer) for peer in peers]
        missing = [who for who in (GOOGLE, *COMPARED) if who not in {peer.who for peer in peers}]
        said += [f"not run: {', '.join(missing)}"] if missing else []
        yield f"{table}: {'; '.join(said)}."


def verdict(ours: Figures, peer: Peer) -> str:
    """One peer beside ours.

    >>> verdict({"rank": 0.02, "auc trees": 0.9, "gap": 0.1}, Peer(who="AIM", figures={"rank": 0.01, "auc trees": 0.9}))
    '**AIM is better in rank (0.0100, ours 0.0200)** and as good in auc trees, of 2 columns'
    >>> verdict({"rank": 0.02}, Peer(who="AIM", figures={"rank": 0.03}))
    'ours is better than AIM in all of 1 columns'
    """
    if peer.problem:
        return f"{peer.who} made no table ({peer.problem})"
    shared = [name for name in METRICS if name in ours and name in peer.figures]
    ahead = {name: _lead(name, ours[name], peer.figures[name]) for name in shared}
    better = [_pair(name, ours[name], peer.figures[name]) for name in shared if ahead[name] > 0]
    equal = [name for name in shared if ahead[name] == 0]
    said = [f"**{peer.who} is better in {', '.join(better)}**"] if better else []
    said += [f"{'' if better else f'{peer.who} is '}as good in {', '.join(equal)}"] if equal else []
    if not said:
        return f"ours is better than {peer.who} in all of {len(shared)} columns"
    return f"{' and '.join(said)}, of {len(shared)} columns"


def _lead(metric: str, ours: float, theirs: float) -> float:
    """Above 0 if theirs is better, at the digits that are shown."""
    digits = digits_of(metric)
    lead = round(ours, digits) - round(theirs, digits)
    return -lead if metric in LARGER_IS_BETTER else lead


def _pair(metric: str, ours: float, theirs: float) -> str:
    digits = digits_of(metric)
    return f"{metric} ({theirs:.{digits}f}, ours {ours:.{digits}f})"
