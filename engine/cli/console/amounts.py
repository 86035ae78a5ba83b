"""Numbers with their noun."""

from __future__ import annotations

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def amount(number: int, one: str, several: str = "") -> str:
    """Return `1 row` or `1,200 rows`; `several` where the plural is not the noun with an s."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def bytes_text(size: float) -> str:
    """Return `12 bytes` or `3.4 MB`."""
    unit = 0
    while size >= 1000 and unit + 1 < len(_UNITS):  # noqa: PLR2004 - of the next unit
        size, unit = size / 1000, unit + 1
    return f"{size:,.0f} {_UNITS[unit]}" if not unit else f"{size:,.1f} {_UNITS[unit]}"
