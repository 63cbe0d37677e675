"""Whether a table that was written is what its certificate says: counted again in the bytes of the file, plainly.

Tables are drawn as a whole and in blocks, also by other processes, and their files are read with nothing of Kamino.
Rows, keys, violations, hashes, marks and prices are compared with the certificate; then tables and certificates are
changed, one thing at a time, and `verify` must refuse each.
"""

from __future__ import annotations

import csv
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kamino.audit.probes.prices_again import own_price
from kamino.audit.probes.probe import Probe
from kamino.constraints import Constraints
from kamino.errors import KaminoError
from kamino.pipeline import Synthesizer
from kamino.pipeline.output import in_blocks
from kamino.pipeline.output.release_mark import FOR_RELEASE
from kamino.pipeline.verifying.verification import verify
from kamino.privacy import DeltaEvent, Event, GaussianEvent, Neighbours
from kamino.schema import Categorical, Integer, Key, Schema

Rows: TypeAlias = list[dict[str, str]]
Change: TypeAlias = Callable[[Any, str], "str | None"]

_SCHEMA = Schema(
    attributes={
        "who": Key(pattern="P{:05d}"),
        "city": Categorical(values=[f"c{place}" for place in range(12)]),
        "zone": Categorical(values=["N", "S", "W"]),
        "age": Integer(min=0, max=60),
        "level": Integer(min=0, max=9),
    }
)
_HARD = "city -> zone\nnot (t1.age > t2.age and t1.level < t2.level)\n"
_SOFT = "soft: not (t1.city = t2.city and t1.age > t2.age and t1.level = t2.level)\n"
_EPSILON, _DELTA = 3.0, 1e-6
_ROWS, _BLOCK = 700, 150
_NEAR = 1e-6


def written_problems() -> Iterator[str]:
    """Tell what of written tables, and of their certificates, is not so."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        blocks = _fitted(_HARD, seed=3)
        with _small_blocks():
            yield from _of_a_table(blocks, folder / "blocks.csv", _ROWS, kept=True, seed=5)
            if not (folder / "blocks.csv").exists():
                return
            yield from _of_blocks(folder / "blocks.csv")
            yield from _of_changes(
                folder / "blocks.csv", {"a mark that is too mild": _set("mark", to=lambda _: FOR_RELEASE)}
            )
        whole = _fitted(_HARD + _SOFT, seed=None)
        yield from _of_a_table(whole, folder / "whole.csv", 120, kept=False, seed=None)
        yield from _of_changes(folder / "whole.csv", _CHANGES)
        with _small_blocks():
            blocks.write(folder / "workers.csv", _ROWS, seed=5, workers=2)
        if (folder / "workers.csv").read_bytes() != (folder / "blocks.csv").read_bytes():
            yield "other processes draw another table than one"


def _fitted(rules: str, *, seed: int | None) -> Synthesizer:
    rng = np.random.default_rng(7)
    city, age = rng.integers(0, 12, 400), rng.integers(0, 61, 400)
    table = pa.table(
        {
            "who": np.arange(400),
            "city": [f"c{place}" for place in city],
            "zone": np.array(["N", "S", "W"])[city % 3],
            "age": age,
            "level": age // 7,
        }
    )
    made = Synthesizer(_SCHEMA, Constraints.parse(rules), epsilon=_EPSILON, delta=_DELTA, seed=seed)
    return made.fit(table, progress=False)


@contextmanager
def _small_blocks() -> Iterator[None]:
    """Let blocks have few rows for a while."""
    usual = in_blocks.BLOCK_ROWS, in_blocks.WHOLE_BLOCKS
    in_blocks.BLOCK_ROWS, in_blocks.WHOLE_BLOCKS = _BLOCK, 1
    try:
        yield
    finally:
        in_blocks.BLOCK_ROWS, in_blocks.WHOLE_BLOCKS = usual


def _of_a_table(made: Synthesizer, path: Path, rows: int, *, kept: bool, seed: int | None) -> Iterator[str]:
    """Write a table and compare file and certificate; `kept` says that all constraints are hard."""
    try:
        made.write(path, rows, seed=seed, progress=False)
    except KaminoError as problem:
        yield f"a table could not be written: {problem}"
        return
    document = _document(path)
    written = _read(path)
    if len(written) != rows or document["rows"] != rows:
        yield f"a table of {rows:,} rows has {len(written):,}, and its certificate says {document['rows']:,}"
    if len({row["who"] for row in written}) < len(written):
        yield "a key occurs twice in a written table"
    if document["sha256"] != hashlib.sha256(path.read_bytes()).hexdigest():
        yield "a certificate has another hash than its file"
    for claim in document["constraints"]:
        found = _broken(written, claim["text"])
        if claim["violations"] != found:
            yield f"a certificate says {claim['violations']} violations of {claim['text']}; there are {found}"
        if claim["hard"] and found:
            yield f"a hard constraint is violated {found} times in a written table: {claim['text']}"
    if kept is any(not claim["hard"] for claim in document["constraints"]):
        yield "a certificate tells hard from soft constraints wrongly"
    yield from _of_privacy(document, seeded=seed is not None)


def _of_privacy(document: Any, *, seeded: bool) -> Iterator[str]:
    """Mark, budget and price, derived from the events that the certificate lists."""
    if ("not for release" in document["mark"]) is not seeded:
        yield "a certificate has the wrong mark"
    events = [_event(event) for entry in document["ledger"]["entries"] for event in entry["events"]]
    own = own_price(events, _DELTA, Neighbours.ADD_REMOVE)
    privacy = document["privacy"]
    stated = privacy["spent_epsilon"]["add_remove"]
    if abs(stated - own) > _NEAR * own or own > _EPSILON * (1 + _NEAR):
        yield f"a certificate says that epsilon {stated:.4g} was spent; its events cost {own:.4g}"
    if (privacy["epsilon"], privacy["delta"], privacy["neighbours"]) != (_EPSILON, _DELTA, "add_remove"):
        yield "a certificate has another budget than the run"
    if privacy["releases"] != len(document["ledger"]["entries"]):
        yield "a certificate lists other releases than it counts"


def _event(found: Any) -> tuple[Event, int]:
    if found["type"] == "DeltaEvent":
        return DeltaEvent(delta=found["delta"]), found["count"]
    noise, replaced = found["noise_multiplier"], found["replace_multiplier"]
    return GaussianEvent(noise_multiplier=noise, replace_multiplier=replaced), found["count"]


def _of_blocks(path: Path) -> Iterator[str]:
    """No block is a copy of another."""
    rows = [tuple(row[name] for name in ("city", "zone", "age", "level")) for row in _read(path)]
    blocks = [tuple(rows[start : start + 100]) for start in range(0, _ROWS, _BLOCK)]
    if len(set(blocks)) < len(blocks):
        yield "blocks of a long table are copies of each other"


def _read(path: Path) -> Rows:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _document(path: Path) -> Any:
    return json.loads(_beside(path).read_text(encoding="utf-8"))


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.certificate.json")


def _broken(rows: Rows, text: str) -> int:
    """How many pairs of rows violate a constraint of ours, told by what is in its text."""
    city, zone = (np.array([row[name] for row in rows]) for name in ("city", "zone"))
    age, level = (np.array([int(row[name]) for row in rows]) for name in ("age", "level"))
    if "zone" in text:
        broken = (city[:, None] == city) & (zone[:, None] != zone)
        return int(broken.sum()) // 2
    older = age[:, None] > age
    if "city" in text:
        return int((older & (city[:, None] == city) & (level[:, None] == level)).sum())
    return int((older & (level[:, None] < level)).sum())


def _of_changes(path: Path, changes: Mapping[str, Change]) -> Iterator[str]:
    """Change the table or its certificate in one thing; `verify` must accept what is unchanged, and nothing else."""
    if not verify(path).holds:
        yield "verify refuses a table that was written just now"
        return
    certificate = _beside(path)
    text, document = path.read_text(encoding="utf-8"), certificate.read_text(encoding="utf-8")
    for name, change in changes.items():
        changed = json.loads(document)
        table = change(changed, text) or text
        path.write_text(table, encoding="utf-8")
        certificate.write_text(json.dumps(changed), encoding="utf-8")
        try:
            holds = verify(path).holds
        except KaminoError:
            holds = False
        if holds:
            yield f"verify accepts {name}"
    path.write_text(text, encoding="utf-8")
    certificate.write_text(document, encoding="utf-8")


def _with_table(edit: Callable[[str], str]) -> Change:
    """Another table, to which the certificate's hash is made to fit."""

    def change(document: Any, text: str) -> str:
        edited = edit(text)
        document["sha256"] = hashlib.sha256(edited.encode()).hexdigest()
        return edited

    return change


def _set(*path: str | int, to: Callable[[Any], Any]) -> Change:
    """Another value at one place of the certificate; the hash of a changed ledger is made to fit."""

    def change(document: Any, text: str) -> None:
        del text
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to(place[path[-1]])
        if path[0] == "ledger":
            ledger = json.dumps(document["ledger"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            document["hashes"]["ledger"] = hashlib.sha256(ledger.encode()).hexdigest()

    return change


_CHANGES: dict[str, Change] = {
    "rows of a table in another order": lambda document, text: "\n".join(
        [text.split("\n")[place] for place in (0, 2, 1)] + text.split("\n")[3:]
    ),
    "a row less": _with_table(lambda text: text[: text[:-1].rindex("\n") + 1]),
    "a table that breaks a hard constraint": _with_table(
        lambda text: text.replace(",N,", ",S,", 1) if ",N," in text else text.replace(",S,", ",N,", 1)
    ),
    "other violations of a soft constraint": _set("constraints", 2, "violations", to=lambda count: count + 1),
    "another rate of a soft constraint": _set("constraints", 2, "rate", to=lambda rate: rate / 2),
    "a constraint less": _set("constraints", to=lambda listed: listed[1:]),
    "a soft constraint called hard": _set("constraints", 2, "hard", to=lambda hard: not hard),
    "a smaller epsilon spent": _set("privacy", "spent_epsilon", "add_remove", to=lambda spent: spent / 2),
    "a smaller epsilon promised": _set("privacy", "epsilon", to=lambda epsilon: epsilon / 2),
    "a smaller delta": _set("privacy", "delta", to=lambda delta: delta / 10),
    "another relation": _set("privacy", "neighbours", to=lambda _: "replace"),
    "another privacy unit": _set("privacy", "unit", to=lambda _: "all rows of a person"),
    "fewer releases": _set("privacy", "releases", to=lambda number: number - 1),
    "a better meaning": _set("privacy", "meaning", "add_remove", "guess_right_at_most", to=lambda guess: guess - 0.05),
    "a release that is not listed": _set("ledger", "entries", to=lambda entries: entries[1:]),
    "less noise than was charged": _set("ledger", "entries", 0, "sigma", to=lambda sigma: sigma / 2),
    "another number of rows": _set("rows", to=lambda rows: rows + 1),
    "another hash of the rules": _set("hashes", "rules", to=lambda found: found[::-1]),
    "another schema": _set("schema", to=lambda text: text.replace("max: 60", "max: 61")),
    "another way of sampling": _set("method", "sampling", to=lambda _: "row-by-row"),
}
WRITTEN = Probe(
    name="written tables",
    does="Tables are written whole and in blocks, counted again without Kamino, and changed: verify must refuse it.",
    cannot="Databases and clusters, and kills while a table is written; tests have these.",
    search=written_problems,
)
