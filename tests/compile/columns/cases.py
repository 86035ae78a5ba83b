"""The fixture pairs of columns: a query, and the columns it must have.

`tables.txt` declares what the queries read: the id of a node and its columns; a query calls it by the last part
of the id. `-- window: name kind time` declares a window. Expected is one line a column (`name: type <- origins`, `?`
for an unknown type), one line a kind of influence (`by filter: origins`), `unknown columns` if a star cannot be
expanded.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp

from engine.compile.columns import InputColumns, QueryColumns
from engine.compile.columns.find_columns import bind
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.sql.dialect import parse_tokens, tokenize
from engine.compile.sql.select_items import item_places
from tests.fixtures import read_pairs

FOLDER = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    expected: str
    windows: dict[str, TimeWindow]


def read_cases() -> list[Case]:
    return [
        Case(pair.name, pair.given, pair.expected, dict(map(_window, pair.parts.get("window", "").splitlines())))
        for pair in read_pairs(FOLDER)
    ]


def _window(text: str) -> tuple[str, TimeWindow]:
    name, kind, time = text.split(" ", 2)
    return name, TimeWindow(kind, time, "1 hours")


def split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def tables() -> dict[str, InputColumns]:
    known = {}
    for line in (FOLDER / "tables.txt").read_text(encoding="utf-8").splitlines():
        node, _, schema = line.partition(": ")
        columns = (tuple(column.split(" ", 1)) for column in split(schema))
        name = node.rsplit(".", 1)[-1]
        known[name] = InputColumns(node, None if schema == "unknown" else tuple(columns))
    return known


def parsed(sql: str) -> exp.Expr:
    """The tree as the compiler makes it."""
    tokens = tokenize(sql)
    tree = parse_tokens(tokens, sql)[0]
    assert tree is not None
    return tree


def found_in(sql: str, inputs: dict[str, InputColumns] | None = None, **windows: TimeWindow) -> QueryColumns:
    places = item_places(tokenize(sql))
    return bind(parsed(sql), tables() if inputs is None else inputs, windows, sql, places).columns


def described(found: QueryColumns) -> str:
    lines = ["unknown columns"] if found.columns is None else []
    for column in found.columns or ():
        origins = ", ".join(f"{o.node}.{o.column}" for o in column.origins)
        lines.append(f"{column.name}: {column.type or '?'}{f' <- {origins}' if origins else ''}")
    kinds = dict.fromkeys(origin.kind for origin in found.indirect)
    for kind in kinds:
        origins = ", ".join(f"{o.node}.{o.column}" for o in found.indirect if o.kind == kind)
        lines.append(f"by {kind}: {origins}")
    return "\n".join(lines)
