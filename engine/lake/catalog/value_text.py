"""Values of rows as text, as SQL writes them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any


def value_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, datetime):
        fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
        return f"{value.year:04}-{value:%m-%d %H:%M:%S}{fraction}"
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(_with_text_dates(value))


def _with_text_dates(value: Any) -> Any:
    match value:
        case dict():
            return {_with_text_dates(key): _with_text_dates(part) for key, part in value.items()}
        case list():
            return [_with_text_dates(part) for part in value]
        case tuple() if type(value) is tuple:
            return tuple(_with_text_dates(part) for part in value)
        case date():
            return value_text(value)
    return value
