"""The tables of a schema by name, and which of them a build makes beside another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_MADE = re.compile(r"g\d+|seed\d+_\w+")
_BETWEEN = "__"


@dataclass(frozen=True, slots=True)
class SchemaNames:
    """The tables of a schema.

    Attributes:
        tables: their names.
        made: what follows a name and `__` in the names of staging tables and initial snapshots, by that name.
    """

    tables: frozenset[str]
    made: Mapping[str, tuple[str, ...]]

    def beside(self, name: str) -> tuple[str, ...]:
        """`g2`, `seed1_orders`, ..: the tables that builds of a table have made beside it."""
        return self.made.get(name, ())


def schema_names(names: Iterable[str]) -> SchemaNames:
    """Look at each name once: thousands of models would each look at all of them."""
    tables = frozenset(names)
    made: dict[str, tuple[str, ...]] = {}
    for name in sorted(tables):
        for found in re.finditer(f"(?={_BETWEEN})", name):
            end = name[found.start() + len(_BETWEEN) :]
            if _MADE.fullmatch(end):
                owner = name[: found.start()]
                made[owner] = (*made.get(owner, ()), end)
    return SchemaNames(tables, made)
