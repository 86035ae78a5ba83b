"""JSON that somebody else wrote: bounded in size, in values and in depth before Python builds it.

A text of a few bytes may become hundreds of times as large: `[],[],..` makes a list of each three bytes. Commas and
opening brackets are counted first, those in texts too, which is quick and never too few.
"""

from __future__ import annotations

import codecs
from typing import Any, Final

import msgspec

# A table with ten thousand snapshots has a tenth of these bytes and values.
MOST_BYTES: Final = 1 << 26
MOST_VALUES: Final = 2_000_000


def parse_json(content: bytes, most_values: int = MOST_VALUES, most_bytes: int = MOST_BYTES) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises:
        ValueError: it is not JSON, too deep or too large, or has half of a surrogate pair, which no text can hold.
    """
    if len(content) > most_bytes or sum(content.count(sign) for sign in (b",", b"[", b"{")) > most_values:
        raise ValueError("it is too large")
    try:
        return msgspec.json.decode(content.removeprefix(codecs.BOM_UTF8))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
