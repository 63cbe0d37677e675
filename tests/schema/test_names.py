"""What names of columns say: codes, and usual ranges."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from kamino.schema import Categorical, Integer, Key, Real, Schema, Source, draft_schema
from kamino.schema.files.names import looks_like_code, proposed_range, with_usual_ranges
from kamino.schema.files.value_lists import VALUE_LISTS

CODES = [
    "zip", "ZIP", "Zip5", "zip_code", "AreaCode", "area code", "phone", "phoneNumber", "patient_id", "patientId", "ID",
    "c_custkey", "provider_number", "Provider No", "icd9", "npi", "account nr", "hospital-code", "uuid",
]  # fmt: skip
QUANTITIES = [
    "age", "education-num", "number_of_rooms", "hours-per-week", "capital-gain", "width", "idle_time", "humidity",
    "decode_rate", "keyboard_presses", "order_amount", "tax", "price", "fnlwgt", "zipf_exponent", "",
]  # fmt: skip


@pytest.mark.parametrize("name", CODES)
def test_names_of_codes(name: str) -> None:
    assert looks_like_code(name)


@pytest.mark.parametrize("name", QUANTITIES)
def test_names_of_quantities(name: str) -> None:
    assert not looks_like_code(name)


def test_codes_are_categories() -> None:
    table = pa.table(
        {
            "zip": [10_115, 20_095, 10_115, 80_331] * 5,
            "order_id": range(20),
            "amount": range(20),
            "provider_number": pa.array([1, 2] * 10, pa.int32()),
        }
    )
    trusted = draft_schema(table, trust_domain=True, codes=True)
    assert trusted["zip"] == Categorical(values=[10_115, 20_095, 80_331], source=Source.ASSERTED, dtype="int64")
    assert trusted["provider_number"].dtype == "int32"
    # As many values as rows: keys, not categories.
    assert isinstance(trusted["order_id"], Integer)
    assert isinstance(trusted["amount"], Integer)
    drafted = draft_schema(table, codes=True)
    assert [drafted[name].type for name in drafted] == ["categorical", "categorical", "integer", "categorical"]
    assert drafted.missing_domains == drafted.names
    assert {attribute.type for attribute in draft_schema(table).attributes.values()} == {"integer"}
    assert Schema.from_yaml(drafted.to_yaml()) == drafted


def test_usual_ranges_are_taken_as_declared() -> None:
    schema = Schema(attributes={"age": Integer(), "fat_percent": Real(decimals=1), "price": Integer(), "lat": Real()})
    made = with_usual_ranges(schema)
    assert made["age"] == Integer(min=0, max=120, source=Source.DECLARED)
    assert made["fat_percent"].source is Source.DECLARED
    assert made.missing_domains == ("price",)
    assert proposed_range("age", Categorical()) is None


def test_public_lists_hold_each_value_once() -> None:
    assert {name: len(values) for name, values in VALUE_LISTS.items()} == {
        "country-codes": 249,
        "currency-codes": 156,
        "us-state-codes": 51,
        "us-states": 51,
    }
    assert all(len(set(values)) == len(values) for values in VALUE_LISTS.values())
    assert "Rhode Island" in VALUE_LISTS["us-states"]


def test_uuids_and_emails_are_keys() -> None:
    ids = [str(uuid.uuid4()) for _ in range(4)]
    mails = ["a@b.org", None, "c.d@e.co.uk", "a@b.org"]
    table = pa.table({"row_guid": ids, "contact_email": mails, "ref": ids, "who": mails, "city": ["x@y"] * 4})
    named = draft_schema(table, codes=True)
    assert (named["row_guid"], named["contact_email"]) == (Key(pattern="uuid"), Key(pattern="person{}@example.org"))
    assert all(isinstance(named[name], Categorical) for name in ("ref", "who", "city"))
    looked = draft_schema(table, codes=True, looks=True)
    assert (looked["ref"], looked["who"]) == (Key(pattern="uuid"), Key(pattern="person{}@example.org"))
    assert isinstance(looked["city"], Categorical)
    assert not any(isinstance(each, Key) for each in draft_schema(table).attributes.values())
