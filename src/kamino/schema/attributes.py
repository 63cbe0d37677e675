"""All kinds of attributes, told apart by their `type`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kamino.schema.category import Boolean, Categorical
from kamino.schema.keys import Key
from kamino.schema.numbers import Integer, Real
from kamino.schema.times import Date, Datetime

Attribute = Annotated[Categorical | Integer | Real | Boolean | Date | Datetime | Key, Field(discriminator="type")]
GridAttribute = Integer | Real | Date | Datetime

__all__ = [
    "Attribute",
    "Boolean",
    "Categorical",
    "Date",
    "Datetime",
    "GridAttribute",
    "Integer",
    "Key",
    "Real",
]
