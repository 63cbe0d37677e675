"""What somebody types at first, in the words of other tools, and the one line that answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.test_check_command import kamino

TABLE = "zip,city,price\n" + "".join(f"{n % 3},{'AB'[n % 2]},{n % 40}.5\n" for n in range(120))
SYNTH = ("synth", "t.csv", "-o", "out.csv")
WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "a command misspelled": (("sinth", "t.csv"), "Did you mean synth"),
    "a command of others": (("generate", "t.csv"), "here it is synth"),
    "another command of others": (("validate", "t.csv"), "here it is check"),
    "--num-rows": ((*SYNTH, "--num-rows", "5"), "here it is -n"),
    "--random-state": ((*SYNTH, "--random-state", "5"), "here it is --seed"),
    "--sep": ((*SYNTH, "--sep", ";"), "here it is --separator"),
    "--na-values": ((*SYNTH, "--na-values", "NA"), "here it is --nulls"),
    "--eps": ((*SYNTH, "--eps", "1"), "here it is -e"),
    "--exclude": ((*SYNTH, "--exclude", "zip"), "here it is --drop"),
    "--rules": ((*SYNTH, "--rules", "r.dc"), "here it is -c"),
    "an option misspelled": ((*SYNTH, "--epsilom", "1"), "--epsilon"),
    "no query": (("synth", "postgresql://h/d", "-o", "out.csv"), "-q 'SELECT …' or -q table, or #table"),
    "sqlite": (("synth", "sqlite:///f.db", "-o", "out.csv"), "sqlite_scan('FILE.db', 'TABLE')"),
    "mysql": (("synth", "mysql://h/d#t", "-o", "out.csv"), "TYPE mysql"),
    "s3": (("synth", "s3://bucket/t.parquet", "-o", "out.csv"), "COPY (FROM 'ADDRESS')"),
    "https": (("check", "https://h/t.csv", "-c", "r.dc"), "COPY (FROM 'ADDRESS')"),
    "a style that is none": ((*SYNTH, "--numbers", "price=$"), "expected an example of how they are written"),
    "numbers of no column": ((*SYNTH, "--numbers", "1,234.5"), "expected COLUMN=EXAMPLE"),
    "numbers of another column": ((*SYNTH, "--numbers", "prise=1,234.5"), "Did you mean 'price'"),
    "nulls of another column": ((*SYNTH, "--nulls", "prise=NA"), "Did you mean 'price'"),
    "drop of another column": ((*SYNTH, "--drop", "prise"), "Did you mean 'price'"),
    "double quotes": (("check", "t.csv", "-c", "quotes.dc"), "Texts have single quotes: 'open'"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_what_was_meant_is_named(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "r.dc").write_text("zip -> city\n")
    (tmp_path / "quotes.dc").write_text('check (city in ("open"))\n')
    before = sorted(tmp_path.iterdir())
    ran = kamino(*arguments, cwd=tmp_path)
    assert ran.returncode == 2, ran.stderr
    lines = [line for line in ran.stderr.splitlines() if line.startswith("kamino: ")]
    assert len(lines) == 1, ran.stderr
    assert said in lines[0]
    assert "spent" not in lines[0]
    assert sorted(tmp_path.iterdir()) == before
