"""The tables that random pairs read, with rows in which differences show: NULLs, ties, keys in two letter cases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

STRUCT = "struct<name:string,price:double>"
COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "t": (
        ("id", "bigint"), ("n", "int"), ("amount", "double"), ("price", "decimal(10,2)"), ("status", "string"),
        ("paid", "boolean"), ("day", "date"), ("ts", "timestamp"), ("local", "timestamp_ntz"), ("tags", "array<string>"),
        ("nums", "array<int>"), ("props", "map<string,int>"), ("item", STRUCT), ("parts", "array<struct<a:int,b:string>>"),
        ("js", "string"), ("body", "binary"), ("score", "float"), ("2024", "int"), ("null", "int"), ("date", "date"),
        ("left", "int"),
    ),
    "u": (
        ("id", "bigint"), ("name", "string"), ("n", "int"), ("score", "float"), ("props", "map<string,int>"),
        ("ts", "timestamp"), ("day", "date"),
    ),
}  # fmt: skip
_WORDS = ("a", "A", "b", "a\\d", "10", "2024-01-02", "x'y", "", None, "%a_", "Ab")


def schema(name: str) -> str:
    """The columns of a table, as a source declares them."""
    return ", ".join(f"`{column}` {type_}" for column, type_ in COLUMNS[name])


def rows(name: str) -> list[str]:
    """The rows of a table as JSON."""
    return [json.dumps(_row(name, number)) for number in range(14 if name == "t" else 9)]


def _row(name: str, number: int) -> dict[str, Any]:
    made = {column: _value(type_, column, number) for column, type_ in COLUMNS[name]}
    # One key of both tables several times, one in each alone, and NULL.
    made["id"] = None if number == 7 else number % 6 + (4 if name == "u" else 0)
    return made


def _value(type_: str, column: str, number: int) -> Any:  # noqa: PLR0911 - one a type
    some = number * 7 % 11 + len(column)
    if some % 9 == 0:
        return None
    match type_:
        case "string":
            text = _WORDS[some % len(_WORDS)]
            return json.dumps({"A": number, "a": -number, "name": text}) if column == "js" else text
        case "boolean":
            return some % 2 == 0
        case "date":
            return f"2024-0{some % 3 + 1}-0{some % 9 + 1}"
        case "timestamp" | "timestamp_ntz":
            return f"2024-01-0{some % 3 + 1}T{some % 24:02}:{some * 13 % 60:02}:07.123"
        case "array<string>":
            return [_WORDS[some % 3], _WORDS[number % 4], None][: some % 4]
        case "array<int>":
            return [some, -number, None, some][: some % 5]
        case "map<string,int>":
            return {"A": number, "a": -number, "b": some}
        case "array<struct<a:int,b:string>>":
            return [{"a": some, "b": _WORDS[number % 4]}, {"a": number, "b": "z"}][: some % 3]
        case "binary":
            return "QWE="
        case _ if type_ == STRUCT:
            return {"name": _WORDS[number % 5], "price": some / 4}
    return (some - 5) / (4 if type_ in {"double", "float", "decimal(10,2)"} else 1)
