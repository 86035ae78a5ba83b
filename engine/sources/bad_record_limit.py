"""How many bad records of a source a build may take out before it is an error: `max_bad_records`."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A share of fewer records than this says nothing.
FEWEST = 20
_ALL = 100.0
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True, slots=True)
class BadRecordLimit:
    """Without both limits not all records may be bad; `percent` counts from 20 records on."""

    count: int | None = None
    percent: float | None = None

    def exceeded(self, bad: int, records: int) -> bool:
        if self.count is not None:
            return bad > self.count
        if records < FEWEST:
            return False
        return bad * _ALL > self.percent * records if self.percent is not None else bad == records

    def __str__(self) -> str:
        return str(self.count) if self.count is not None else f"{self.percent:g}%" if self.percent is not None else ""


def read_limit(value: object) -> BadRecordLimit | None:
    """The limit that a declaration writes, `100` or `1%`; None: it is neither."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return BadRecordLimit(count=value)
    share = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    percent = float(share.group(1)) if share else _ALL + 1
    return BadRecordLimit(percent=percent) if percent <= _ALL else None
