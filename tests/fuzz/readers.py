"""The readers that take files from anybody, each with valid inputs to start from.

To add one, write a function that returns a `Reader` and enter it in `READERS`; its `share` is its part of all inputs.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.fuzz.mutating import json_bytes, mutated, mutated_json

from kamino.constraints import Constraints, ValueType
from kamino.errors import KaminoError
from kamino.io import read_table
from kamino.io.bundle import read_bundle
from kamino.io.text import read_text
from kamino.pipeline import Synthesizer
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.writing import certificate_path
from kamino.pipeline.verifying.verification import verify
from kamino.privacy import Budget, DeltaEvent, GaussianEvent, Neighbours
from kamino.privacy.durable.hash_chain import START, digest
from kamino.privacy.durable.ledger_lines import PlannedRun, Policy, StoredRelease, charge_body, close_body, header_body
from kamino.privacy.durable.store import DurableLedger
from kamino.privacy.ledger import Entry
from kamino.schema import Categorical, Integer, Key, Schema

Make = Callable[[random.Random], bytes]
Read = Callable[[bytes, Path], object]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A reader under test: `make` gives an input from a source of randomness, `read` reads it or raises."""

    name: str
    share: float
    make: Make
    read: Read
    one_line: bool = False
    """Whether all that is wrong is told in one line."""


RULES = (
    b"zip -> city, state\n",
    b"a, b -> c using 'zips.csv'\n",
    b"soft: not (t1.age > t2.age and t1.pay < t2.pay)\n",
    b"weight 2.5: key (name, zip)\n",
    b"check (age >= 18 and (pay < 1e5 or city in ('NY', 'LA')) and state is not null)\n",
    b'not (t1."emp id" = t2."emp id" and t1.pay != t2.pay) # one\n',
    b"t1&t2&EQ(t1.state,t2.state)&GT(t1.pay,t2.pay)&LT(t1.age,t2.age)\n",
    b"check (day <= '2024-01-31' and not (flag = true))\n",
    b"\xef\xbb\xbfkey (zip)\r\ncheck (age > -3)\r\n",
)
RULE_WORDS = (
    *(
        b" not ",
        b" and ",
        b" or ",
        b" in ",
        b" is ",
        b" null ",
        b"check (",
        b"key (",
        b"soft: ",
        b"weight 1: ",
        b" -> ",
    ),
    *(
        b" using ",
        b"t1.",
        b"t2.",
        b"t3.",
        b" = ",
        b" != ",
        b" <= ",
        b"EQ(",
        b"IQ(",
        b"&",
        b"age",
        b"zip",
        b"'x'",
        b'"a b"',
    ),
)
RULE_TYPES = {
    **dict.fromkeys(("age", "pay", "a", "b"), ValueType.NUMBER),
    **dict.fromkeys(("zip", "city", "state", "name", "c", "emp id"), ValueType.TEXT),
    "day": ValueType.DATE,
    "flag": ValueType.BOOLEAN,
}
SCHEMAS = (
    b"attributes:\n  age: {type: integer, min: 0, max: 120, nullable: true}\n"
    b"  pay: {type: real, min: 0, max: 9.5, step: 0.5}\n",
    b"unit: who\nmax_rows: 3\nattributes:\n  who: {type: key}\n"
    b"  city:\n    type: categorical\n    values: [NY, LA, '07']\n",
    b"attributes:\n  day: {type: date, min: 2020-01-01, max: 2024-12-31}\n"
    b"  at: {type: datetime, min: 2020-01-01, max: 2021-01-01, resolution: 60}\n",
    b"attributes:\n  ok: {type: boolean}\n  n: &n {type: integer, source: private}\n  m: *n\n",
)
SCHEMA_WORDS = (
    *(b"type: ", b"min: ", b"max: ", b"values: ", b"nullable: ", b"source: ", b"step: ", b"resolution: ", b"unit: "),
    *(
        b"integer",
        b"real",
        b"categorical",
        b"key",
        b"date",
        b"!!int ",
        b"!!set ",
        b"&a ",
        b"*a",
        b"<<: ",
        b"? ",
        b"\n  ",
    ),
    *(
        b"attributes:\n",
        b"- ",
        b"[a, ",
        b"{a: ",
        b"2020-01-01",
        b"pattern: 'E{:04d}'",
        b"%YAML 1.2\n---\n",
        b"|\n",
        b">-\n",
    ),
)
TABLES = (
    b"a,b,c\n1,x,2024-01-01\n2,,2024-02-03\n,y,\n",
    b'"a ""q""",b\n"1,5","line\nbreak"\n3,4\n',
    b"n,t,z,e\n1.5,2024-01-01 10:00:00,true,-0\n-2e3,2024-01-01T10:00:00.123456Z,false,1\n",
    b"\xef\xbb\xbfid,id2\r\n0001,9223372036854775807\r\n0002,-9223372036854775808\r\n",
)


def rules(folder: Path) -> Reader:
    """Constraints, checked against types, printed and read again."""

    def read(data: bytes, scratch: Path) -> object:
        text = data.decode("utf-8", "surrogateescape" if data[:1] == b"#" else "replace")
        found = Constraints.parse(text, types=RULE_TYPES)
        assert Constraints.parse(str(found), types=RULE_TYPES) == found, "printed and read again it is another"
        return found

    return Reader(name="rules", share=0.4, make=lambda rng: mutated(RULES, RULE_WORDS, rng), read=read)


def rule_files(folder: Path) -> Reader:
    """The same as bytes of a file."""

    def read(data: bytes, scratch: Path) -> object:
        scratch.write_bytes(data)
        return Constraints.parse(read_text(scratch, what="constraint file"))

    return Reader(name="rule-files", share=0.05, make=lambda rng: mutated(RULES, RULE_WORDS, rng), read=read)


def ddl(folder: Path) -> Reader:
    """`CREATE TABLE` statements."""
    seeds = (
        b"create table t (id int primary key, age int not null check (age >= 0 and age < 150), unique (id, age))",
        b"CREATE TABLE p (a text, b numeric(5, 2), CONSTRAINT c CHECK (a in ('x', 'y') OR b IS NULL))",
    )
    words = (
        b"check (",
        b"primary key",
        b"unique (",
        b" and ",
        b" or ",
        b"not null",
        b"references q(x)",
        b"((",
        b"))",
        b"/*",
    )

    def read(data: bytes, scratch: Path) -> object:
        return Constraints.from_ddl(data.decode("utf-8", "replace"))

    return Reader(name="ddl", share=0.02, make=lambda rng: mutated(seeds, words, rng), read=read)


def schemas(folder: Path) -> Reader:
    """Schema files, written and read again."""

    def read(data: bytes, scratch: Path) -> object:
        found = Schema.from_yaml(data.decode("utf-8", "replace"))
        assert Schema.from_yaml(found.to_yaml()) == found, "written and read again it is another"
        return found

    return Reader(name="schemas", share=0.2, make=lambda rng: mutated(SCHEMAS, SCHEMA_WORDS, rng), read=read)


def csv(folder: Path) -> Reader:
    """CSV files, read as a private table is, or with types found."""

    def read(data: bytes, scratch: Path) -> object:
        path = scratch.with_suffix(".csv")
        path.write_bytes(data)
        return read_table(path, private=len(data) % 2 == 0)

    return Reader(name="csv", share=0.2, make=lambda rng: mutated(TABLES, (b'"', b'""', b",", b"\n"), rng), read=read)


def models(folder: Path) -> Reader:
    """Model files: bytes of the archive, or values of its parts."""
    path = folder / "seed.kamino"
    _fitted(folder).save(path)
    bundle = read_bundle(path)
    whole = path.read_bytes()
    parts = {name: json.loads(text) for name, text in bundle.texts.items() if name.endswith(".json")}
    others = {name: text.encode() for name, text in bundle.texts.items() if not name.endswith(".json")}

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.4:
            return mutated([whole], (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"), rng)
        contents = {name: text.encode() for name, text in bundle.texts.items()}
        if rng.random() < 0.7:
            name = rng.choice(list(parts))
            contents[name] = json_bytes(mutated_json([parts[name]], rng))
        else:
            name = rng.choice(list(others))
            contents[name] = mutated([others[name]], (*RULE_WORDS, *SCHEMA_WORDS), rng)
        arrays = dict(bundle.arrays)
        if rng.random() < 0.2:
            _spoil(arrays, rng)
        return _packed(contents, arrays)

    def read(data: bytes, scratch: Path) -> object:
        scratch.write_bytes(data)
        return Fitted.from_bundle(read_bundle(scratch))

    return Reader(name="models", share=0.04, make=make, read=read, one_line=True)


def certificates(folder: Path) -> Reader:
    """Certificates beside a table: read, and derived again if they can be read."""
    table = folder / "seed.csv"
    _fitted(folder).write(table, 12)
    text = certificate_path(table).read_bytes()
    document = json.loads(text)
    sampled = json.loads(text)
    event = {"type": "PoissonGaussianEvent", "count": 40, "noise_multiplier": 2.0, "sampling_rate": 0.01}
    sampled["ledger"]["entries"].append({**sampled["ledger"]["entries"][0], "events": [event]})

    def make(rng: random.Random) -> bytes:
        way = rng.random()
        if way < 0.3:
            return mutated([text], (b'"', b"}", b"{", b'"count": ', b"1e-300"), rng)
        # Sampled events take a good part of a second to price.
        return json_bytes(mutated_json([sampled if way < 0.305 else document], rng))

    def read(data: bytes, scratch: Path) -> object:
        scratch.write_bytes(data)
        return verify(table, scratch)

    return Reader(name="certificates", share=0.04, make=make, read=read, one_line=True)


def ledgers(folder: Path) -> Reader:
    """Durable ledgers: bytes of the file, or values of its lines with all hashes made anew."""
    event = GaussianEvent(noise_multiplier=20.0)
    entry = Entry(kind="counts", what="ages", attributes=("age",), events=((event, 2), (DeltaEvent(delta=1e-9), 1)))
    budget = Budget(epsilon=1.0, delta=1e-6)
    names = dict.fromkeys(("run", "dataset", "command", "plan", "started", "version"), "one")
    planned = PlannedRun(
        **names, budget=budget, unit=None, max_rows=1, gaussian=0.05, finding_delta=1e-8, sampled=False, mark=""
    )
    bodies = [
        header_body("0" * 16, "1"),
        Policy(dataset="one", budget=budget).to_body(),
        planned.to_body(),
        charge_body("one", 1, entry),
        StoredRelease(run="one", number=1, hash="0" * 64, key="1" * 64).to_body(),
        charge_body("one", 2, entry),
        close_body("one", "done"),
    ]

    def chained(found: Sequence[object]) -> bytes:
        head, lines = START, []
        for body in found:
            text = json.dumps(body, sort_keys=True, separators=(",", ":"))
            head = digest(head, text)
            lines.append(f"{head} {text}\n")
        return "".join(lines).encode("ascii")

    whole = chained(bodies)

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.4:
            return mutated([whole], (b'"', b"}", b"{", b"0" * 64, b" "), rng)
        found = mutated_json([bodies], rng)
        return chained(found if isinstance(found, list) else [found])

    def read(data: bytes, scratch: Path) -> object:
        scratch.write_bytes(data)
        with DurableLedger.read(scratch) as found:
            return found.total("one", Neighbours.REPLACE)

    return Reader(name="ledgers", share=0.05, make=make, read=read, one_line=True)


READERS: Sequence[Callable[[Path], Reader]] = (rules, rule_files, ddl, schemas, csv, models, certificates, ledgers)


def _fitted(folder: Path) -> Synthesizer:
    (folder / "zones.csv").write_text("city,zone\nRome,N\nOslo,S\n")
    rules_file = folder / "rules.dc"
    rules_file.write_text("city -> zone using zones.csv\nsoft: not (t1.age > t2.age and t1.pay < t2.pay)\n")
    schema = Schema(
        attributes={
            "id": Key(),
            "city": Categorical(values=["Rome", "Oslo"], nullable=True),
            "zone": Categorical(values=["N", "S"], nullable=True),
            "age": Integer(min=0, max=9, nullable=True),
            "pay": Integer(min=0, max=30),
        }
    )
    rng = np.random.default_rng(1)
    city, age = rng.choice(2, 100), rng.integers(0, 10, 100)
    columns = {
        "id": [str(i) for i in range(100)],
        "city": np.array(["Rome", "Oslo"])[city],
        "zone": np.array(["N", "S"])[city],
        "age": age,
        "pay": age * 3,
    }
    return Synthesizer(schema, rules_file, epsilon=4.0, seed=1).fit(pa.table(columns))


def _spoil(arrays: dict[str, np.ndarray], rng: random.Random) -> None:
    name = rng.choice(list(arrays))
    array = np.array(arrays[name], copy=True)
    way = rng.randrange(4)
    if way == 0:
        del arrays[name]
        return
    if way == 1 and array.size:
        array.reshape(-1)[rng.randrange(array.size)] = rng.choice((-1, 0, 2, 10**9))
    elif way == 2:
        array = array.astype(rng.choice((np.float32, np.int8, np.int64, np.complex128)))
    else:
        array = array.reshape(-1)[: rng.randrange(array.size + 1)]
    arrays[name] = array


def _packed(texts: dict[str, bytes], arrays: dict[str, np.ndarray]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in texts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"arrays/{name}.npy"), buffer.getvalue())
    return packed.getvalue()


__all__ = ["READERS", "KaminoError", "Reader"]
