"""Dates as distances from others, in chains, with nulls, and from domains that do not overlap."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from tests.contracts.recodings import RecodingCase, RecodingLaws

from kamino.errors import KaminoError
from kamino.layout.offsets import Offsets
from kamino.schema import Date, Datetime, Integer, Schema
from kamino.schema.coding.differences import Difference


def day(first: int, last: int, *, nullable: bool = False) -> Date:
    return Date(min=dt.date(2020, 1, first), max=dt.date(2020, 2, last), nullable=nullable)


CHAIN = Schema(
    attributes={
        "booked": day(1, 10),
        "come": day(3, 20, nullable=True),
        "gone": Datetime(min=dt.datetime(2020, 1, 1), max=dt.datetime(2020, 3, 1), resolution=3600, nullable=True),
        "age": Integer(min=0, max=9),
    }
)


def in_reach(row: dict[str, Any]) -> bool:
    """Where a date may lie on either side of its base, distances reach half of its domain."""
    return row["gone"] is None or abs((row["booked"] - row["gone"].date()).days) < 20


class TestOffsets(RecodingLaws):
    cases = (
        RecodingCase(
            schema=CHAIN,
            recoding=Offsets(whole=CHAIN, differences={"come": Difference(base="booked", least=0)}),
            kept="check (booked <= come)",
            drawn="check (age > 1)",
        ),
        RecodingCase(
            schema=CHAIN,
            recoding=Offsets(
                whole=CHAIN,
                differences={"come": Difference(base="booked", least=1), "booked": Difference(base="gone")},
            ),
            kept="check (booked < come)",
            reached=in_reach,
        ),
    )


@pytest.mark.parametrize(
    "differences",
    [
        {"come": {"base": "age", "least": 0}},
        {"come": {"base": "nobody", "least": 0}},
        {"come": {"base": "booked", "least": 2}},
        {"come": {"base": "booked"}},
        {"come": {"base": "booked", "least": None}, "booked": {"base": "come", "least": None}},
    ],
)
def test_offsets_of_no_two_dates_are_refused(differences: Any) -> None:
    with pytest.raises((KaminoError, LookupError)):
        Offsets.from_json({"kind": "offsets", "differences": differences}, CHAIN)
