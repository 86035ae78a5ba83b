"""The views of Spark's own test queries, in a session and as the sources of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from engine.compile.sql.dialect import UNFORESEEN, parse_tokens, tokenize
from tests.analyser.statements import DropView, MakeView, Query, files, statements
from tests.analyser.verdicts import spark_verdict

# Tables that the suite makes before any file (SQLQueryTestSuite.createTestTables).
GIVEN = {
    "testdata": "key int, value string",
    "arraydata": "arraycol array<int>, nestedarraycol array<array<int>>",
    "mapdata": "mapcol map<int, string>",
    "aggtest": "a int, b float",
    "onek": "unique1 int, unique2 int, two int, four int, ten int, twenty int, hundred int, thousand int, "
    "twothousand int, fivethous int, tenthous int, odd int, even int, stringu1 string, stringu2 string, string4 string",
}
GIVEN["tenk1"] = GIVEN["onek"]
_JINJA = re.compile(r"\{[{%#]")
_STARTS_FROM = {TokenType.FROM, TokenType.JOIN}
# Types that a source does not take; CHAR and VARCHAR are STRING to Spark's analyser, and a view has them so.
_NO_SCHEMA = re.compile(r"\b(?:time\(|geometry|geography|interval(?:,|>|$))", re.IGNORECASE)

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query of a file, what Spark says of it, and the tables that were there.

    Attributes:
        file: its path in the folder.
        number: of the statement in the file.
        tables: by name in lower case, the columns.
    """

    file: str
    number: int
    sql: str
    refused: str
    text: str
    columns: Columns | None
    tables: Mapping[str, Columns] = field(default_factory=dict)


def ask(spark: Any, folder: Path) -> Iterator[Asked]:
    """What Spark's analyser says of each query below a folder, in one session."""
    for path in files(folder):
        tables: dict[str, Columns] = {}
        for name, columns in GIVEN.items():
            _make(spark, MakeView(name, columns=columns), tables)
        for number, statement in enumerate(statements(path, folder)):
            if isinstance(statement, MakeView):
                _make(spark, statement, tables)
            elif isinstance(statement, DropView):
                spark.catalog.dropTempView(statement.name)
                tables.pop(statement.name, None)
            else:
                yield _asked(spark, str(path.relative_to(folder)), number, statement, tables)
        for name in tables:
            spark.catalog.dropTempView(name)


def _asked(spark: Any, file: str, number: int, query: Query, tables: Mapping[str, Columns]) -> Asked:
    said = spark_verdict(spark, query.sql)
    columns = None if said.columns is None else tuple((name, str(type_)) for name, type_ in said.columns)
    words = set(re.findall(r"\w+", query.sql.lower()))
    read = {name: columns for name, columns in tables.items() if name in words}
    return Asked(file, number, query.sql, said.refused, said.text, columns, read)


def _make(spark: Any, view: MakeView, tables: dict[str, Columns]) -> None:
    """Make a view, if Spark can; what is no view of this session (generated columns, CHAR) is left out."""
    spark.catalog.dropTempView(view.name)
    tables.pop(view.name, None)
    try:
        if view.columns:
            spark.createDataFrame([], view.columns).createOrReplaceTempView(view.name)
        else:
            spark.sql(view.sql)
        schema = spark.table(view.name).schema
    except Exception:  # noqa: BLE001  whatever Spark says, there is no such view
        return
    tables[view.name] = tuple((f.name, f.dataType.simpleString()) for f in schema.fields)


def declared(columns: Columns) -> str | None:
    """The columns as a source declares them; None if no source can."""
    names = [name.lower() for name, _ in columns]
    if len(set(names)) < len(names) or not names or any(_NO_SCHEMA.search(type_) for _, type_ in columns):
        return None
    return ", ".join(f"`{name.replace('`', '``')}` {type_}" for name, type_ in columns)


def as_model(sql: str, sources: Mapping[str, str]) -> str:
    """The query as the text of a model; `sources`: by the name of a table in lower case, that of its source."""
    text, last = "", 0
    for start, end, name in sorted(_read(sql, set(sources))):
        text += f"{_escaped(sql[last:start])}{{{{ source('{sources[name]}', '{name}') }}}}"
        last = end
    return text + _escaped(sql[last:])


def _escaped(text: str) -> str:
    return _JINJA.sub(lambda match: "{{ '" + match[0] + "' }}", text)


def _read(sql: str, names: set[str]) -> set[tuple[int, int, str]]:
    """Where tables are read: by sqlglot's tree, or else by what is in front of a name."""
    try:
        tokens = tokenize(sql)
    except SqlglotError:
        return set()
    try:
        tree = parse_tokens(tokens, sql)[0]
    except (SqlglotError, RecursionError, *UNFORESEEN):
        return _guessed(tokens, names)
    found = set()
    for table in tree.find_all(exp.Table) if tree is not None else ():
        name = table.this
        if isinstance(name, exp.Identifier) and name.name.lower() in names - _ctes(table) and not table.args.get("db"):
            found.add((name.meta["start"], name.meta["end"] + 1, name.name.lower()))
    return found


def _ctes(table: exp.Expr) -> set[str]:
    """The CTEs that a table's name may mean."""
    found: set[str] = set()
    below, node = table, table.parent
    while node is not None:
        with_ = node.args.get("with_")
        if with_ is not None and below is not with_:
            found.update(cte.alias.lower() for cte in with_.expressions)
        if isinstance(node, exp.With):
            before = node.expressions if node.args.get("recursive") else node.expressions[: _place(node, below)]
            found.update(cte.alias.lower() for cte in before)
        below, node = node, node.parent
    return found


def _place(with_: exp.With, cte: exp.Expr) -> int:
    return next((place for place, one in enumerate(with_.expressions) if one is cte), 0)


def _guessed(tokens: list[Any], names: set[str]) -> set[tuple[int, int, str]]:
    found = set()
    for before, token in pairwise(tokens):
        reads = before.token_type in _STARTS_FROM or before.text.lower() == "table"
        if reads and token.text.lower() in names:
            found.add((token.start, token.end + 1, token.text.lower()))
    return found
