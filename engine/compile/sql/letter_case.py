"""What of a query Spark reads in any letter case: a list. What is not on it is kept as it is written.

* Names that refer to a column, a table, a CTE or the alias of one, where they are alone or first. They resolve in any
  letter case, as `spark.sql.caseSensitive` is pinned to false.
* Keywords and names of functions, which the tree does not have as identifiers (`normalize`).

Not on it, as it can reach a value or the name of an output: what is behind a dot (a field of a struct has no letter
case, the key of a map has), an alias, a column that is selected without one or that names a field (`struct(Price)`),
lists of names, the fields of a type, all of PIVOT and UNPIVOT, the arguments of a lambda.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sqlglot import exp

# What names fields after columns that are its direct arguments.
_NAMING = (exp.Struct, exp.PropertyEQ, exp.Tuple, exp.Select, exp.Star)
_NAMING_CALLS = {"arrays_zip", "struct", "named_struct", "stack", "inline"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that mean something else to Spark without backticks, in one place or another: those that its `sql_keywords()`
# calls reserved, and what its parser and `LiteralFunctionResolution` read as a constant.
_SPECIAL = {
    "all", "and", "anti", "any", "array", "as", "authorization", "between", "both", "by", "case", "cast", "check",
    "collate", "column", "constraint", "create", "cross", "cube", "current_catalog", "current_database",
    "current_date", "current_schema", "current_time", "current_timestamp", "current_user", "distinct", "else", "end",
    "escape", "except", "execute", "exists", "false", "fetch", "filter", "for", "foreign", "from", "full", "grant",
    "group", "grouping", "grouping__id", "having", "in", "inner", "intersect", "interval", "into", "is", "join",
    "lateral", "leading", "left", "like", "limit", "localtimestamp", "map", "minus", "natural", "not", "null",
    "offset", "on", "only", "or", "order", "outer", "overlaps", "pivot", "primary", "recursive", "references",
    "rollup", "right", "select", "semi", "session_user", "set", "setminus", "some", "sql", "struct", "table",
    "tablesample", "then", "to", "trailing", "true", "union", "unique", "unknown", "unpivot", "user", "using",
    "values", "when", "where", "window", "with", "within",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamePlaces:
    """Where names are in a text: whether their letter case means nothing, by place; the places of aliases."""

    folds: Mapping[int, bool]
    aliases: AbstractSet[int]


def name_places(identifiers: Iterable[exp.Identifier]) -> NamePlaces:
    """What the identifiers of a tree say of the names in its text. One place can have several nodes."""
    folds: dict[int, bool] = {}
    aliases: set[int] = set()
    for identifier in identifiers:
        start = identifier.meta.get("start")
        if start is None:
            continue
        if folds.get(start, True):
            folds[start] = _refers(identifier)
        if _is_alias(identifier):
            aliases.add(start)
    return NamePlaces(folds, aliases)


def name_text(name: str, *, folds: bool, quoted: bool) -> str:
    """Return a name in normal form; `folds`: its letter case means nothing, `quoted`: it was in backticks."""
    if folds and name.isascii():
        name = name.lower()
    if not quoted or (_PLAIN.fullmatch(name) and name.lower() not in _SPECIAL):
        return name
    return f"`{name.replace('`', '``')}`"


def _is_alias(identifier: exp.Identifier) -> bool:
    """Whether AS may be in front of it and need not."""
    parent = identifier.parent
    if isinstance(parent, exp.TableAlias):
        return identifier.arg_key == "this" and isinstance(parent.parent, (exp.Table, exp.Subquery, exp.Values))
    return isinstance(parent, exp.Alias) and identifier.arg_key == "alias" and isinstance(parent.parent, exp.Select)


def _refers(identifier: exp.Identifier) -> bool:
    parent = identifier.parent
    if isinstance(parent, exp.Column):
        return identifier is parent.parts[0] and not _names(parent, alone=len(parent.parts) == 1)
    if isinstance(parent, exp.TableAlias):
        return identifier.arg_key == "this"
    if isinstance(parent, exp.Table):
        # A placeholder names a model or source, `@ref Orders`.
        return not identifier.name.startswith("@")
    return isinstance(parent, exp.Join)


def _names(column: exp.Expr, *, alone: bool) -> bool:
    """Return whether a name becomes part of an output: selected without an alias, a column is called by its text."""
    node, parent = column, column.parent
    while isinstance(parent, exp.Paren):
        node, parent = parent, parent.parent
    if isinstance(parent, (exp.Select, *_NAMING)) and alone and node.arg_key in {"expressions", "this"}:
        return True
    if alone and isinstance(parent, exp.Func) and _function_name(parent) in _NAMING_CALLS:
        return True
    direct = True
    while parent is not None:
        if isinstance(parent, exp.Pivot):
            return True
        if isinstance(parent, exp.Select):
            return node.arg_key == "expressions" and not direct
        if isinstance(parent, (exp.Alias, exp.Query)):
            # An alias names it.
            return _in_pivot(parent)
        node, parent, direct = parent, parent.parent, False
    return False


def _in_pivot(node: exp.Expr) -> bool:
    return node.find_ancestor(exp.Pivot) is not None


def _function_name(node: exp.Func) -> str:
    return (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
