"""A certificate as a file from anybody: nothing of it is used before its kind, its size and its place are known.

What is malformed raises an `InputError` of one line. What is well formed and untrue is left to `verification`.
Names that this version does not know are kept: a signature covers them, and nothing is said of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from kamino.constraints import Constraints
from kamino.errors import InputError, ModelError
from kamino.io.text import read_text
from kamino.layout.table_layout import Layout
from kamino.limits import (
    MAX_CERTIFICATE_BYTES,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_ENTRIES,
    MAX_ITEMS,
    MAX_UNIT_ROWS,
)
from kamino.model.saved import Fields, shown
from kamino.pipeline.model_file import refusing_damage, settings_of
from kamino.pipeline.output.certificate import FORMAT
from kamino.pipeline.settings import Settings
from kamino.privacy import Neighbours
from kamino.schema import Schema

_LARGEST = 1e100
_REMEDY = "ask whoever released the table for its certificate"


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate:
    """A certificate whose parts are of their kinds. `document` is all of it, as it was read."""

    source: str
    document: Mapping[str, Any]
    settings: Settings
    schema: Schema
    constraints: Constraints
    """Those of `document["constraints"]`, in the same order, with constants of the columns' types."""
    layout: Layout
    """How the table is made of what the schema describes."""

    @property
    def ledger(self) -> Mapping[str, Any]:
        """What was released, with its events."""
        found: Mapping[str, Any] = self.document["ledger"]
        return found

    @property
    def claims(self) -> tuple[Mapping[str, Any], ...]:
        """What is claimed of each constraint."""
        return tuple(self.document["constraints"])


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate file.

    Raises:
        InputError: the file cannot be read, or is no certificate of this format; one line.

    Guarantees:
        Whatever the bytes are, one of these errors is raised or a certificate returned.
        [test_fuzzed_inputs_end_in_order]
    """
    text = read_text(path, what="certificate", most=MAX_CERTIFICATE_BYTES)
    return certificate_from(text, source=str(path))


def certificate_from(text: str, *, source: str) -> Certificate:
    """The certificate that a text holds; see `read_certificate`."""
    with refusing_damage(source, what="certificate", remedy=_REMEDY, error=InputError):
        return _read(parse_document(text), source)


def parse_document(text: str) -> dict[str, Any]:
    """The JSON object of a certificate; sizes, depth, digits and names given twice are looked at first.

    Raises:
        ModelError: it is none.
    """
    if len(text) > MAX_CERTIFICATE_BYTES or text.count("[") + text.count("{") + text.count(",") > MAX_ITEMS:
        raise ModelError("it has more in it than any certificate")

    def refuse_constant(word: str) -> NoReturn:
        raise ModelError(f"it has {word} in the place of a number")

    def read_float(digits: str) -> float:
        value = float(digits) if len(digits) <= MAX_DIGITS else math.inf
        return value if math.isfinite(value) else refuse_constant("something beyond all numbers")

    def read_int(digits: str) -> int:
        return int(digits) if len(digits) <= MAX_DIGITS else refuse_constant(f"more than {MAX_DIGITS} digits")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ModelError("it has a name twice in one object")
        return found

    try:
        document = json.loads(
            text, parse_constant=refuse_constant, parse_float=read_float, parse_int=read_int, object_pairs_hook=once
        )
    except json.JSONDecodeError as problem:
        raise ModelError(f"found text that is not JSON in line {problem.lineno}, column {problem.colno}") from None
    except RecursionError:
        raise ModelError("it has levels too deep within each other") from None
    if not isinstance(document, dict):
        raise ModelError("it is not a set of named values")
    _check_depth(document)
    return document


def _check_depth(document: object) -> None:
    """Refuse levels too deep within each other, and texts that have no bytes."""
    level: list[object] = [document]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for each in level:
            if isinstance(each, str):
                each.encode("utf-8")
            elif isinstance(each, dict):
                inner += [*each, *each.values()]
            elif isinstance(each, list):
                inner += each
        if not inner:
            return
        level = inner
    raise ModelError(f"it has more than {MAX_DEPTH} levels within each other")


def _read(document: dict[str, Any], source: str) -> Certificate:
    fields = Fields(document, where="certificate")
    if "format" not in document:
        raise ModelError("it has no format: it was made by a version before there was anything to verify")
    if fields.text("format") != FORMAT:
        raise ModelError(f"found format {shown(fields.text('format'))}, expected {FORMAT!r}; get a newer Kamino")
    if "sha256" not in document:
        raise ModelError("it has no sha256: it is of a table that was not written to a file")
    for name in ("kamino", "mark", "sha256"):
        fields.text(name)
    fields.whole("rows")
    _check_privacy(fields.within("privacy"))
    _check_ledger(fields.within("ledger"))
    _check_rest(fields)
    schema = Schema.from_yaml(fields.text("schema"), source="schema")
    # Only steps that the schema does not tell are written, and then all of them.
    steps = fields.items("layout") if "layout" in document else Layout.of(schema).to_json()
    layout = Layout.from_json(steps, schema)
    return Certificate(
        source=source,
        document=document,
        settings=settings_of(_known_settings(fields.within("settings"))),
        schema=schema,
        constraints=_constraints(fields, layout),
        layout=layout,
    )


def _check_privacy(privacy: Fields) -> None:
    privacy.number_or_null("epsilon", least=0)
    privacy.number("delta", least=0, most=1)
    privacy.text("neighbours")
    privacy.text("unit")
    privacy.whole("releases")
    _check_prices(privacy.within("spent_epsilon"))


def _check_prices(prices: Fields) -> None:
    for relation in Neighbours:
        prices.number_or_null(relation.value, least=0)
    prices.only(*(relation.value for relation in Neighbours))


def _check_ledger(ledger: Fields) -> None:
    """What repricing needs, each of its kind. Whether events make sense is judged when they are priced."""
    ledger.number_or_null("epsilon", least=0)
    ledger.number("delta", least=0, most=1)
    ledger.text("neighbours")
    ledger.text("mark")
    unit = ledger.within("unit")
    unit.text("text")
    unit.whole("max_rows", least=1, most=MAX_UNIT_ROWS)
    if unit.any("column") is not None:
        unit.text("column")
    _check_prices(ledger.within("spent_epsilon"))
    for part in ledger.objects("sealed"):
        part.whole("entries")
        part.number("delta", least=0, most=1)
        _check_prices(part.within("epsilon"))
    if len(ledger.items("entries")) > MAX_ENTRIES:
        raise ModelError(f"ledger: it has more than {MAX_ENTRIES} entries")
    for entry in ledger.objects("entries"):
        _check_entry(entry)


def _check_entry(entry: Fields) -> None:
    entry.text("kind")
    entry.text("what")
    entry.texts("attributes")
    entry.number("sigma", least=0, most=_LARGEST)
    entry.number_or_null("sensitivity", least=0, most=_LARGEST)
    entry.number("from_aside", least=0, most=1)
    for event in entry.objects("events"):
        event.text("type")
        event.whole("count", least=1, most=10**12)
        for name in event:
            if name not in ("type", "count"):
                event.number(name, most=_LARGEST)


def _check_rest(fields: Fields) -> None:
    for name, names in fields.within("domains").items_by_name.items():
        if not isinstance(names, list):
            raise ModelError(f"certificate: domains: {shown(name)} is not a list")
    finding = fields.within("finding_domains")
    finding.number("share", least=0)
    finding.number("delta", least=0, most=1)
    _ = fields.within("method")
    fields.texts("notes")
    hashes = fields.within("hashes")
    for name in ("schema", "rules", "ledger"):
        hashes.text(name)
    references = hashes.within("references")
    for name in references:
        references.text(name)
    if "given" in tuple(fields):
        given = fields.within("given")
        for name in given:
            given.items(name)
    if "signature" in tuple(fields):
        signature = fields.within("signature")
        for name in ("algorithm", "public_key", "value"):
            signature.text(name)


def _known_settings(settings: Fields) -> dict[str, Any]:
    """The settings that this version has; what later ones add decides nothing here."""
    known = Settings.__dataclass_fields__
    return {name: value for name, value in settings.items_by_name.items() if name in known}


def _constraints(fields: Fields, layout: Layout) -> Constraints:
    texts = []
    for each in fields.objects("constraints"):
        text = each.text("text")
        each.flag("hard")
        each.whole("violations")
        if not each.flag("hard"):
            each.number("rate", least=0, most=1)
        if "\n" in text:
            raise ModelError(f"{each.where}: text is more than one line")
        texts.append(text)
    found = Constraints.parse("\n".join(texts), source="constraints", types=layout.types)
    if len(found) != len(texts):
        raise ModelError("a constraint is none, or more than one")
    return found
