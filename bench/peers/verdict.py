"""What the comparison shows, in words, from the records: where ours is ahead, and where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bench.peers.judge import TRUTH
from bench.peers.methods import METHODS, OURS
from bench.peers.records import Record

PEERS = tuple(method.name for method in METHODS if not method.is_ours)


def verdicts(records: Sequence[Record]) -> list[str]:
    """One line for each question, then one for what is missing."""
    return [
        _compare(records, "mean 2-way distance", lambda record: record.two),
        _compare(records, "CPU seconds", lambda record: record.cpu),
        _clean(records),
        _learned(records),
        *_missing(records),
    ]


def _mean(records: Sequence[Record], table: str, name: str, measure: Callable[[Record], float | None]) -> float | None:
    found = [r for r in records if r.table == table and r.method == name and r.two is not None]
    values = [value for value in map(measure, found) if value is not None]
    return float(np.mean(values)) if values else None


def _compare(records: Sequence[Record], what: str, measure: Callable[[Record], float | None]) -> str:
    """Whether ours is below each peer that finished."""
    behind, compared = [], 0
    for table in sorted({record.table for record in records}):
        ours = _mean(records, table, OURS, measure)
        for peer in PEERS:
            theirs = _mean(records, table, peer, measure)
            if ours is not None and theirs is not None:
                compared += 1
                behind += [f"{peer} on {table}"] if theirs <= ours else []
    outcome = f"not below {', '.join(behind)}" if behind else "below each"
    return f"{what[0].upper()}{what[1:]}, ours against peers that made a table ({compared} comparisons): {outcome}."


def _clean(records: Sequence[Record]) -> str:
    """Hard violations, ours and theirs."""
    hard = [r for r in records if r.hard_pairs is not None]
    ours = sum(r.hard_pairs or 0 for r in hard if r.method == OURS)
    broken = sum(1 for r in hard if r.method in PEERS and r.hard_pairs)
    # br2000's constraints are all soft: there a peer cannot break any
    could = sum(1 for r in hard if r.method in PEERS and any(not rule.startswith("soft:") for rule in r.violations))
    tables = f"of {could} tables of peers, {broken} have some"
    return f"Pairs that violate a hard constraint: ours {ours:,} in all runs; {tables}."


def _learned(records: Sequence[Record]) -> str:
    scores = {r.method: r.accuracy for r in records if r.accuracy is not None}
    if TRUTH not in scores or OURS not in scores:
        return "Models trained: not run."
    above = [peer for peer in PEERS if scores.get(peer, 0.0) >= scores[OURS]]
    short = scores[TRUTH] - scores[OURS]
    judged = sum(peer in scores for peer in PEERS)
    scored = f"above each of {judged} peers that were scored" if judged else "no peer was scored"
    rest = f"not above {', '.join(above)}" if above else scored
    return (
        f"Models trained on adult: ours {scores[OURS]:.4f}, {short:.4f} below the truth's {scores[TRUTH]:.4f}; {rest}."
    )


def _missing(records: Sequence[Record]) -> Iterator[str]:
    """What made no table, and why."""
    for table in sorted({record.table for record in records}):
        lost = {r.method: r.problem for r in records if r.table == table and r.problem}
        if lost:
            yield f"No table on {table}: " + "; ".join(f"{name} ({problem})" for name, problem in lost.items()) + "."
