"""How values of each type are spelled in text: one pattern a type, each for a whole cell.

A spelling that a number would lose, such as the leading zeros of a postal code or a plus sign, is text.
"""

from __future__ import annotations

_TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"

BOOLEAN = r"^(?:true|false|True|False|TRUE|FALSE)$"
INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
NO_NUMBER = r"^(?i:nan|-?inf|-?infinity)$"
NUMBER_OR_NOT = f"{NUMBER}|{NO_NUMBER}"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
LOCAL_TIME = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T ]{_TIME})?$"
ZONED_TIME = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_TIME}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})$"
NANOSECONDS = r"\.[0-9]{7}"
