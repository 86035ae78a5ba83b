"""Numbers with their noun."""

from __future__ import annotations


def amount(number: int, one: str, several: str = "") -> str:
    """Return `1 row` or `1,200 rows`; `several` where the plural is not the noun with an s."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
