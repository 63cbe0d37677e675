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
    MAX_ITEMS,
)
from kamino.model.filled_forms import filled
from kamino.model.saved import Fields, shown
from kamino.pipeline.model_file import refusing_damage, settings_of
from kamino.pipeline.output.certificate import FORMAT
from kamino.pipeline.settings import Settings
from kamino.pipeline.verifying.certificate_form import CertificateForm, Claim
from kamino.schema import Schema

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
    form = filled(CertificateForm, document, where="certificate")
    schema = Schema.from_yaml(form.schema_text, source="schema")
    # Only steps that the schema does not tell are written, and then all of them.
    layout = Layout.from_json(Layout.of(schema).to_json() if form.layout is None else form.layout, schema)
    return Certificate(
        source=source,
        document=document,
        settings=settings_of(_known_settings(form.settings)),
        schema=schema,
        constraints=_constraints(form.constraints, layout),
        layout=layout,
    )


def _known_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that this version has; what later ones add decides nothing here."""
    return {name: value for name, value in settings.items() if name in Settings.__dataclass_fields__}


def _constraints(claims: list[Claim], layout: Layout) -> Constraints:
    for number, claim in enumerate(claims):
        if "\n" in claim.text:
            raise ModelError(f"certificate: constraints {number}: text is more than one line")
    texts = [claim.text for claim in claims]
    found = Constraints.parse("\n".join(texts), source="constraints", types=layout.types)
    if len(found) != len(texts):
        raise ModelError("a constraint is none, or more than one")
    return found
