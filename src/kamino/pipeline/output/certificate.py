"""What a synthetic table may be accompanied by: how private it is, and which constraints it keeps."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

import kamino
from kamino.constraints import DenialConstraint, count_violations, print_constraint
from kamino.constraints.counting.ranks import RankedTable
from kamino.engine.lost_cells import LOST
from kamino.engine.typing import SPELLINGS
from kamino.evaluate.following import Following
from kamino.limits import text_problem
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.conditions import Given, plain_condition
from kamino.pipeline.output.hidden_columns import hidden_note
from kamino.pipeline.output.learned_maps import expected_right, map_notes
from kamino.pipeline.output.notes import (
    distance_notes,
    fewer_notes,
    found_notes,
    group_notes,
    promise_notes,
    short_year_notes,
    trusted_notes,
)
from kamino.pipeline.output.provenance import meanings_of, today, words_of
from kamino.pipeline.output.release_mark import spent_of_fit, weak_notes
from kamino.pipeline.output.taken import column_notes, taken_columns
from kamino.pipeline.plan.expectations import accuracy_of_run
from kamino.pipeline.plan.hopeless import most_rows
from kamino.pipeline.plan.mostly_noise import noise_note, noisy_columns
from kamino.pipeline.plan.references import References, to_json
from kamino.sampling import Sampling
from kamino.sampling.soft.soft_notes import soft_notes
from kamino.sampling.soft.sweeps import SweepLog
from kamino.schema import Source

FORMAT = "kamino-certificate-1"
"""Names of later versions may be added; what a name means, or how it is priced, changes only with this number."""


def count_promised(fitted: Fitted, table: pa.Table) -> dict[DenialConstraint, int]:
    """How often a synthetic table breaks each constraint that is promised for it. The one count of a run.

    Guarantees:
        Writing a table counts each constraint once.  [test_violations_are_counted_once]
    """
    ranked = RankedTable(table)
    return {constraint: count_violations(ranked, constraint) for constraint in fitted.promised}


def certificate_of(
    fitted: Fitted,
    *,
    rows: int,
    violations: Mapping[DenialConstraint, int],
    following: Mapping[DenialConstraint, Following] = MappingProxyType({}),
    sha256: str | None = None,
    sweeps: SweepLog | None = None,
    given: Given | None = None,
) -> dict[str, Any]:
    """The facts of a run and of the table it made. Public: made from the ledger, the schema and the synthetic table.

    `rows`, `violations` and `following` are those of the table, which is counted by `count_table`, not again here.
    `sweeps` is what `Synthesizer.sample` told while it drew the table, `given` the condition it was asked to meet.
    With schema, constraints and the events of the ledger in it, `kamino verify` derives all of it again from the table.

    Guarantees:
        `kamino verify` accepts it beside its table.  [test_real_certificates_hold]
        A run with a seed or without noise is marked so.  [test_certificate_marks_what_must_not_be_released]
    """
    ledger = fitted.ledger
    mark = spent_of_fit(fitted).mark
    sources = fitted.schema.sources
    document: dict[str, Any] = {
        "format": FORMAT,
        "kamino": kamino.__version__,
        "date": today(),
        "mark": mark,
        "privacy": {
            "epsilon": ledger["epsilon"],
            "delta": ledger["delta"],
            "neighbours": ledger["neighbours"],
            "unit": ledger["unit"]["text"],
            "spent_epsilon": ledger["spent_epsilon"],
            "meaning": meanings_of(ledger),
            "releases": len(ledger["entries"]),
        },
        "domains": {source.value: [name for name in sources if sources[name] is source] for source in Source},
        "finding_domains": finding_cost(ledger),
        "columns": taken_columns(fitted.schema, fitted.found),
        "rows": rows,
        "method": {name: getattr(fitted.settings, name).value for name in METHOD},
        "constraints": _constraints(fitted, rows, violations, following, sweeps or SweepLog()),
        "notes": list(notes_of(fitted, rows)),
        "words": words_of(ledger, mark=mark),
    }
    if fitted.layout.by_values:
        document["layout"] = fitted.layout.to_json()
    if given:
        document["given"] = {name: plain_condition(value) for name, value in given.items()}
    if sha256 is not None:
        document["sha256"] = sha256
    return document | _sources(fitted)


def _sources(fitted: Fitted) -> dict[str, Any]:
    """What the facts follow from, and hashes of it."""
    schema: str | None = fitted.schema.to_yaml()
    texts = [print_constraint(each) for each in fitted.promised]
    hashes = hashes_of(schema, texts, fitted.ledger, fitted.references)
    if schema is not None and text_problem(schema):
        schema = None  # no reader would take it
    return {"settings": fitted.settings.to_json(), "schema": schema, "ledger": fitted.ledger, "hashes": hashes}


def hashes_of(
    schema: str | None, rules: Sequence[str], ledger: Mapping[str, Any], references: References
) -> dict[str, Any]:
    """The SHA-256 of what a table was made from, to be compared with what was agreed on elsewhere.

    schema: the text of `Schema.to_yaml`, domains that were found included. rules: the printed constraints, one a line.
    ledger: its canonical JSON. references: the map of each dependency as sorted rows of JSON.
    """
    return {
        "schema": _digest((schema or "").encode()),
        "rules": _digest(("\n".join(rules) + "\n").encode()),
        "references": {
            f"{', '.join(each['left'])} -> {each['right']}": _digest(_sorted_rows(each["columns"]).encode())
            for each in to_json(references)
        },
        "ledger": _digest(canonical(ledger)),
    }


def _sorted_rows(columns: Mapping[str, Sequence[str | None]]) -> str:
    rows = sorted(
        map(list, zip(*columns.values(), strict=True)), key=lambda row: [(v is not None, v or "") for v in row]
    )
    return json.dumps(rows, ensure_ascii=False)


def canonical(document: object) -> bytes:
    """JSON with sorted names and no spaces: one text for one document, whoever wrote it.

    >>> canonical({"b": [1.0, "é"], "a": None}).decode()
    '{"a":null,"b":[1.0,"é"]}'
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _constraints(
    fitted: Fitted,
    rows: int,
    violations: Mapping[DenialConstraint, int],
    following: Mapping[DenialConstraint, Following],
    sweeps: SweepLog,
) -> list[dict[str, Any]]:
    """Each constraint with its violations; a soft one also with its rate, what was measured, and its weight."""
    found = {each.constraint: each for each in fitted.soft.items}
    documents = []
    for constraint in fitted.promised:
        count = violations[constraint]
        document: dict[str, Any] = {
            "text": print_constraint(constraint),
            "hard": constraint.is_hard,
            "violations": count,
        }
        if not constraint.is_hard:
            document["rate"] = violation_rate(constraint, count, rows)
            document["sweeps"] = [r.rates[constraint] for r in sweeps.records if constraint in r.rates]
        if constraint in found:
            each = found[constraint]
            document |= {"measured": each.measured, "deviation": each.deviation, "weight": each.weight}
        learned = expected_right(fitted, constraint)
        if learned is not None:
            document["expected_right"] = learned
        if constraint in following:
            document["reference"] = {"file": constraint.reference, **following[constraint].to_json()}
        documents.append(document)
    return documents


def violation_rate(constraint: DenialConstraint, violations: int, rows: int) -> float:
    """The part of rows, or of pairs of rows, that violate a constraint."""
    most = rows if constraint.is_unary else math.comb(rows, 2)
    return violations / most if most else 0.0


def plain(value: object) -> object:
    """A value of a domain as JSON has it; dates and the like as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def notes_of(fitted: Fitted, num_rows: int) -> tuple[str, ...]:
    """What the reader would not expect of a table of `num_rows` rows; all of it from what is public."""
    codec = fitted.codec
    domains = (
        *weak_notes(fitted.ledger, fitted.settings, fitted.model.num_rows),
        *_noise_notes(fitted),
        *found_notes(fitted.schema),
        *column_notes(fitted.schema, fitted.found),
        *trusted_notes(fitted.schema, fitted.num_rows),
        *short_year_notes(fitted.schema),
        *distance_notes(codec),
        *group_notes(fitted.groups),
    )
    if not fitted.settings.sampling.keeps_hard_constraints:
        return domains
    most = most_rows(codec, fitted.constraints)
    fewer = fewer_notes(num_rows, most, fitted.model.num_rows)
    maps = map_notes(fitted, fitted.constraints)
    return (*domains, *fewer, *maps, *promise_notes(codec, fitted.constraints, num_rows), *_soft_notes(fitted))


def _noise_notes(fitted: Fitted) -> tuple[str, ...]:
    errors = accuracy_of_run(fitted.ledger, fitted.schema, fitted.settings, about_rows=fitted.model.num_rows)
    notes = (noise_note(errors, fitted.settings), hidden_note(fitted, errors, told=noisy_columns(errors)))
    return tuple(note for note in notes if note is not None)


def _soft_notes(fitted: Fitted) -> tuple[str, ...]:
    """What is not promised of soft constraints; row by row all of them are weighed."""
    if fitted.settings.sampling is not Sampling.CONSTRAINT_AWARE or not fitted.soft.items:
        return ()
    return soft_notes(fitted.plan, fitted.codec)


def finding_cost(ledger: dict[str, Any]) -> dict[str, float]:
    """What finding types and domains took: its share of the budget, and of delta."""
    found = [entry for entry in ledger["entries"] if entry["kind"] in _FINDING or entry["what"] in (SPELLINGS, LOST)]
    spent, total = _mu_squared(found), _mu_squared(ledger["entries"])
    delta = sum(event["delta"] for entry in found for event in entry["events"] if event["type"] == "DeltaEvent")
    return {"share": spent / total if total else 0.0, "delta": delta}


def _mu_squared(entries: list[dict[str, Any]]) -> float:
    gaussian = [event for entry in entries for event in entry["events"] if event["type"] == "GaussianEvent"]
    return float(sum(e["count"] / e["noise_multiplier"] ** 2 for e in gaussian if e["noise_multiplier"]))


_FINDING = ("categories", "bounds", "aside")
METHOD = ("backend", "sequence", "sampling", "weights")
