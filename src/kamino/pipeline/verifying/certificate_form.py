"""What a certificate has to say, and of which kind: forms for JSON from anybody.

Whether events make sense is judged when they are priced, and whether claims are true when the table is counted.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from kamino.limits import MAX_ENTRIES, MAX_UNIT_ROWS
from kamino.model.filled_forms import Amount, ClosedForm, Form, Share, Whole

_LARGEST = 1e100
Scale = Annotated[float, Field(ge=0, le=_LARGEST, allow_inf_nan=False)]
Parameter = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]


class Prices(ClosedForm):
    """Epsilon under each relation; null for none that is finite."""

    add_remove: Amount | None
    replace: Amount | None


class StatedPrivacy(Form):
    """What the certificate states of its budget."""

    epsilon: Amount | None
    delta: Share
    neighbours: str
    unit: str
    releases: Whole
    spent_epsilon: Prices


class StatedUnit(Form):
    """Whose privacy is promised."""

    text: str
    max_rows: Annotated[int, Field(ge=1, le=MAX_UNIT_ROWS)]
    column: str | None


class StatedEvent(Form):
    """What a release cost, and parameters that are numbers."""

    __pydantic_extra__: dict[str, Parameter]
    model_config = ConfigDict(extra="allow")

    type: str
    count: Annotated[int, Field(ge=1, le=10**12)]


class StatedRelease(Form):
    """A line of the ledger."""

    kind: str
    what: str
    attributes: list[str]
    sigma: Scale
    sensitivity: Scale | None
    from_aside: Share
    events: list[StatedEvent]


class SealedPart(Form):
    """A part of the ledger that was priced by itself."""

    entries: Whole
    delta: Share
    epsilon: Prices


class StatedLedger(Form):
    """What was released, with all that it takes to price it again."""

    epsilon: Amount | None
    delta: Share
    neighbours: str
    mark: str
    unit: StatedUnit
    spent_epsilon: Prices
    sealed: list[SealedPart]
    entries: Annotated[list[StatedRelease], Field(max_length=MAX_ENTRIES)]


class Finding(Form):
    """What finding domains took."""

    share: Amount
    delta: Share


class Hashes(Form):
    """SHA-256 of what was made public beside the table."""

    schema_hash: Annotated[str, Field(alias="schema")]
    rules: str
    ledger: str
    references: dict[str, str]


class Signature(Form):
    """Who vouches for it."""

    algorithm: str
    public_key: str
    value: str


class Claim(Form):
    """What is claimed of a constraint."""

    text: str
    hard: bool
    violations: Whole
    rate: Any = None

    @model_validator(mode="after")
    def _soft_has_a_rate(self) -> Claim:
        rate = self.rate
        if not self.hard and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1):
            raise ValueError("rate is not between 0 and 1")
        return self


class CertificateForm(Form):
    """A certificate; names of later versions are passed over, and covered by a signature."""

    kamino: str
    mark: str
    sha256: str
    rows: Whole
    privacy: StatedPrivacy
    ledger: StatedLedger
    domains: dict[str, list[Any]]
    finding_domains: Finding
    method: dict[str, Any]
    notes: list[str]
    hashes: Hashes
    given: dict[str, list[Any]] = Field(default_factory=dict)
    signature: Signature | None = None
    layout: list[Any] | None = None
    schema_text: Annotated[str, Field(alias="schema")]
    settings: dict[str, Any]
    constraints: list[Claim]

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_absent(cls, document: Any) -> Any:
        for name in ("signature", "layout"):
            if isinstance(document, dict) and document.get(name, name) is None:
                raise ValueError(f"{name} is null")
        return document
