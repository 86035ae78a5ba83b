"""Edits of a column to a type that its table cannot hold, which the plan and the write refuse alike."""

from __future__ import annotations

# By model: settings, the column before and after the edit, its path and both types.
CHANGED = {
    "rounded": ("", "cast(amount as int) as v", "amount as v", "v", "int", "double"),
    "merged": ("unique_key: id", "to_date(at) as v", "at as v", "v", "date", "timestamp"),
    "a_string": ("on_schema_change: append_columns", "kind as v", "id + 4 as v", "v", "string", "int"),
    "decimals": (
        "on_schema_change: ignore", "cast(amount as decimal(10,1)) as v", "cast(amount as decimal(12,2)) as v",
        "v", "decimal(10,1)", "decimal(12,2)",
    ),
    "nested": ("", "struct(id as n) as v", "struct(amount as n) as v", "v.n", "int", "double"),
    "listed": ("", "array(id) as v", "array(amount) as v", "v.element", "int", "double"),
    "mapped": ("", "map('k', id) as v", "map('k', kind) as v", "v.value", "int", "string"),
    "keyed": ("", "map(id, 1) as v", "map(cast(id as bigint), 1) as v", "v.key", "int", "bigint"),
}  # fmt: skip
