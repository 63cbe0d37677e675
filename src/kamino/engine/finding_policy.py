"""Policy of finding types and domains: what each release takes of the budget, and what counts as found."""

from __future__ import annotations

from dataclasses import dataclass, field

from kamino.policy import because


@dataclass(frozen=True, kw_only=True)
class FindingPolicy:
    """Shares are of mu², in which prices of Gaussian releases add up; delta is shared apart."""

    rows: float = field(
        default=0.01,
        metadata=because("The first, noisy number of rows decides only how much the rest of finding takes."),
    )
    least: float = field(
        default=0.15, metadata=because("With less, a column of a table of ordinary size loses categories that matter.")
    )
    most: float = field(default=0.5, metadata=because("Domains are of no use without a model: it gets half at least."))
    most_neural: float = field(
        default=0.3, metadata=because("The neural model pays twice for what is priced apart from its own steps.")
    )
    rare: float = field(
        default=0.08, metadata=because("The part of the rows that a category has which is to be found.")
    )
    deviations: float = field(
        default=5.5, metadata=because("So many deviations of the noise such a category lies above nothing.")
    )
    half: float = field(
        default=0.5, metadata=because("Where not even a category of this part of the rows could be seen, nothing can.")
    )
    delta: float = field(
        default=0.1, metadata=because("Sets of categories take it; the rest of delta makes Gaussian noise smaller.")
    )
    types: float = field(
        default=0.15, metadata=because("Of finding: a type is told by most cells, a domain by each of its values.")
    )
    decimals: float = field(default=0.15, metadata=because("Of finding domains: like types, most cells tell them."))
    lost: float = field(
        default=0.15, metadata=because("Of finding domains: counts of what they lose decide nothing but are told.")
    )
    categories_weight: float = field(
        default=2.0,
        metadata=because("Of the rest, for each that a range takes: a threshold is farther above the noise."),
    )
    other_text: float = field(
        default=0.01, metadata=because("A column is of a type if at most this part of its cells is other text.")
    )
    other_text_deviations: float = field(
        default=3.0, metadata=because("And so many deviations of the noise more, which it may make of nothing.")
    )
    told_deviations: float = field(
        default=2.0, metadata=because("What is told of a lost share is so wide on either side: right in 95 of 100.")
    )


FINDING = FindingPolicy()
