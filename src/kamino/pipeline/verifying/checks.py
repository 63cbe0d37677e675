"""What is claimed in a certificate, beside what is found: one function for each kind of claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import kamino
from kamino.constraints import Constraints, count_violations, print_constraint
from kamino.constraints.counting.ranks import RankedTable
from kamino.errors import InputError, PrivacyError
from kamino.io.text import read_text
from kamino.layout.recoding import joined
from kamino.pipeline.output.certificate import METHOD, finding_cost, hashes_of, plain, violation_rate
from kamino.pipeline.output.provenance import meanings_of, words_of
from kamino.pipeline.output.release_mark import FOR_RELEASE, mark_before
from kamino.pipeline.plan.references import References, read_references, typed_references
from kamino.pipeline.verifying.case import Case, event_of
from kamino.pipeline.verifying.signatures import (
    fingerprint,
    has_extra,
    is_signed,
    own_key,
    read_public_key,
    signature_problem,
)
from kamino.privacy import Neighbours
from kamino.privacy.accounting.events import Event, GaussianEvent, PoissonGaussianEvent
from kamino.privacy.noise import NOT_FOR_RELEASE, NOT_PRIVATE
from kamino.schema import Source

# Prices are compared to so many parts: other versions of the accountant round otherwise.
_CLOSE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was claimed, and what was found."""

    what: str
    claimed: str
    found: str
    holds: bool


Check = Callable[[Case], Iterator[Finding]]


def _same(what: str, claimed: object, found: object, *, holds: bool | None = None) -> Finding:
    return Finding(
        what=what, claimed=_shown(claimed), found=_shown(found), holds=claimed == found if holds is None else holds
    )


def _shown(value: object) -> str:
    """A value for people: short, and on one line."""
    text = "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = "".join(c if c.isprintable() else " " for c in text[:400])
    return text if len(text) <= 160 else f"{text[:157]}..."


def check_bytes(case: Case) -> Iterator[Finding]:
    """The table is the file that was certified."""
    yield _same("bytes of the table", case.document["sha256"], case.digest)


def check_sources(case: Case) -> Iterator[Finding]:
    """Schema, constraints and ledger have the hashes that are stated."""
    document = case.document
    texts = [claim["text"] for claim in case.certificate.claims]
    found = hashes_of(document["schema"], texts, document["ledger"], {})
    for name in ("schema", "rules", "ledger"):
        yield _same(f"hash of the {name}", document["hashes"][name], found[name])


def check_rows(case: Case) -> Iterator[Finding]:
    """Columns and number of rows."""
    table = case.table
    if isinstance(table, InputError):
        yield _same("table", "a table of the schema", table, holds=False)
        return
    claimed = [f"{field.name} ({field.type})" for field in case.expected]
    found = [f"{field.name} ({field.type})" for field in table.schema]
    yield _same("columns", ", ".join(claimed), ", ".join(found))
    yield _same("rows", case.document["rows"], table.num_rows)


def check_violations(case: Case) -> Iterator[Finding]:
    """Every constraint is counted once more, in the table; rows that were drawn to keep hard ones break none."""
    table = case.table
    if isinstance(table, InputError) or table.schema.names != case.expected.names:
        return
    ranked = RankedTable(table)
    kept = case.certificate.settings.sampling.keeps_hard_constraints
    for claim, constraint in zip(case.certificate.claims, case.certificate.constraints, strict=True):
        what = f"violations of {print_constraint(constraint)}"
        if constraint.is_hard is not claim["hard"]:
            yield _same(what, "hard" if claim["hard"] else "soft", "hard" if constraint.is_hard else "soft")
        count = count_violations(ranked, constraint)
        yield _same(what, claim["violations"], count)
        if constraint.is_hard and kept and count:
            yield _same(what, "none, by the way rows were drawn", count, holds=False)
        if not constraint.is_hard:
            rate = violation_rate(constraint, count, table.num_rows)
            yield _same(
                f"rate of {print_constraint(constraint)}", claim["rate"], rate, holds=_close(claim["rate"], rate)
            )


def check_given(case: Case) -> Iterator[Finding]:
    """Every row meets the condition that was asked for."""
    table = case.table
    given = case.document.get("given", {})
    if isinstance(table, InputError):
        return
    for name, allowed in given.items():
        if name not in table.schema.names:
            yield _same(f"condition on {name}", "a column", "none")
            continue
        values = {str(plain(value)) for value in table.column(name).unique().to_pylist()}
        others = sorted(values - {str(value) for value in allowed})
        yield _same(
            f"condition on {name}", " or ".join(map(str, allowed)), ", ".join(others) or "as claimed", holds=not others
        )


def check_meaning(case: Case) -> Iterator[Finding]:
    """What the budget is said to mean follows from the events: as numbers, and in the words of this version."""
    document = case.document
    if isinstance(case.price, PrivacyError):
        return
    claimed = document["privacy"].get("meaning")
    if claimed is not None:
        found: object = meanings_of(case.certificate.ledger)
        yield _same("meaning of epsilon", claimed, found, holds=_alike(claimed, found))
    if "words" in document and document.get("kamino") == kamino.__version__:
        # Whether the mark holds is asked elsewhere.
        either = [words_of(case.certificate.ledger, mark=mark) for mark in (FOR_RELEASE, NOT_FOR_RELEASE)]
        yield _same("meaning in words", document["words"], either[0], holds=document["words"] in either)


def check_privacy(case: Case) -> Iterator[Finding]:
    """Budget, relation and unit are the same wherever they stand."""
    privacy, ledger, settings = case.document["privacy"], case.certificate.ledger, case.certificate.settings
    epsilon = None if math.isinf(settings.epsilon) else settings.epsilon
    budget = (epsilon, settings.delta, settings.neighbours.value)
    for name, source in (("privacy", privacy), ("ledger", ledger)):
        claimed = (source["epsilon"], source["delta"], source["neighbours"])
        yield _same(f"budget in {name}", _budget(claimed), _budget(budget), holds=claimed == budget)
    unit = settings.privacy_unit
    found = (unit.describe(), unit.describe(), unit.column, unit.max_rows)
    stated = ledger["unit"]
    told = (privacy["unit"], stated["text"], stated["column"], stated["max_rows"])
    yield _same("privacy unit", privacy["unit"], unit.describe(), holds=told == found)
    method = {name: getattr(settings, name).value for name in METHOD}
    yield _same("method", _listed(case.document["method"]), _listed(method))
    yield _same("number of releases", privacy["releases"], len(ledger["entries"]))


def check_price(case: Case) -> Iterator[Finding]:
    """Epsilon under both relations, from the events."""
    price = case.price
    if isinstance(price, PrivacyError):
        yield _same("price of the releases", "events that can be priced", price, holds=False)
        return
    ledger = case.certificate.ledger
    for relation in Neighbours:
        found = price.stated[relation]
        for name, source in (("epsilon", case.document["privacy"]), ("epsilon in the ledger", ledger)):
            claimed = source["spent_epsilon"][relation.value]
            holds = _close(math.inf if claimed is None else claimed, found)
            if name == "epsilon" or not holds:
                yield _same(f"{name}, {relation.value}", claimed, None if math.isinf(found) else found, holds=holds)
    for number, (part, prices) in enumerate(zip(ledger["sealed"], price.sealed, strict=True), start=1):
        for relation, found in prices.items():
            claimed = part["epsilon"][relation.value]
            holds = _close(math.inf if claimed is None else claimed, found)
            yield _same(f"epsilon of part {number}, {relation.value}", claimed, found, holds=holds)
    yield _same("budget", "kept", "; ".join(price.problems) or "kept")


def check_noise(case: Case) -> Iterator[Finding]:
    """The noise that each release states is at least what its event was charged for."""
    own = case.certificate.settings.neighbours
    short = []
    for number, entry in enumerate(case.certificate.ledger["entries"], start=1):
        try:
            multipliers = [_multiplier(event, own) for event in map(event_of, entry["events"])]
        except PrivacyError:
            continue  # told with the price
        needed = max((each for each in multipliers if each is not None), default=0.0)
        if entry["sensitivity"] is None or needed * entry["sensitivity"] > entry["sigma"] * (1 + _CLOSE):
            short += [number] if needed else []
    found = f"less in release {', '.join(map(str, short[:5]))}" if short else "as charged"
    yield _same("noise of the releases", "as charged", found)


def check_domains(case: Case) -> Iterator[Finding]:
    """Where each domain comes from, and what finding them cost."""
    sources = case.certificate.schema.sources
    claimed = case.document["domains"]
    for source in Source:
        found = [name for name in sources if sources[name] is source]
        names = claimed.get(source.value, [])
        told = (f"{len(names)}: {', '.join(map(str, names))}", f"{len(found)}: {', '.join(found)}")
        yield _same(f"domains {source.value}", told[0], told[1], holds=names == found)
    try:
        cost = finding_cost(dict(case.certificate.ledger))
    except (ArithmeticError, LookupError, TypeError):
        yield _same("cost of finding domains", "a share", "events that have none", holds=False)
        return
    stated = case.document["finding_domains"]
    holds = _close(stated["share"], cost["share"]) and _close(stated["delta"], cost["delta"])
    yield _same("cost of finding domains", f"{stated['share']:.4%}", f"{cost['share']:.4%}", holds=holds)


def check_mark(case: Case) -> Iterator[Finding]:
    """Whether the table may be released follows from the budget, from a seed, and from what the ledger says.

    Whoever released it may have more reasons not to: a stricter mark than follows from these is no false claim.
    """
    ledger, settings = case.certificate.ledger, case.certificate.settings
    if ledger["epsilon"] is None or math.isinf(settings.epsilon):
        noise = NOT_PRIVATE
    else:
        noise = NOT_FOR_RELEASE if settings.seed is not None or ledger["mark"] else FOR_RELEASE
    claimed = case.document["mark"]
    found = mark_before(settings, schema=case.certificate.schema).mark if noise == FOR_RELEASE else noise
    stricter = claimed == NOT_FOR_RELEASE and found == FOR_RELEASE
    yield _same("mark", claimed, found, holds=stricter or claimed == found)
    yield _same("mark of the ledger", ledger["mark"] or FOR_RELEASE, noise)


def check_rules(case: Case) -> Iterator[Finding]:
    """The certificate is about the constraints that were given, and their reference tables are those that were used."""
    if case.rules is None:
        return
    schema, layout = case.certificate.schema, case.certificate.layout
    given = Constraints.parse(read_text(case.rules, what="constraint file"), source=str(case.rules))
    split = layout.rules(given.bind(layout.types))
    expected = sorted({print_constraint(each) for each in joined(split.drawn, split.kept)})
    claimed = sorted({claim["text"] for claim in case.certificate.claims})
    different = sorted(set(expected) ^ set(claimed))
    yield _same("constraints that were given", "the same", "; ".join(different) or "the same", holds=not different)
    bound = split.drawn
    references = typed_references(read_references(bound, folder=case.rules.parent), schema, bound)
    stated = case.document["hashes"]["references"]
    for name, digest in hashes_of("", (), {}, references)["references"].items():
        yield _same(f"reference table of {name}", stated.get(name), digest)
    kept = case.certificate.settings.sampling.keeps_hard_constraints
    if kept and not isinstance(case.table, InputError) and case.table.schema.names == case.expected.names:
        yield from _mapped(case.table, references)


def _mapped(table: pa.Table, references: References) -> Iterator[Finding]:
    """Each row has the right side that the reference table gives its left side."""
    for (left, right), reference in references.items():
        known = {row[:-1]: row[-1] for row in _distinct(reference, (*left, right))}
        wrong = sum(
            None not in row and row[:-1] in known and known[row[:-1]] != row[-1]
            for row in _distinct(table, (*left, right))
        )
        yield _same(
            f"{right} as in its reference table", "in every row", "in every row" if not wrong else f"{wrong} other"
        )


def _distinct(table: pa.Table, names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    columns = [table.column(name).cast(pa.string()).to_pylist() for name in names]
    return iter(set(zip(*columns, strict=True)))


def check_signature(case: Case) -> Iterator[Finding]:
    """The certificate is signed by the key that was given, or at least by the one it names."""
    if case.key is not None:
        public = read_public_key(case.key)
        problem = signature_problem(case.document, public)
        yield _same("signature", f"by {fingerprint(public.hex())}", problem or f"by {fingerprint(public.hex())}")
    elif is_signed(case.document) and has_extra():
        stated = fingerprint(case.document["signature"]["public_key"])
        problem = signature_problem(case.document, own_key(case.document)) if own_key(case.document) else "no key"
        yield _same("signature", f"by {stated}", problem or f"by {stated}")


CHECKS: tuple[Check, ...] = (
    check_bytes,
    check_rows,
    check_violations,
    check_given,
    check_price,
    check_privacy,
    check_meaning,
    check_noise,
    check_domains,
    check_mark,
    check_sources,
    check_rules,
    check_signature,
)


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in names.items())


def _budget(parts: tuple[float | None, float, str]) -> str:
    epsilon = "infinite" if parts[0] is None else f"{parts[0]:g}"
    return f"epsilon {epsilon}, delta {parts[1]:g}, {parts[2]}"


def _close(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=_CLOSE)


def _alike(one: object, other: object) -> bool:
    """Whether two documents are the same but for the last digits of numbers."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, float) and isinstance(other, float):
        return _close(one, other)
    return one == other


def _multiplier(event: Event, own: Neighbours) -> float | None:
    """The noise that an event was charged for, in units of the sensitivity under the run's relation."""
    if isinstance(event, GaussianEvent):
        return event.multiplier(own)
    if isinstance(event, PoissonGaussianEvent):
        return event.noise_multiplier / (1 if own is Neighbours.ADD_REMOVE else 2)
    return None
