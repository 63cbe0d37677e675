"""Files of SQL as single statements with their lines, so that one that cannot be read spoils no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PIECE = re.compile(
    r"""
    (?P<line_comment>--[^\n]*|\#[^\n]*(?=\n|$))
  | (?P<block_comment>/\*.*?\*/)
  | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
  | (?P<string>[eE]?'(?:[^'\\]|''|\\.)*')
  | (?P<quoted>"(?:[^"]|"")*"|`[^`]*`|\[[^\]\n]*\])
  | (?P<end>;)
  | (?P<other>[^;'"`$/\-\#\[]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COPY = re.compile(r"^\s*COPY\s.*FROM\s+stdin", re.IGNORECASE | re.DOTALL)
_DATA_END = re.compile(r"^\\\.\s*$", re.MULTILINE)
_META = re.compile(r"^\s*\\[^\n]*$", re.MULTILINE)
_BATCH_END = re.compile(r"^\s*GO\s*$", re.MULTILINE | re.IGNORECASE)
_VARIABLE = re.compile(r"@\w+\.")


@dataclass(frozen=True)
class SqlStatement:
    """The text of one statement without comments, and the line it starts on."""

    text: str
    line: int


def split_statements(sql: str) -> Iterator[SqlStatement]:
    """The statements of a file: rows that follow a COPY, commands of psql and comments are passed over."""
    sql = _BATCH_END.sub(";", _META.sub(lambda found: "" if found.group().strip() != "\\." else "\\.", sql))
    position, line, begin = 0, 1, 1
    parts: list[str] = []
    while position < len(sql):
        match = _PIECE.match(sql, position)
        assert match is not None, "the last alternative matches any character"
        piece = match.group()
        if not "".join(parts).strip():
            begin = line + (len(piece) - len(piece.lstrip()) and piece[: len(piece) - len(piece.lstrip())].count("\n"))
        line += piece.count("\n")
        position = match.end()
        if match.lastgroup in ("line_comment", "block_comment"):
            parts.append(" ")
        elif match.lastgroup == "end":
            text = "".join(parts).strip()
            parts = []
            if _COPY.match(text):
                found = _DATA_END.search(sql, position)
                end = len(sql) if found is None else found.end()
                line += sql.count("\n", position, end)
                position = end
            elif text:
                yield SqlStatement(_VARIABLE.sub("", text), begin)
        else:
            parts.append(piece)
    text = "".join(parts).strip()
    if text:
        yield SqlStatement(_VARIABLE.sub("", text), begin)
