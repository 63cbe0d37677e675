"""The first thing a reader sees: is the synthetic table good, and what about it is not.

Bounds, for the mean total variation of pairs of columns: up to 0.05 is good, up to 0.15 fair; and no further apart than
two halves of the true table is good: chance alone drives wide columns far apart. A broken hard constraint or a column
of the wrong type is poor, whatever the distances. What could not be counted is not called broken, and is not good.
"""

from __future__ import annotations

from typing import Any

GOOD_DISTANCE = 0.05
FAIR_DISTANCE = 0.15
GOOD_ACCURACY_GAP = 0.02
FAIR_ACCURACY_GAP = 0.06
# Another sample of the same people also goes a little beyond the range of the first.
OUTSIDE_SHARE = 0.01
LEVELS = ("good", "fair", "poor")


def add_verdict(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its verdict, which follows from the other numbers in it.

    Guarantees:
        A broken hard constraint makes it poor.  [test_broken_hard_constraint_is_poor]
        A constraint that could not be counted keeps it from being good.  [test_what_is_not_counted_is_never_good]
    """
    hard = [c for c in document["constraints"] if c["hard"]]
    broken = sum(1 for c in hard if c["synthetic"] is not None and c["synthetic"]["violations"])
    uncounted = [c for c in document["constraints"] if c["synthetic"] is None]
    marginals = document["marginals"]
    summary: dict[str, Any] = marginals[min(1, len(marginals) - 1)] if marginals else {"mean": 0.0, "halves": None}
    distance = summary["mean"]
    good = max(GOOD_DISTANCE, summary["halves"] or 0.0)
    columns = document["columns"]
    every = [*columns, *document["identifiers"]]
    points = [
        (_level(distance, good, max(FAIR_DISTANCE, 1.5 * good)), "distances of pairs of columns"),
        ("poor" if broken else "good", "hard constraints"),
        ("fair" if uncounted else "good", "constraints that could not be counted"),
        ("poor" if any(not c["type_fits"] for c in every) else "good", "types of columns"),
        ("fair" if any(c["new_nulls"] for c in every) else "good", "nulls where the reference has none"),
        (
            "fair" if any(c["outside"] > OUTSIDE_SHARE * document["rows"]["synthetic"] for c in columns) else "good",
            "values outside the range of the reference",
        ),
        *_learning_points(document["learning"]),
    ]
    verdict = {
        "level": max((level for level, _ in points), key=LEVELS.index),
        "hard": len(hard),
        "broken": broken,
        "uncounted": sum(c["hard"] for c in uncounted),
        "distance": distance,
        "good_distance": good,
        "columns": len(every),
        "type_faults": sum(not c["type_fits"] for c in every),
        "outside_columns": sum(bool(c["outside"]) for c in columns),
        "new_null_columns": sum(c["new_nulls"] for c in every),
        "reasons": [{"level": level, "text": text} for level, text in points if level != "good"],
    }
    return {**document, "verdict": verdict}


def _learning_points(learning: dict[str, Any] | None) -> list[tuple[str, str]]:
    if learning is None:
        return []
    gap = learning["accuracy"]["true"] - learning["accuracy"]["synthetic"]
    return [(_level(gap, GOOD_ACCURACY_GAP, FAIR_ACCURACY_GAP), "accuracy of trained models")]


def _level(value: float, good: float, fair: float) -> str:
    return "good" if value <= good else "fair" if value <= fair else "poor"
