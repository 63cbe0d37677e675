"""Wrong inputs end with exit code 2 and one line, spend nothing and leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCHEMA = """attributes:
  zip: {type: categorical, values: [a, b, c], nullable: true}
  city: {type: categorical, values: [Rome, Paris]}
  age: {type: integer, min: 0, max: 99, nullable: true}
  day: {type: date, min: 2020-01-01, max: 2020-12-31}
"""
ROWS = "zip,city,age,day\n" + "".join(
    f"{'abc'[i % 3]},{'Rome' if i % 2 else 'Paris'},{20 + i % 50},2020-0{1 + i % 9}-11\n" for i in range(60)
)
FILES = {
    "t.csv": ROWS,
    "s.yaml": SCHEMA,
    "people.csv": ROWS.replace("zip,city", "patient_id,city", 1),
    "open.yaml": "attributes:\n  zip: {type: categorical}\n  city: {type: categorical, values: [Rome]}\n"
    "  age: {type: integer, min: 1, max: 9}\n  day: {type: date}\n",
    "one.yaml": SCHEMA.replace("values: [a, b, c], nullable: true", "values: [a]"),
    "keyed.yaml": SCHEMA.replace(
        "{type: categorical, values: [a, b, c], nullable: true}", '{type: key, pattern: "K{:01d}"}'
    ),
    "unit.yaml": SCHEMA + "unit: zip\n",
    "empty.csv": "",
    "torn.csv": 'zip,city,age,day\na,"Rome,3,2020-01-11\n',
    "ragged.csv": "zip,city\na,Rome,3\n",
    "twice.csv": "zip,zip\na,b\n",
    "words.parquet": "not a parquet file",
    "notes.txt": "hello",
    "map.csv": "zip,city\na,Rome\nb,Paris\n",
    "two.csv": "zip,city\na,Rome\na,Paris\n",
    "far.csv": "zip,city\na,Oslo\n",
    "torn.yaml": "attributes: [",
    "odd.yaml": "attributes:\n  zip: {type: colour}\n",
    "half.yaml": SCHEMA.replace("min: 0, max: 99", "min: 0"),
    "other.yaml": "attributes:\n  name: {type: categorical, values: [x]}\n",
    "turned.yaml": SCHEMA.replace("min: 0, max: 99", "min: 99, max: 0"),
}
SYNTH = ("synth", "t.csv", "-o", "o.csv")
WITH = (*SYNTH, "-s", "s.yaml")

# Each case: the arguments, the constraints if any, and what the one line says.
CASES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "absurd rows": ((*WITH, "-n", "1000000000000000"), "", "GiB"),
    "absurd rows without a schema": ((*SYNTH, "-n", "1000000000000000"), "", "GiB"),
    "absurd rows on a dry run": ((*WITH, "-n", "1000000000000000", "--dry-run"), "", "GiB"),
    "rows below 0": ((*WITH, "-n", "-1"), "", "-1"),
    "rows that are no number": ((*WITH, "-n", "many"), "", "many"),
    "rows with a fraction": ((*WITH, "-n", "1.5"), "", "1.5"),
    "epsilon 0": ((*WITH, "-e", "0"), "", "epsilon is 0"),
    "epsilon below 0": ((*WITH, "-e", "-1"), "", "epsilon is -1"),
    "epsilon is no number": ((*WITH, "-e", "nan"), "", "epsilon is nan"),
    "epsilon in words": ((*WITH, "-e", "one"), "", "one"),
    "delta 0": ((*WITH, "-d", "0"), "", "delta is 0"),
    "delta 1": ((*WITH, "-d", "1"), "", "delta is 1"),
    "no data": (("synth", "none.csv", "-o", "o.csv"), "", "none.csv: no such file"),
    "data is a folder": (("synth", "folder.csv", "-o", "o.csv"), "", "found a directory"),
    "a folder with a broken file": (("synth", ".", "-o", "o.csv"), "", "words.parquet"),
    "data of no kind": (("synth", "notes.txt", "-o", "o.csv"), "", "cannot tell the kind of file"),
    "empty data": (("synth", "empty.csv", "-o", "o.csv"), "", "empty.csv"),
    # Without trust, a line that cannot be read is private, and a row of nulls: test_private_files.
    "torn data": (("synth", "torn.csv", "-o", "o.csv", "--trust-domain"), "", "torn.csv"),
    "ragged data": (("synth", "ragged.csv", "-o", "o.csv", "--trust-domain"), "", "ragged.csv"),
    "a column twice": (("synth", "twice.csv", "-o", "o.csv"), "", "zip"),
    "no parquet": (("synth", "words.parquet", "-o", "o.csv"), "", "words.parquet"),
    "a query of a file": ((*WITH, "-q", "select 1"), "", "not a database"),
    "no output folder": (("synth", "t.csv", "-s", "s.yaml", "-o", "no/o.csv"), "", "there is no folder no"),
    "output of no kind": (("synth", "t.csv", "-s", "s.yaml", "-o", "o.txt"), "", "o.txt"),
    "output over input": (("synth", "t.csv", "-s", "s.yaml", "-o", "t.csv"), "", "also an input"),
    "output over the schema": (("synth", "t.csv", "-s", "s.yaml", "-o", "s.yaml"), "", "s.yaml"),
    "no output": (("synth", "t.csv", "-s", "s.yaml"), "", "-o"),
    "output is a folder": (("synth", "t.csv", "-s", "s.yaml", "-o", "folder.csv"), "", "folder.csv"),
    "no model folder": ((*WITH, "--save-model", "no/m.kamino"), "", "there is no folder no"),
    "model over output": ((*WITH, "--save-model", "o.csv"), "", "one name for two outputs"),
    "no schema file": ((*SYNTH, "-s", "none.yaml"), "", "none.yaml"),
    "torn schema": ((*SYNTH, "-s", "torn.yaml"), "", "torn.yaml"),
    "unknown type": ((*SYNTH, "-s", "odd.yaml"), "", "colour"),
    "half a domain": ((*SYNTH, "-s", "half.yaml"), "", "without max"),
    "a domain turned round": ((*SYNTH, "-s", "turned.yaml"), "", "age"),
    "schema of another table": ((*SYNTH, "-s", "other.yaml"), "", "name"),
    "unit without max_rows in the schema": ((*SYNTH, "-s", "unit.yaml"), "", "max_rows"),
    "unit without max_rows": ((*WITH, "--unit", "zip"), "", "max_rows"),
    "max_rows without unit": ((*WITH, "--max-rows", "3"), "", "unit"),
    "max_rows 0": ((*WITH, "--unit", "zip", "--max-rows", "0"), "", "0"),
    "absurd max_rows": ((*WITH, "--unit", "zip", "--max-rows", "1000000000000"), "", "at most 1,000,000,000"),
    "ids of persons and no unit": (("synth", "people.csv", "-o", "o.csv"), "", "whose privacy is promised"),
    "real ids of persons": (
        ("synth", "people.csv", "--trust-domain", "--unit", "row", "-o", "o.csv"),
        "",
        "real ids would be written",
    ),
    "no such unit": ((*WITH, "--unit", "who", "--max-rows", "2"), "", "who"),
    "no rule file": ((*WITH, "-c", "none.dc"), "", "none.dc"),
    "unknown attribute": (WITH, "zpi -> city", "Did you mean 'zip'?"),
    "a rule cut short": (WITH, "zip ->", "rules.dc:1"),
    "a number beside text": (WITH, "check (city > 3)", "but 'city' is text"),
    "no such date": (WITH, "check (day > '2020-02-31')", "rules.dc:1"),
    "text beside a number": (WITH, "not (t1.age < t1.city)", "cannot be compared"),
    "two types without a schema": (SYNTH, "check (age > 3)\ncheck (age != 'x')", "compared with"),
    "a check that only null satisfies": (WITH, "check (age > 200)", "every row would be null there"),
    "the same, other domains missing": ((*SYNTH, "-s", "open.yaml"), "check (age > 20)", "no row over"),
    "checks that contradict": (WITH, "check (city = 'Oslo')", "no row over"),
    "a key over one value": ((*SYNTH, "-s", "one.yaml", "-n", "2"), "key (zip)", "no table of 2 rows"),
    "a key with too few values": ((*WITH, "-n", "50"), "key (city)", "no table of 50 rows"),
    "made-up keys too few": ((*SYNTH, "-s", "keyed.yaml", "-n", "50"), "", "found the key zip with 9 different values"),
    "every column a key": (("synth", "keys.csv", "-s", "keys.yaml", "-o", "o.csv"), "", "every column is a key"),
    "no reference": (WITH, "zip -> city using none.csv", "none.csv: no such file"),
    "no reference, no schema": (SYNTH, "zip -> city using none.csv", "none.csv: no such file"),
    "a reference with two values": (SYNTH, "zip -> city using two.csv", "found two values of city for zip = a"),
    "a reference outside the domain": (WITH, "zip -> city using far.csv", "outside its domain, such as Oslo"),
    "a reference without the column": (WITH, "age -> city using map.csv", "found no column age"),
    "a reference for a soft rule": (WITH, "soft: zip -> city using map.csv", "would not be used"),
    "a reference for a check": (WITH, "check (age > 3) using map.csv", "rules.dc:1"),
    "unknown option": ((*WITH, "--private"), "", "--private"),
    "unknown sampling": ((*WITH, "--sampling", "magic"), "", "magic"),
    "sweeps below 0": ((*WITH, "--sweeps", "-1"), "", "-1"),
    "plan without a schema": (("plan",), "", "found no schema"),
    "check without a table": (("check", "none.csv"), "zip -> city", "none.csv"),
    "sample without a model": (("sample", "none.kamino", "-o", "o.csv"), "", "none.kamino"),
    "report with one table": (("report", "t.csv"), "", "found one table"),
}

DRIVER = """
import contextlib, io, json, os, shutil, sys, tempfile
from pathlib import Path
from kamino.cli.app import main
import kamino.pipeline.fitting as fitting

files, cases = json.load(sys.stdin)
# A plan charges a ledger of its own, through which nothing passes; releases go through the gate that a run opens.
opened = []
fit = fitting.fit
def counted(private, plan, gate, **rest):
    opened.append(gate)
    return fit(private, plan, gate, **rest)
fitting.fit = counted

def listing(folder):
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}

found = {}
for name, (arguments, rules) in cases.items():
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.chdir(folder)
        (folder / "folder.csv").mkdir()
        for file, text in files.items():
            Path(file).write_text(text)
        if rules:
            Path("rules.dc").write_text(rules + "\\n")
            arguments = [*arguments, "-c", "rules.dc"]
        before, opened[:] = listing(folder), []
        sys.argv = ["kamino", *arguments]
        said, printed, code = io.StringIO(), io.StringIO(), None
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
            try:
                main()
            except SystemExit as end:
                code = end.code
        spent = sum(len(gate.ledger.entries) for gate in opened)
        found[name] = {
            "code": code, "said": said.getvalue().splitlines(), "printed": printed.getvalue(),
            "spent": spent, "left": listing(folder) != before,
        }
        os.chdir("/")
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """What became of each case, all run in one process, which starts once."""
    files = {**FILES, "keys.csv": "zip\na\n", "keys.yaml": "attributes:\n  zip: {type: key}\n"}
    cases = {name: (arguments, rules) for name, (arguments, rules, _) in CASES.items()}
    source = Path(__file__).parents[2] / "src"
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([files, cases]),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source), "COLUMNS": "400"},
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_there_are_sixty() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES)
def test_bad_inputs_cost_nothing(case: str, outcomes: dict[str, Any]) -> None:
    found = outcomes[case]
    assert found["code"] == 2, found
    assert len(found["said"]) == 1, found["said"]
    assert CASES[case][2] in found["said"][0]
    assert (found["spent"], found["left"], found["printed"]) == (0, False, "")
