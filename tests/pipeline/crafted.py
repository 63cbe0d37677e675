"""Model files that nobody should accept: a generator. Each case is a valid file with one thing changed."""

from __future__ import annotations

import copy
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kamino.io.bundle import Bundle

Change = Callable[["Parts"], None]
BAD_NUMBERS: dict[str, Any] = {
    "null": None,
    "text": "7",
    "true": True,
    "list": [],
    "object": {},
    "negative": -3,
    "huge": 10**40,
    "fraction": 2.5,
}


@dataclass
class Parts:
    """A model file as it is before it is packed: texts, JSON, arrays, and bytes that take the place of all."""

    texts: dict[str, str]
    arrays: dict[str, Any]
    raw: dict[str, bytes] = field(default_factory=dict)
    whole: Callable[[bytes], bytes] = lambda packed: packed
    packing: int = zipfile.ZIP_DEFLATED

    @staticmethod
    def of(bundle: Bundle) -> Parts:
        return Parts(texts=dict(bundle.texts), arrays={name: array.copy() for name, array in bundle.arrays.items()})

    def json(self, part: str, change: Callable[[Any], Any]) -> None:
        """Change a JSON part in place, or put what `change` returns in its place."""
        document = json.loads(self.texts[part])
        changed = change(document)
        self.texts[part] = json.dumps(document if changed is None else changed)

    def pack(self) -> bytes:
        """The bytes of the file."""
        contents = {name: text.encode("utf-8", "surrogatepass") for name, text in self.texts.items()}
        for name, array in self.arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=True)
            contents[f"arrays/{name}.npy"] = buffer.getvalue()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", self.packing) as archive:
            for name, content in {**contents, **self.raw}.items():
                archive.writestr(name, content)
        return self.whole(packed.getvalue())


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def put(part: str, *path: Any, value: Any) -> Change:
    """A case with another value at a place of a JSON part."""

    def change(parts: Parts) -> None:
        def edit(document: Any) -> None:
            _at(document, path[:-1])[path[-1]] = copy.deepcopy(value)

        parts.json(part, edit)

    return change


def drop(part: str, *path: Any) -> Change:
    """A case without a value of a JSON part."""

    def change(parts: Parts) -> None:
        def edit(document: Any) -> None:
            del _at(document, path[:-1])[path[-1]]

        parts.json(part, edit)

    return change


def text(part: str, value: str) -> Change:
    """A case with another text in the place of a part."""
    return lambda parts: parts.texts.__setitem__(part, value)


def array(name: str, change: Callable[[Any], Any]) -> Change:
    """A case with another array."""
    return lambda parts: parts.arrays.__setitem__(name, change(parts.arrays[name]))


def raw(name: str, content: bytes) -> Change:
    """A case with other bytes in the place of an entry, or one entry more."""

    def change(parts: Parts) -> None:
        parts.texts.pop(name, None)
        parts.arrays.pop(name.removeprefix("arrays/").removesuffix(".npy"), None)
        parts.raw[name] = content

    return change


def whole(change: Callable[[bytes], bytes]) -> Change:
    """A case with the bytes of the file changed."""
    return lambda parts: setattr(parts, "whole", change)


def npy(shape: str, *, kind: str = "<f8", content: bytes = b"\0" * 16) -> bytes:
    """An `.npy` file whose header says what it is told to."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def _with(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array.flat[0] = value
        return array

    return change


def array_cases(name: str, *, probabilities: bool) -> Iterator[tuple[str, Change]]:
    """What can be wrong with any array."""
    changes: dict[str, Callable[[Any], Any]] = {
        "too short": lambda a: a[:-1],
        "too long": lambda a: np.concatenate([a, a[:1]]),
        "one axis more": lambda a: a[..., None],
        "flat": lambda a: np.float64(1.0),
        "empty": lambda a: a[:0],
        "of texts": lambda a: a.astype("U8"),
        "of objects": lambda a: a.astype(object),
        "of complex numbers": lambda a: a.astype(np.complex128),
        "of half numbers": lambda a: a.astype(np.float16),
        "of the other order": lambda a: a.astype(a.dtype.newbyteorder(">")),
    }
    if probabilities:
        changes |= {f"with {value}": _with(value) for value in (float("nan"), float("inf"), -0.25, 0.75, 1e308)}
        changes["of zeros"] = np.zeros_like
    for what, change in changes.items():
        yield f"array {name} {what}", array(name, change)
    yield f"array {name} missing", lambda parts: parts.arrays.pop(name)


def file_cases() -> Iterator[tuple[str, Change]]:
    """What can be wrong with the archive and its parts, whatever the model."""
    yield "cut short", whole(lambda packed: packed[: len(packed) // 2])
    yield "without its end", whole(lambda packed: packed[:-10])
    yield "without its beginning", whole(lambda packed: packed[100:])
    yield "empty", whole(lambda packed: b"")
    yield "an empty archive", whole(lambda packed: b"PK\x05\x06" + bytes(18))
    yield "with a byte flipped", whole(lambda packed: packed[:100] + bytes([packed[100] ^ 255]) + packed[101:])
    yield "with a long directory", whole(lambda packed: packed[:-12] + b"\xff\xff\xff\x7f" + packed[-8:])
    yield "with many entries", whole(lambda packed: packed[:-14] + b"\xff\xff\xff\xff" + packed[-10:])
    yield "packed by lzma", lambda parts: setattr(parts, "packing", zipfile.ZIP_LZMA)
    yield "packed by bzip2", lambda parts: setattr(parts, "packing", zipfile.ZIP_BZIP2)
    yield "encrypted", whole(_encrypted)
    for part in ("manifest.json", "schema.yaml", "constraints.dc", "soft.json", "ledger.json", "model.json"):
        yield f"{part} missing", lambda parts, part=part: parts.texts.pop(part)
        yield f"{part} not UTF-8", raw(part, b"\xff\xfe\xff")
        if part.endswith(".json"):
            yield f"{part} empty", text(part, "")
            yield f"{part} cut short", lambda parts, p=part: parts.texts.__setitem__(p, parts.texts[p][:-5])
            yield f"{part} deep", text(part, "[" * 100_000 + "]" * 100_000)
            yield f"{part} a number", text(part, "1")
            yield f"{part} of many lists", text(part, "[" + "[]," * 1_100_000 + "[]]")
            yield f"{part} with a long number", text(part, "[" + "9" * 100_000 + "]")
    yield "one part more", text("extra.json", "{}")
    yield "one array more", lambda parts: parts.arrays.__setitem__("extra", np.zeros(2))
    yield "a path out of the archive", text("../../out.csv", "a")
    yield "another format", put("manifest.json", "format", value="kamino-model-9")
    yield "a format that is a list", put("manifest.json", "format", value=[])
    yield "an unknown setting", put("manifest.json", "settings", "colour", value="red")
    for name in ("epsilon", "delta", "sweeps", "candidates", "trust_domain", "sampling", "neighbours", "seed"):
        for what, value in (("text", "x"), ("list", []), ("negative", -1)):
            yield f"setting {name} {what}", put("manifest.json", "settings", name, value=value)
    yield "a schema that is no YAML", text("schema.yaml", "attributes: [}")
    yield "a schema of another table", text("schema.yaml", "attributes:\n  zz: {type: integer, min: 0, max: 9}\n")
    yield "a schema without domains", text("schema.yaml", "attributes:\n  age: {type: integer}\n")
    yield "a schema that refers to itself", text("schema.yaml", "attributes: &a\n  age: *a\n")
    yield "a schema of many values", text("schema.yaml", "attributes: [" + "0," * 600_000 + "0]")
    yield "constraints without end", text("constraints.dc", "check (age > 5)\n" * 80_000)
    yield "a deep schema", text("schema.yaml", "attributes: " + "[" * 1_000 + "]" * 1_000)
    yield (
        "a larger domain",
        lambda parts: parts.texts.__setitem__("schema.yaml", parts.texts["schema.yaml"].replace("max: 9", "max: 8")),
    )
    yield "constraints that are none", text("constraints.dc", "not (((")
    yield "constraints on others", text("constraints.dc", "zzz -> yyy")
    yield "constraints of another type", text("constraints.dc", "check (age = 'x')")
    yield "held constraints that are not", text("held_by_keys.dc", "check (age > 5)")
    for name in ("epsilon", "delta", "neighbours", "mark", "spent_epsilon", "entries", "unit"):
        yield f"ledger without {name}", drop("ledger.json", name)
        yield f"ledger with a wrong {name}", put("ledger.json", name, value=17)
    yield "ledger without a price", put("ledger.json", "spent_epsilon", value={"add_remove": 1.0})
    yield "ledger with a text for a price", put("ledger.json", "spent_epsilon", "replace", value="1")
    yield "ledger with a negative price", put("ledger.json", "spent_epsilon", "replace", value=-1)
    yield "ledger of an entry of nothing", put("ledger.json", "entries", 0, value={})
    yield "ledger of an entry that is a list", put("ledger.json", "entries", 0, value=[])
    yield "ledger with an unknown event", put("ledger.json", "entries", 0, "events", 0, "type", value="Free")
    yield (
        "ledger with next to no noise",
        put("ledger.json", "entries", 0, "events", 0, "noise_multiplier", value=1e-200),
    )
    yield "ledger with a text for noise", put("ledger.json", "entries", 0, "noise_multiplier", value="1")
    yield "ledger with a wrong count", put("ledger.json", "entries", 0, "events", 0, "count", value="1")
    yield (
        "ledger with NaN",
        lambda parts: parts.texts.__setitem__(
            "ledger.json", parts.texts["ledger.json"].replace('"delta": 1e-06', '"delta": NaN', 1)
        ),
    )
    yield "model of another format", put("model.json", "format", value="kamino-magic-1")
    yield "model whose format is a list", put("model.json", "format", value=["kamino-marginal-1"])
    yield "model with one field more", put("model.json", "extra", value=1)
    for what, value in BAD_NUMBERS.items():
        if what != "fraction":
            yield f"rows {what}", put("model.json", "num_rows", value=value)
    yield (
        "rows beyond all numbers",
        lambda parts: parts.texts.__setitem__(
            "model.json", re.sub(r'"num_rows": [^,]+', '"num_rows": 1e999', parts.texts["model.json"], count=1)
        ),
    )


def _encrypted(packed: bytes) -> bytes:
    """The archive with the mark of encryption on each entry."""
    marked = bytearray(packed)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = marked.find(signature)
        while place >= 0:
            marked[place + offset] |= 1
            place = marked.find(signature, place + 1)
    return bytes(marked)


def header_cases(name: str) -> Iterator[tuple[str, Change]]:
    """Headers of arrays that lie, or that are none."""
    entry = f"arrays/{name}.npy"
    for what, content in {
        "of a huge shape": npy("(1000000000000,)"),
        "of a shape beyond 64 bits": npy("(4611686018427387904, 4611686018427387904)"),
        "of a negative shape": npy("(-2, -1)"),
        "of a wrong shape": npy("(3,)"),
        "of a shape that is a text": npy("'abc'"),
        "that needs pickle": npy("(1,)", kind="|O", content=b"\x80\x04N."),
        "of a wrong type": npy("(2,)", kind="<q9"),
        "that is no literal": npy("(__import__('os'),)"),
        "of a deep literal": npy("(" * 40 + ")" * 40),
        "of a future version": b"\x93NUMPY\x09\x00" + bytes(64),
        "that is no array": b"hello",
        "that is empty": b"",
        "of times": npy("(2,)", kind="<M8[s]"),
        "of structures": npy("(2,)", kind="<f8,<f8"),
    }.items():
        yield f"header of {name} {what}", raw(entry, content)


def marginal_cases() -> Iterator[tuple[str, Change]]:
    """What can be wrong with a marginal model: node 0 has no parents, node 1 has."""
    for name, probabilities in (("1.table", True), ("0.share", True), ("0.starts", False), ("0.labels", False)):
        yield from array_cases(name, probabilities=probabilities)
    yield from header_cases("1.table")
    yield "labels outside", array("0.labels", lambda a: a + 1000)
    yield "labels below", array("0.labels", lambda a: a - 5)
    yield "starts that fall", array("0.starts", lambda a: a[::-1].copy())
    yield "starts outside", array("0.starts", lambda a: a * 10**9)
    for key in ("size", "bins", "null_code"):
        for what, value in BAD_NUMBERS.items():
            if (key, what) != ("null_code", "null"):
                yield f"{key} {what}", put("model.json", "nodes", 0, key, value=value)
        yield f"{key} missing", drop("model.json", "nodes", 0, key)
    yield (
        "name twice",
        lambda parts: parts.json("model.json", lambda d: d["nodes"][1].__setitem__("name", d["nodes"][0]["name"])),
    )
    yield "nodes in another order", lambda parts: parts.json("model.json", lambda d: d["nodes"].reverse())
    yield "no nodes", put("model.json", "nodes", value=[])
    yield "nodes that are numbers", put("model.json", "nodes", value=[1, 2])
    yield "a node less", lambda parts: parts.json("model.json", lambda d: d["nodes"].pop() and None)
    yield (
        "a parent that is itself",
        lambda parts: parts.json("model.json", lambda d: d["nodes"][0].__setitem__("parents", [d["nodes"][0]["name"]])),
    )
    yield (
        "a parent that comes later",
        lambda parts: parts.json("model.json", lambda d: d["nodes"][0].__setitem__("parents", [d["nodes"][1]["name"]])),
    )
    yield "an unknown parent", put("model.json", "nodes", 1, "parents", value=["zzz"])
    yield "parents that are a text", put("model.json", "nodes", 1, "parents", value="age")
    yield "parents that are numbers", put("model.json", "nodes", 1, "parents", value=[0])
    yield "one parent less", lambda parts: parts.json("model.json", lambda d: d["nodes"][1]["parents"].pop() and None)
    yield "ordered that is a text", put("model.json", "nodes", 0, "ordered", value="yes")
    yield "a name that is a number", put("model.json", "nodes", 0, "name", value=5)
    yield "a name with breaks", put("model.json", "nodes", 0, "name", value="a\nb\x1b[31m" + "x" * 5_000)
    yield "releases that are numbers", put("model.json", "releases", value=[1])
    yield "releases of three", put("model.json", "releases", value=[["a", 1.0, 2]])
    yield "soft of nobody", put("soft.json", 0, "constraint", value="soft: zzz -> yyy")
    yield "soft twice", lambda parts: parts.json("soft.json", lambda d: d.append(d[0]))
    yield "soft that is an object", text("soft.json", "{}")
    for what, value in (("text", "1"), ("negative", -1), ("null", None), ("huge", 1e301)):
        yield f"soft weight {what}", put("soft.json", 0, "weight", value=value)
    yield "soft rate that is a text", put("soft.json", 0, "measured", value="0.1")
    yield "soft with one field more", put("soft.json", 0, "colour", value="red")
    yield "references missing", text("references.json", "[]")
    yield "references that are an object", text("references.json", "{}")
    yield "a reference twice", lambda parts: parts.json("references.json", lambda d: d.append(d[0]))
    yield "a reference of others", put("references.json", 0, "right", value="age")
    yield "a reference of unequal columns", put("references.json", 0, "columns", "zone", value=["N"])
    yield "a reference of numbers", put("references.json", 0, "columns", "zone", value=[1, 2, 3])
    yield "a reference without a column", drop("references.json", 0, "columns", "zone")
    yield "a reference with one column more", put("references.json", 0, "columns", "age", value=["1", "2", "3"])


def neural_cases() -> Iterator[tuple[str, Change]]:
    """What can be wrong with a neural model: sub-model 0 is a histogram; 3 has a number in its context."""
    yield from array_cases("0.probability", probabilities=True)
    for name in ("1.table", "1.query", "1.out", "1.bias", "3.lower", "3.lift", "3.prior_values", "3.shift"):
        cases = dict(array_cases(name, probabilities=False))
        for what in ("too short", "one axis more", "empty", "of half numbers", "missing"):
            yield f"array {name} {what}", cases[f"array {name} {what}"]
        for value in (float("nan"), float("inf")):
            yield f"array {name} with {value}", array(name, _with(value))
    yield from header_cases("1.out")
    where = ("model.json", "sub_models")
    for what, value in {
        "itself": [1],
        "a later one": [2],
        "one below": [-1],
        "twice": [0, 0],
        "a text": "0",
        "texts": ["0"],
        "none": [],
        "huge": [10**30],
    }.items():
        yield f"context {what}", put(*where, 1, "context", value=value)
    for kind in ("numeric", "wide", "magic", 3, None):
        yield f"kind {kind}", put(*where, 1, "kind", value=kind)
    for key in ("size", "null_code"):
        for what, value in BAD_NUMBERS.items():
            if (key, what) != ("null_code", "null"):
                yield f"{key} {what}", put(*where, 0, "attributes", 0, key, value=value)
    for what, value in BAD_NUMBERS.items():
        yield f"num_cells {what}", put("model.json", "num_cells", value=value)
    yield "other cells", put("model.json", "num_cells", value=9)
    yield "no attributes", put(*where, 0, "attributes", value=[])
    yield "no sub-models", put(*where, value=[])
    yield "a sub-model less", lambda parts: parts.json("model.json", lambda d: d["sub_models"].pop() and None)
    yield "sub-models in another order", lambda parts: parts.json("model.json", lambda d: d["sub_models"].reverse())
    yield "arrays of another kind", put(*where, 1, "arrays", value=["probability"])
    yield "arrays of nothing", put(*where, 1, "arrays", value=[])
    yield (
        "arrays one twice",
        lambda parts: parts.json("model.json", lambda d: d["sub_models"][1]["arrays"].append("table")),
    )
    yield "a name twice", put(*where, 1, "attributes", 0, "name", value="city")
    yield "parameters that are a list", put("model.json", "parameters", value=[])
    yield "parameters of text", put("model.json", "parameters", value={"num_rows": "5"})


def cases(*kinds: Callable[[], Iterator[tuple[str, Change]]]) -> dict[str, Change]:
    """All cases of these kinds, by name."""
    found: dict[str, Change] = {}
    for name, change in (case for kind in kinds for case in kind()):
        assert name not in found, name
        found[name] = change
    return found


def crafted(bundle: Bundle, change: Change) -> bytes:
    """The bytes of a model file with one thing changed."""
    parts = Parts.of(bundle)
    change(parts)
    return parts.pack()


MARGINAL = partial(cases, file_cases, marginal_cases)
NEURAL = partial(cases, neural_cases)
