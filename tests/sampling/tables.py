"""Schemas like those of the adult, tax and tpch tables, with their constraints."""

from __future__ import annotations

from decimal import Decimal

from kamino.constraints import Constraints
from kamino.schema import Categorical, Codec, Integer, Real, Schema


def listed(size: int) -> Categorical:
    return Categorical(values=[f"v{i:05d}" for i in range(size)])


ADULT = Codec(
    Schema(
        attributes={
            "age": Integer(min=17, max=90),
            "education": listed(16),
            "education-num": Integer(min=1, max=16),
            "sex": listed(2),
            "capital-gain": Integer(min=0, max=99999),
            "capital-loss": Integer(min=0, max=4356),
            "income": listed(2),
        }
    )
)
ADULT_CONSTRAINTS = Constraints.parse(
    "education -> education-num\n"
    "not (t1.capital-gain < t2.capital-gain and t1.capital-loss < t2.capital-loss)\n"
    "check (age >= 17)"
)

TAX = Codec(
    Schema(
        attributes={
            "Gender": listed(2),
            "AreaCode": listed(273),
            "City": listed(10375),
            "State": listed(52),
            "Zip": listed(18781),
            "MaritalStatus": listed(2),
            "HasChild": listed(2),
            "Salary": Integer(min=5000, max=100000),
            "Rate": Real(min=Decimal(0), max=Decimal(10), decimals=4, nullable=True),
            "SingleExemp": Integer(min=0, max=20000),
            "ChildExemp": Integer(min=0, max=10000),
        }
    )
)
TAX_CONSTRAINTS = Constraints.parse(
    "Zip -> City\nAreaCode -> State\nZip -> State\nState, HasChild -> ChildExemp\nState, MaritalStatus -> SingleExemp\n"
    "not (t1.State = t2.State and t1.Salary > t2.Salary and t1.Rate < t2.Rate)"
)

TPCH = Codec(
    Schema(
        attributes={
            "c_custkey": listed(1344),
            "c_nationkey": listed(25),
            "c_acctbal": Real(min=Decimal(-1000), max=Decimal(10000), decimals=2),
            "c_mktsegment": listed(5),
            "n_name": listed(25),
            "n_regionkey": listed(5),
            "o_orderstatus": listed(3),
        }
    )
)
TPCH_CONSTRAINTS = Constraints.parse(
    "c_custkey -> c_nationkey\nc_custkey -> c_mktsegment\nc_custkey -> n_name\nn_name -> n_regionkey"
)
