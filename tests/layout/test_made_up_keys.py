"""Keys are left out and made up again."""

from __future__ import annotations

from tests.contracts.recodings import RecodingCase, RecodingLaws

from kamino.layout.made_up_keys import MadeUpKeys
from kamino.schema import Categorical, Integer, Key, Schema

SCHEMA = Schema(
    attributes={
        "id": Key(dtype="int64"),
        "age": Integer(min=0, max=9, nullable=True),
        "code": Key(pattern="C{:04d}"),
        "other": Key(dtype="int64"),
        "city": Categorical(values=["Rome", "Oslo"]),
    }
)


class TestMadeUpKeys(RecodingLaws):
    cases = (
        RecodingCase(
            schema=SCHEMA,
            recoding=MadeUpKeys(whole=SCHEMA),
            kept="key (id)\nkey (other, age)\ncheck (code is not null)\nid -> city",
            drawn="check (age > 3)\ncity -> age",
            made_up=("id", "code", "other"),
        ),
    )
