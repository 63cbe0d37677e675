"""A table, its certificate, and what was given to judge them by; what each derives is computed once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.errors import InputError, KaminoError, PrivacyError
from kamino.io import read_table
from kamino.io.databases.row_digest import digest_of_rows
from kamino.io.databases.storing import DatabaseTable
from kamino.io.normalise import normalise_table
from kamino.io.write import read_written
from kamino.model.saved import shown
from kamino.pipeline.verifying.certificate_file import Certificate
from kamino.pipeline.verifying.signatures import fingerprint, has_extra, is_signed, own_key, signature_problem
from kamino.privacy import Budget, Neighbours
from kamino.privacy.accounting.events import DeltaEvent, Event, GaussianEvent, PoissonGaussianEvent
from kamino.privacy.ledger import Sealed
from kamino.privacy.published_price import Price, Priced, reprice
from kamino.schema import CodedTable
from kamino.schema.files.written_dates import written_dates

_EVENTS: Mapping[str, tuple[type[Any], tuple[str, ...]]] = {
    "GaussianEvent": (GaussianEvent, ("noise_multiplier", "replace_multiplier")),
    "PoissonGaussianEvent": (PoissonGaussianEvent, ("noise_multiplier", "sampling_rate")),
    "DeltaEvent": (DeltaEvent, ("delta",)),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A table, its certificate, and what else was given to judge them by."""

    path: Path
    certificate: Certificate
    database: DatabaseTable | None = None
    key: str | Path | None = None
    rules: Path | None = None

    @property
    def document(self) -> Mapping[str, Any]:
        """The certificate as it was read."""
        return self.certificate.document

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the table's bytes; of its rows in a database."""
        if self.database is not None:
            return digest_of_rows(self.stored)
        try:
            with open(self.path, "rb") as handle:
                return hashlib.file_digest(handle, "sha256").hexdigest()
        except OSError as problem:
            raise InputError(f"{self.path}: the table cannot be read: {problem.strerror}") from None

    @cached_property
    def table(self) -> pa.Table | InputError:
        """The table, with the types of the schema; or why it cannot be read as such."""
        types = self.expected
        try:
            if self.database is not None:
                # Types of a database differ from those that rows are drawn with: a decimal may have more digits there.
                return self.stored.cast(types) if self.stored.column_names == types.names else self.stored
            dates = written_dates(self.certificate.schema)
            return read_written(self.path, self.path.name, types=types, dates=dates)
        except KaminoError as problem:
            return InputError(str(problem))
        except pa.ArrowInvalid:
            return InputError(f"{self.database}: found a cell of another type than the schema's")
        except OSError as problem:
            return InputError(f"{self.path}: {problem.strerror}")

    @cached_property
    def stored(self) -> pa.Table:
        """The table as the database gives it."""
        assert self.database is not None, "asked of tables of databases only"
        return read_table(self.database.url, query=self.database.name)

    @cached_property
    def expected(self) -> pa.Schema:
        """The columns that a table of the schema is written with."""
        layout = self.certificate.layout
        none = {name: np.zeros(0, dtype=np.int64) for name in (*layout.codec.groups, *layout.codec.attributes)}
        empty = layout.decode(CodedTable(columns=none, num_rows=0), np.random.default_rng(0))
        return normalise_table(empty, where="schema").schema

    @cached_property
    def price(self) -> Price | PrivacyError:
        """What the events cost; or why they make no sense."""
        try:
            return reprice_ledger(self.certificate.ledger)
        except PrivacyError as problem:
            return problem
        except (ValueError, ArithmeticError) as problem:
            # The search of the accountant ends in NaN where a budget or noise is beyond what doubles can tell apart.
            return PrivacyError(f"the accountant cannot price the events ({type(problem).__name__})")

    @cached_property
    def signed_by(self) -> str | None:
        """The fingerprint of the key whose signature the certificate carries, if it is valid."""
        if not is_signed(self.document) or not has_extra():
            return None
        public = own_key(self.document)
        return fingerprint(public.hex()) if public and not signature_problem(self.document, public) else None


def reprice_ledger(ledger: Mapping[str, Any]) -> Price:
    """Price the events of a ledger as it was published.

    Raises:
        PrivacyError: they make no sense.
    """
    known = {relation.value: relation for relation in Neighbours}
    if ledger["neighbours"] not in known:
        raise PrivacyError(f"neighbours is {ledger['neighbours']!r}; expected {' or '.join(known)}")
    budget = Budget(
        epsilon=math.inf if ledger["epsilon"] is None else ledger["epsilon"],
        delta=ledger["delta"],
        neighbours=known[ledger["neighbours"]],
    )
    entries = []
    for entry in ledger["entries"]:
        events = tuple((event_of(event), event["count"]) for event in entry["events"])
        aside = sum(e.delta * n for e, n in events if isinstance(e, DeltaEvent)) if entry["kind"] == "aside" else 0.0
        taken = entry["from_aside"] if budget.is_private else 0.0
        entries.append(Priced(events=events, sets_aside=aside, from_aside=taken))
    sealed = [Sealed(epsilon={}, delta=part["delta"], num_entries=part["entries"]) for part in ledger["sealed"]]
    return reprice(budget, entries, sealed)


def event_of(document: Mapping[str, Any]) -> Event:
    """The event that a ledger lists; one that is unknown is refused, never free."""
    kind = document["type"]
    if kind not in _EVENTS or not all(name in document for name in _EVENTS[kind][1]):
        raise PrivacyError(f"found an event of type {shown(kind)} that cannot be priced")
    make, names = _EVENTS[kind]
    event: Event = make(**{name: float(document[name]) for name in names})
    return event
