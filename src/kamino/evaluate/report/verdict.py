"""The first thing a reader sees: is the synthetic table good, and what about it is not.

Bounds, for the mean total variation of pairs of columns: up to 0.05 is good, up to 0.15 fair; and no further apart than
two halves of the true table is good: chance alone drives wide columns far apart. The same bounds hold for bins of equal
mass and for the mean error of rank correlations: a table is as good as the worst of the three. A broken hard constraint
or a column of the wrong type is poor, whatever the distances. What could not be counted is not called broken, and is
not good.
"""

from __future__ import annotations

import math
from typing import Any

GOOD_DISTANCE = 0.05
FAIR_DISTANCE = 0.15
GOOD_ACCURACY_GAP = 0.02
FAIR_ACCURACY_GAP = 0.06
# A deviation within a quarter is that of the column for most uses; twice as large is another column.
DEVIATION_RATIO, POOR_DEVIATION_RATIO = 1.25, 2.0
# Ends of a number that moved by half of its deviation, or a tenth of its rows with values that do not exist, are seen.
TAILS_MOVED, INVENTED_SHARE = 0.5, 0.1
MOST_NAMED = 4
# Another sample of the same people also goes a little beyond the range of the first.
OUTSIDE_SHARE = 0.01
LEVELS = ("good", "fair", "poor")


def add_verdict(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its verdict, which follows from the other numbers in it.

    Guarantees:
        A broken hard constraint makes it poor.  [test_broken_hard_constraint_is_poor]
        A constraint that could not be counted keeps it from being good.  [test_what_is_not_counted_is_never_good]
        What only equal mass or ranks show also counts.  [test_what_equal_widths_hide_is_not_good]
        So do deviations, tails and invented values.  [test_what_bins_hide_of_numbers_is_in_the_verdict]
    """
    hard = [c for c in document["constraints"] if c["hard"]]
    broken = sum(1 for c in hard if c["synthetic"] is not None and c["synthetic"]["violations"])
    uncounted = [c for c in document["constraints"] if c["synthetic"] is None]
    distance, good = _pairs(document["marginals"])
    columns = document["columns"]
    every = [*columns, *document["identifiers"]]
    points = [
        (_distance_level(distance, good), "distances of pairs of columns"),
        (_distance_level(*_pairs(document["equal_mass"])), "distances of pairs of columns in bins of equal mass"),
        *_rank_points(document["ranks"]),
        ("poor" if broken else "good", "hard constraints"),
        ("fair" if uncounted else "good", "constraints that could not be counted"),
        ("poor" if any(not c["type_fits"] for c in every) else "good", "types of columns"),
        ("fair" if any(c["new_nulls"] for c in every) else "good", "nulls where the reference has none"),
        (
            "fair" if any(c["outside"] > OUTSIDE_SHARE * document["rows"]["synthetic"] for c in columns) else "good",
            "values outside the range of the reference",
        ),
        *_shape_points(columns),
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


FAITHFUL, UNFAITHFUL = "faithful to what was released", "not faithful to what was released"


def add_statement(document: dict[str, Any]) -> dict[str, Any]:
    """A public document with what it is, in place of a verdict: released statistics do not tell how good a table is.

    Guarantees:
        It praises nothing and calls nothing poor.  [test_the_public_page_does_not_praise]
    """
    judged = add_verdict(document)
    verdict = {name: value for name, value in judged["verdict"].items() if name != "level"}
    faithful = judged["verdict"]["level"] == "good"
    reasons = [{"text": reason["text"]} for reason in verdict["reasons"]]
    return {**judged, "verdict": {**verdict, "statement": FAITHFUL if faithful else UNFAITHFUL, "reasons": reasons}}


def _pairs(marginals: list[dict[str, Any]]) -> tuple[float, float]:
    """The mean distance of pairs, or of single columns where there is but one, and up to where it is good."""
    if not marginals:
        return 0.0, GOOD_DISTANCE
    summary = marginals[min(1, len(marginals) - 1)]
    return summary["mean"], max(GOOD_DISTANCE, summary["halves"] or 0.0)


def _rank_points(ranks: dict[str, Any] | None) -> list[tuple[str, str]]:
    if ranks is None:
        return []
    level = _distance_level(ranks["mean_difference"], max(GOOD_DISTANCE, ranks["halves"]))
    return [(level, "rank correlations")]


def _distance_level(distance: float, good: float) -> str:
    return _level(distance, good, max(FAIR_DISTANCE, 1.5 * good))


def _shape_points(columns: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What bins do not show of numbers, where it is further off than twice what chance does."""
    known = [each for each in columns if each.get("shape") is not None]
    spread, tails, invented = ([], [], [])  # type: tuple[list[str], list[str], list[str]]
    poor = False
    for each in known:
        shape, halves = each["shape"], each["shape"]["halves"]
        ratio, chance = _ratio(shape["deviation"]), _ratio(halves["deviation"])
        if ratio > max(DEVIATION_RATIO, chance**2):
            poor |= ratio > POOR_DEVIATION_RATIO
            spread.append(f"{each['name']} {_short(each['true']['std'])} → {_short(each['synthetic']['std'])}")
        if shape["tails"] > max(TAILS_MOVED, 2 * halves["tails"]):
            tails.append(each["name"])
        if (shape["invented"] or 0.0) > max(INVENTED_SHARE, 2 * (halves["invented"] or 0.0)):
            counts = (each[side]["distinct"] for side in ("true", "synthetic"))
            invented.append(f"{each['name']} {' → '.join(f'{count:,}' for count in counts)} different")
    return [
        (("poor" if poor else "fair") if spread else "good", f"standard deviations ({_named(spread)})"),
        ("fair" if tails else "good", f"tails ({_named(tails)})"),
        ("fair" if invented else "good", f"values that no row of the reference has ({_named(invented)})"),
    ]


def _ratio(found: float) -> float:
    return max(found, 1 / found) if found > 0 else math.inf


def _short(number: float | None) -> str:
    return "none" if number is None else f"{number:.3g}"


def _named(listed: list[str]) -> str:
    return ", ".join(listed[:MOST_NAMED]) + (
        f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    )


def _learning_points(learning: dict[str, Any] | None) -> list[tuple[str, str]]:
    if learning is None:
        return []
    gap = learning["accuracy"]["true"] - learning["accuracy"]["synthetic"]
    return [(_level(gap, GOOD_ACCURACY_GAP, FAIR_ACCURACY_GAP), "accuracy of trained models")]


def _level(value: float, good: float, fair: float) -> str:
    return "good" if value <= good else "fair" if value <= fair else "poor"
