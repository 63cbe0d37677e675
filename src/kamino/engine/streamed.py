"""Counts of a table that is read part by part, as often as it takes: memory does not grow with the rows.

A pass reads only the columns that it needs, encodes them from the public schema and adds up all counts that were asked
for together. Codes that were made are kept, compressed, as long as they fit; columns that do not fit are read again in
the next pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.engine.block_counts import add_up, count_candidates, smallest
from kamino.engine.memory import MemoryMeasurer
from kamino.engine.packed_codes import PackedCodes
from kamino.model.protocol import Candidate, CodeMap, ConditionalMap, View
from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, RemoteParts, open_code_parts, open_code_source
from kamino.schema import Codec, CodedTable
from kamino.schema.table_parts import TableParts

#: Bytes of codes that are kept between passes.
KEPT_BYTES = 1 << 30
#: Cells that are counted before they are asked for, at most: 8 bytes each.
EXPECTED_CELLS = 1 << 24


class EncodedParts:
    """The codes of a table in parts: made in each pass, or kept where they fit. Private.

    Guarantees:
        They are the codes of the table in memory.  [test_parts_have_the_codes_of_the_table]
        No more than `kept_bytes` are kept.  [test_codes_are_kept_within_bounds]
    """

    def __init__(self, table: TableParts, codec: Codec, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._table = table
        self._codec = codec
        self._kept_bytes = kept_bytes
        self._kept: dict[str, list[PackedCodes]] = {}
        self._too_large: set[str] = set() if table.is_ordered else set(codec.plain)

    def __repr__(self) -> str:
        return f"EncodedParts({', '.join(self._codec.plain)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._codec.plain)

    def parts(self, names: Sequence[str] | None = None) -> Iterator[CodedTable]:
        """Give the codes of the named columns part by part; a pass that is broken off keeps nothing."""
        wanted = self.names if names is None else tuple(names)
        kept = {name: self._kept[name] for name in wanted if name in self._kept}
        missing = tuple(name for name in wanted if name not in kept)
        if not missing:
            for held in zip(*kept.values(), strict=True):
                columns = {name: packed.unpack() for name, packed in zip(kept, held, strict=True)}
                yield CodedTable(columns=columns, num_rows=held[0].num_rows)
            return
        new: dict[str, list[PackedCodes]] = {name: [] for name in missing if name not in self._too_large}
        for number, part in enumerate(self._table.parts(self._codec.columns_for(missing))):
            made = self._codec.encode_some(part, missing)
            self._hold(new, made)
            old = {name: held[number].unpack() for name, held in kept.items()}
            yield CodedTable(
                columns={name: old[name] if name in old else made[name] for name in wanted}, num_rows=made.num_rows
            )
        self._kept.update(new)

    def count(self, candidates: Sequence[Candidate]) -> list[NDArray[np.int64]] | None:
        """Count marginals where the table is, in one pass over it; None where it has to be read here."""
        if not isinstance(self._table, RemoteParts):
            return None
        names = tuple(dict.fromkeys(name for each in candidates for name in _columns_of(each)))
        work = CountPart(codec=self._codec, names=names, candidates=tuple(candidates))
        return self._table.count(work, self._codec.columns_for(names))

    def _hold(self, new: dict[str, list[PackedCodes]], made: CodedTable) -> None:
        """Hold the codes of a part; let go of the widest column where they do not fit any more."""
        for name, held in new.items():
            held.append(PackedCodes.of(made[name].astype(smallest(self._codec[name].size))))
        while _num_bytes(self._kept) + _num_bytes(new) > self._kept_bytes and new:
            widest = max(reversed(new), key=lambda name: _num_bytes({name: new[name]}))
            del new[widest]
            self._too_large.add(widest)


@dataclass(frozen=True, kw_only=True, eq=False)
class CountPart:
    """Encodes a part of a table and counts marginals in it, wherever it is called. What it holds is public."""

    codec: Codec
    names: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    def __call__(self, part: pa.Table) -> list[NDArray[np.int64]]:
        """Count one part."""
        coded = self.codec.encode_some(part, self.names)
        return count_candidates(self.candidates, coded.columns, coded.num_rows)


def _num_bytes(columns: Mapping[str, Sequence[PackedCodes]]) -> int:
    return sum(codes.nbytes for held in columns.values() for codes in held)


class StreamedMeasurer(MemoryMeasurer):
    """The private side of fitting a model to a table in parts: many counts in each pass.

    Guarantees:
        It releases what the engine in memory would, to the last bit, also where counts are made elsewhere.
        [test_engines_fit_the_same_model]
        What was expected is counted in one pass.  [test_what_is_expected_is_counted_in_one_pass]
    """

    def __init__(self, codes: PrivateCodes, sizes: Mapping[str, int], gate: Gate) -> None:
        super().__init__(codes, sizes, gate)
        self._counted: dict[Hashable, NDArray[np.int64]] = {}

    def __repr__(self) -> str:
        return f"StreamedMeasurer({', '.join(self._sizes)})"

    def expect(self, candidates: Sequence[Candidate]) -> None:
        """Count what will be asked for next, all in one pass; what is not asked for is forgotten."""
        whole = [self._whole(each) for each in candidates]
        room, taken = EXPECTED_CELLS, []
        for each in whole:
            room -= _num_cells(each)
            if room >= 0:
                taken.append(each)
        counts = self._count_parts(taken) if len(taken) > 1 else []
        self._counted = {_key(each): count for each, count in zip(taken, counts, strict=False)}

    def _count_all(self, candidates: Sequence[Candidate]) -> list[NDArray[np.int64]]:
        whole = [self._whole(each) for each in candidates]
        if len(whole) == 1 and (found := self._counted.pop(_key(whole[0]), None)) is not None:
            return [found]
        return self._count_parts(whole)

    def _whole(self, candidate: Candidate) -> Candidate:
        """The candidate with a view of each of its attributes."""
        plain = {n: CodeMap.identity(self._sizes[n]) for n in candidate.attributes if n not in candidate.binning}
        return Candidate(attributes=candidate.attributes, binning={**plain, **candidate.binning})

    def _count_parts(self, candidates: Sequence[Candidate]) -> list[NDArray[np.int64]]:
        shared = _shared_views(candidates)
        source = open_code_source(self._codes)
        if isinstance(source, EncodedParts) and (counted := source.count(shared)) is not None:
            return counted
        names = dict.fromkeys(name for each in shared for name in _columns_of(each))
        total: list[NDArray[np.int64]] = []
        for coded in open_code_parts(self._codes, tuple(names)):
            add_up(total, count_candidates(shared, coded.columns, coded.num_rows))
        return total


def _shared_views(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates, with one and the same object for equal views, so that each is read once."""
    seen: dict[Hashable, View] = {}
    found = []
    for each in candidates:
        views = {n: seen.setdefault((n, _view_key(each.binning[n])), each.binning[n]) for n in each.attributes}
        found.append(Candidate(attributes=each.attributes, binning=views))
    return found


def _columns_of(candidate: Candidate) -> tuple[str, ...]:
    views = [candidate.binning[name] for name in candidate.attributes]
    return (*candidate.attributes, *(view.base for view in views if isinstance(view, ConditionalMap)))


def _num_cells(candidate: Candidate) -> int:
    cells = 1
    for name in candidate.attributes:
        cells *= candidate.binning[name].bins
    return cells


def _key(candidate: Candidate) -> Hashable:
    """What tells marginals apart, by content."""
    return candidate.attributes, tuple(_view_key(candidate.binning[name]) for name in candidate.attributes)


def _view_key(view: View) -> Hashable:
    if isinstance(view, ConditionalMap):
        return view.base, _view_key(view.over), _view_key(view.own), view.labels.tobytes(), view.bins
    return view.key
