"""Policy of what is refused, marked or told: from where on a promise, a column or a table is not worth much."""

from __future__ import annotations

from dataclasses import dataclass, field

from kamino.policy import because


@dataclass(frozen=True, kw_only=True)
class TellingPolicy:
    """Parts are of rows, columns or cells; none of them decides what is released."""

    most_epsilon: float = field(
        default=10.0,
        metadata=because("Beyond, a guess about one row is nearly always right: the promise is one in name only."),
    )
    most_delta: float = field(
        default=0.01,
        metadata=because("Beyond, whatever the table: of a hundred rows, one could be published as it is."),
    )
    useless: float = field(
        default=0.5,
        metadata=because("A column that loses more cells is more made up than kept; so is a table of such."),
    )
    lost_worth_a_note: float = field(
        default=0.01,
        metadata=because("A smaller lost share surprises nobody: the table of columns has it."),
    )
    hidden: float = field(
        default=0.5, metadata=because("A column is called hidden if noise hides the values of most of its rows.")
    )
    noisy_count: float = field(
        default=0.25, metadata=because("Counts that are off by a quarter of all rows support no conclusion.")
    )
    hopeless_count: float = field(
        default=1.0, metadata=because("Counts that are off by all rows there are tell nothing: the run ends before.")
    )
    noisy_columns: float = field(
        default=0.5, metadata=because("A table is mostly noise if more than this part of its columns is.")
    )
    nearly_all: float = field(
        default=0.9, metadata=because("With more different values than this part of the rows, a value names its row.")
    )
    few_values: int = field(
        default=20, metadata=because("Of fewer values, that they are different says nothing about the rows.")
    )


TELLING = TellingPolicy()
