"""Check a table in memory: count violations, see which rows are to blame."""

import pyarrow as pa

from kamino.constraints import Constraints, find_violations, value_types
from kamino.evaluate.checking import check_table

people = pa.table(
    {
        "zip": ["01002", "01002", "94105", "94105"],
        "city": ["Amherst", "Amherst", "San Francisco", "Oakland"],
        "salary": [40_000, 52_000, 81_000, None],
        "rate": [4.0, 5.1, 5.0, 9.3],
    }
)
rules = Constraints.parse(
    """
    zip -> city
    not (t1.salary > t2.salary and t1.rate < t2.rate)
    soft: check (salary >= 45000)
    """,
    types=value_types(people),
)

result = check_table(people, rules)
for check in result.checks:
    print(f"{check.violations} of {check.pairs} ({check.shape.value})")
    for rows in find_violations(people, check.constraint, limit=3):
        print("   rows", ", ".join(str(row + 1) for row in rows))
