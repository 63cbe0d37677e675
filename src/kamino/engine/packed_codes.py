"""Codes of one column in little memory: byte by byte, compressed.

The first bytes of all codes come first, then all second bytes: those of a wide domain are nearly all the same, and
those of a narrow one take no more bits than they need. What is packed is kept apart from memory that comes and goes, so
that it leaves no gaps there.

    >>> packed = PackedCodes.of(np.array([300, 301, 300], dtype=np.uint16))
    >>> packed.unpack().tolist()
    [300, 301, 300]
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# The level at which compressing costs about as much as counting once.
_CODEC = pa.Codec("zstd", compression_level=1)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PackedCodes:
    """The codes of one column of a part, compressed. Private.

    Guarantees:
        What is unpacked is what was packed.  [test_packed_codes_come_back]
    """

    packed: mmap.mmap
    ends: tuple[int, ...]
    num_rows: int
    kind: np.dtype[Any]

    @staticmethod
    def of(codes: NDArray[Any]) -> PackedCodes:
        """Pack codes of any unsigned type."""
        split = np.ascontiguousarray(codes).view(np.uint8).reshape(len(codes), codes.itemsize)
        planes = [_CODEC.compress(split[:, place].tobytes(), asbytes=True) for place in range(codes.itemsize)]
        ends = tuple(accumulate(map(len, planes)))
        packed = mmap.mmap(-1, max(1, ends[-1]))  # memory of its own, in no file
        packed.write(b"".join(planes))
        return PackedCodes(packed=packed, ends=ends, num_rows=len(codes), kind=codes.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes that they take."""
        return self.ends[-1]

    def unpack(self) -> NDArray[Any]:
        """The codes, which may not be written to."""
        packed = [self.packed[low:high] for low, high in zip((0, *self.ends), self.ends, strict=False)]
        planes = [np.frombuffer(_CODEC.decompress(each, self.num_rows), dtype=np.uint8) for each in packed]
        return planes[0].view(self.kind) if len(planes) == 1 else np.stack(planes, axis=1).ravel().view(self.kind)
