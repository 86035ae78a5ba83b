"""The tables that random queries read."""

from __future__ import annotations

TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "orders": (
        ("id", "bigint"), ("customer", "int"), ("amount", "double"), ("price", "decimal(10,2)"), ("status", "string"),
        ("paid", "boolean"), ("day", "date"), ("ts", "timestamp"), ("tags", "array<string>"),
        ("item", "struct<name:string,price:double>"),
    ),
    "customers": (
        ("id", "int"), ("name", "string"), ("since", "date"), ("seen", "timestamp"), ("local", "timestamp_ntz"),
        ("score", "float"), ("props", "map<string,int>"), ("active", "boolean"),
    ),
    "events": (
        ("id", "bigint"), ("kind", "string"), ("at", "timestamp"), ("body", "binary"), ("nums", "array<int>"),
        ("rate", "decimal(20,4)"), ("n", "smallint"), ("customer", "int"), ("day", "date"),
        ("parts", "array<struct<a:int,b:string>>"),
    ),
}  # fmt: skip
# Types that columns of tables cannot have, and expressions can.
INTERVALS = ("interval day to second", "interval year to month")
TYPES = tuple(dict.fromkeys([*(type_ for columns in TABLES.values() for _, type_ in columns), *INTERVALS]))


def schema(name: str) -> str:
    """The columns of a table, as a source declares them."""
    return ", ".join(f"{column} {type_}" for column, type_ in TABLES[name])
