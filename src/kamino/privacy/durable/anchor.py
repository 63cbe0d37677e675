"""The heads of a ledger, kept in another place, so that a ledger that is set back as a whole is found.

An older copy of a ledger, with the stored releases of its time, is whole: no file can prove that it was longer. An
anchor is a file of hashed lines as well, on another disk or another machine, with the head after each change of the
ledger. The last one must be in the chain. It is written after the ledger, so that a process that ends in between leaves
it one line behind.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from kamino.errors import LedgerError
from kamino.limits import MAX_LEDGER_BYTES, MAX_LEDGER_LINES
from kamino.privacy.durable.hash_chain import Chain, Limits

_LIMITS = Limits(what="a file of heads", file_bytes=MAX_LEDGER_BYTES, lines=MAX_LEDGER_LINES, line_bytes=1_000)


class Anchor:
    """An open file of heads.

    Guarantees:
        A ledger that was set back behind the last head is refused.  [test_a_ledger_that_is_set_back_is_found]
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._ledger: str | None = None
        self._last: tuple[str, int] | None = None

    @classmethod
    def open(cls, path: Path, ledger: str, *, create: bool = False) -> Anchor:
        """Open the file of a ledger of this id; with `create`, one that is not there is begun.

        Raises:
            LedgerError: it cannot be used, or is of another ledger.
        """
        if create and not path.exists():
            with suppress(FileExistsError):
                Chain.create(path, _LIMITS, {"kind": "heads", "ledger": ledger}).close()
        anchor = cls(Chain.open(path, _LIMITS, read_only=not create))
        try:
            with anchor._chain.locked(shared=True):
                anchor._read_on()
            if anchor._ledger != ledger:
                raise LedgerError(
                    f"{path}: found the heads of another ledger; expected those of this one. Either file was replaced: "
                    "put the right one back"
                )
        except BaseException:
            anchor.close_file()
            raise
        return anchor

    def close_file(self) -> None:
        """Close the file."""
        self._chain.close()

    def confirm(self, ledger: Path, heads: Container[str]) -> None:
        """Raise a `LedgerError` unless the last head is one of these."""
        with self._chain.locked(shared=True):
            self._read_on()
        if self._last is not None and self._last[0] not in heads:
            raise LedgerError(
                f"{ledger}: found no line with the head that {self._chain.path} keeps, of line {self._last[1]:,}: the "
                "ledger was set back to an older copy, or changed. Put the latest one back. Nothing was released"
            )

    def keep(self, head: str, line: int) -> None:
        """Keep the head of a line; on the disk when this returns."""
        with self._chain.locked():
            self._read_on()
            self._chain.append({"kind": "head", "head": head, "line": line})
            self._last = head, line

    def _read_on(self) -> None:
        for line in self._chain.read_on():
            match line.body:
                case {"kind": "heads", "ledger": str(ledger)} if line.number == 1:
                    self._ledger = ledger
                case {"kind": "head", "head": str(head), "line": int(number)} if line.number > 1:
                    self._last = head, number
                case _:
                    raise LedgerError(f"{self._chain.path}: found something else, expected {_LIMITS.what}")
