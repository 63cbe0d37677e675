"""How often a table violates its soft constraints, released in one vector.

A row can violate a constraint on pairs only together with rows of its group: those with equal values where the
constraint asks for equal ones (all rows, if it asks for none). Let a group have n_g rows and |V_g| violating pairs, let
T be a public number, at least 2, and let

    f = sum over groups of |V_g| * C(T, 2) / C(max(n_g, T), 2),

which is |V| where no group has more than T rows. A row more or less moves f by at most T - 1. While n_g < T, a new row
adds at most n_g <= T - 1 pairs. From n_g >= T on, the new |V_g| / C(n_g + 1, 2) is an average of the old rate (weight
C(n_g, 2) / C(n_g + 1, 2)) and of the new row's share of violating pairs (weight 2 / (n_g + 1)), both in [0, 1]: it
moves by at most 2 / (n_g + 1), and C(T, 2) times that is less than T - 1. Another row in its place moves two groups, f
by at most 2 (T - 1); with a single group, by at most (n - 1) C(T, 2) / C(max(n, T), 2) <= T - 1. For a constraint on
single rows, f is the number of violating rows, which moves by at most 1.

The vector of all f / (T - 1) is released. A rate is f over C(m, 2), or over m for single rows, with a public m: the
noisy row count of a model. T is what the model says of the largest group, and some more; T = m where there are no
groups, and the rate then has sensitivity 2 / m. If a group is larger than T after all, its violations count for less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.constraints import DenialConstraint, count_violations, print_constraint, violations_per_row
from kamino.constraints.counting.conjunction import equal_attributes
from kamino.constraints.counting.ranks import RankedTable
from kamino.constraints.tree import Kind
from kamino.model.protocol import TupleModel
from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, open_code_parts
from kamino.privacy.sensitivity import Sensitivity
from kamino.schema import Codec, CodedTable
from kamino.schema.coding.decoding import decode_columns
from kamino.schema.coding.joint_codes import number_combinations, number_values
from kamino.schema.coding.value_hashes import deal_out

# The part of mu² that the rates of a run take, if there are soft constraints.
RATES_SHARE = 0.05
# The largest group may be larger than the model says: by this part, and by this many rows.
_MARGIN = 1.1
_MORE_ROWS = 50
# Wider domains are not looked through for their most frequent value.
_WIDE = 1 << 20
#: Rows of a table in parts that are counted at a time.
ROWS_AT_ONCE = 1 << 22


@dataclass(frozen=True, kw_only=True)
class RateEstimate:
    """The noisy violation rate of one constraint and the standard deviation of its noise; it may be negative."""

    constraint: DenialConstraint
    rate: float
    deviation: float


@dataclass(frozen=True, kw_only=True)
class RateEstimates:
    """The noisy rates of all soft constraints of a run. Every field may be published."""

    items: tuple[RateEstimate, ...] = ()

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain data that `json.dumps` takes."""
        return [
            {"constraint": print_constraint(each.constraint), "rate": each.rate, "deviation": each.deviation}
            for each in self.items
        ]

    @staticmethod
    def from_json(document: Iterable[dict[str, Any]], constraints: Iterable[DenialConstraint]) -> RateEstimates:
        """Read what `to_json` wrote, for the same constraints."""
        known = {print_constraint(c): c for c in constraints}
        found = [
            RateEstimate(constraint=known[e["constraint"]], rate=float(e["rate"]), deviation=float(e["deviation"]))
            for e in document
        ]
        return RateEstimates(items=tuple(found))


def model_share(constraints: Iterable[DenialConstraint]) -> float:
    """Return the part of mu² that is left for the model once the rates have theirs; all of it if nothing is soft."""
    return 1 - RATES_SHARE if any(c.strength.kind is Kind.SOFT for c in constraints) else 1.0


def release_rates(
    private: PrivateCodes,
    codec: Codec,
    constraints: Iterable[DenialConstraint],
    gate: Gate,
    *,
    model: TupleModel,
    noise_multiplier: float,
) -> RateEstimates:
    """Release the rates of the soft constraints among `constraints`, all in one vector.

    `model` is public and says how many rows there are and how large groups get. It costs 1 / noise_multiplier² of mu²,
    and nothing if no constraint is soft.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_rates]
        No row moves the vector further than declared.  [test_rates_move_within_their_sensitivity]
        Without noise the rates are the true ones.  [test_exact_rates_are_true]
    """
    soft = tuple(dict.fromkeys(c for c in constraints if c.strength.kind is Kind.SOFT))
    if not soft:
        return RateEstimates()
    num_rows = max(2, round(model.num_rows))
    tops = [_largest_group(c, codec, model, num_rows) for c in soft]
    moves = [2.0 if _group_keys(c) else 1.0 for c in soft]
    sensitivity = Sensitivity(add_remove=math.sqrt(len(soft)), replace=math.sqrt(sum(move**2 for move in moves)))
    released = gate.release_vector(
        np.array([_statistic(c, codec, private, top) for c, top in zip(soft, tops, strict=True)]),
        what=f"violation rates of {len(soft)} soft constraints",
        attributes=tuple(dict.fromkeys(name for c in soft for name in c.attributes)),
        noise_multiplier=noise_multiplier,
        sensitivity=sensitivity,
    )
    sigma = gate.deviation(noise_multiplier, gate.sensitivity(sensitivity))
    scales = [
        1 / num_rows if c.is_unary else (top - 1) / math.comb(num_rows, 2) for c, top in zip(soft, tops, strict=True)
    ]
    found = [
        RateEstimate(constraint=c, rate=float(value) * scale, deviation=sigma * scale)
        for c, value, scale in zip(soft, released, scales, strict=True)
    ]
    return RateEstimates(items=tuple(found))


def _group_keys(constraint: DenialConstraint) -> tuple[str, ...]:
    """Return the attributes that must be equal in two rows before they can violate the constraint."""
    return () if constraint.is_unary else tuple(sorted(equal_attributes(constraint)))


def _largest_group(constraint: DenialConstraint, codec: Codec, model: TupleModel, num_rows: int) -> int:
    """Return T: about the largest number of rows with equal keys, from what the model says of each key alone."""
    shares = [1.0]
    for name in _group_keys(constraint):
        attribute = codec[name]
        if attribute.size <= _WIDE:
            probability = np.array(model.marginal((name,)), dtype=np.float64)
            if attribute.null_code is not None:
                probability[attribute.null_code] = 0.0
            shares.append(float(probability.max()))
    return max(2, min(num_rows, math.ceil(_MARGIN * min(shares) * num_rows) + _MORE_ROWS))


def _statistic(constraint: DenialConstraint, codec: Codec, private: PrivateCodes, top: int) -> float:
    """Return f / (T - 1), or the number of violating rows of a constraint on single rows.

    Groups are made of the ranks by which violations are counted: rows that violate together are in one group. A table
    in parts is gone through once for some of the groups, as many rows at a time as fit; a constraint on pairs that asks
    for no equal values has one group, and the columns that it names are held as a whole.

    Guarantees:
        No row moves it by more than 1, whatever the domains.  [test_a_new_value_moves_no_rate_beyond_64_bits]
        It is the same however the table is cut, to the last bit.  [test_rates_do_not_depend_on_parts]
    """
    if constraint.is_unary:
        parts = open_code_parts(private, constraint.attributes)
        return float(sum(count_violations(_values(constraint, codec, part), constraint) for part in parts))
    terms = [_terms(constraint, codec, coded, top) for coded in _by_groups(constraint, codec, private)]
    # The exact sum, rounded once: the order of the groups does not matter. C(T, 2) / (T - 1) = T / 2.
    return math.fsum(chain.from_iterable(part.tolist() for part in terms)) * top / 2


def _values(constraint: DenialConstraint, codec: Codec, coded: CodedTable) -> RankedTable:
    return RankedTable(decode_columns(codec, coded.columns, constraint.attributes))


def _terms(constraint: DenialConstraint, codec: Codec, coded: CodedTable, top: int) -> NDArray[np.float64]:
    """The |V_g| / C(max(n_g, T), 2) of the groups in which rows violate the constraint."""
    table = _values(constraint, codec, coded)
    ranks = [table.ranks(name)[0] for name in _group_keys(constraint)]
    groups, _ = number_values(number_combinations(ranks)[0] if ranks else np.zeros(coded.num_rows, dtype=np.int64))
    sizes = np.maximum(np.bincount(groups), top).astype(np.float64)
    violations = np.bincount(groups, weights=violations_per_row(table, constraint)) / 2
    found: NDArray[np.float64] = violations / (sizes * (sizes - 1) / 2)
    return found[found > 0]


def _by_groups(constraint: DenialConstraint, codec: Codec, private: PrivateCodes) -> Iterator[CodedTable]:
    """The codes that a constraint names, all rows of a group together: one pass for so many rows as fit."""
    names, keys = constraint.attributes, _group_keys(constraint)
    if not private.is_streamed or not keys:
        yield joined_parts(open_code_parts(private, names), names)
        return
    num_rows = sum(part.num_rows for part in open_code_parts(private, keys[:1]))
    passes = -(-num_rows // ROWS_AT_ONCE) or 1
    for turn in range(passes):
        parts = open_code_parts(private, names)
        yield joined_parts((_rows_of_turn(part, codec, keys, turn, passes) for part in parts), names)


def _rows_of_turn(coded: CodedTable, codec: Codec, keys: tuple[str, ...], turn: int, passes: int) -> CodedTable:
    """The rows whose group is dealt with in this pass: equal values have equal hashes, and so one turn."""
    own = deal_out(decode_columns(codec, coded.columns, keys), passes) == turn
    return CodedTable(columns={name: codes[own] for name, codes in coded.columns.items()}, num_rows=int(own.sum()))


def joined_parts(parts: Iterable[CodedTable], names: Sequence[str]) -> CodedTable:
    """The rows of several parts as one table."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    columns = {name: np.concatenate([part[name] for part in found]) for name in names}
    return CodedTable(columns=columns, num_rows=sum(part.num_rows for part in found))
