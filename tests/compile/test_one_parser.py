"""Every text of SQL is read by one tokenizer and one parser: those of `engine.compile.sql`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from sqlglot.errors import ParseError

from engine.compile.sql.dialect import parse_text
from engine.compile.sql.read_names import read_names
from tests.test_layers import ROOT, modules_with

READER = ROOT / "compile" / "sql" / "dialect.py"
# Of other warehouses' SQL, before it is translated.
OF_OTHERS = ROOT.parent / "engine_import" / "dialects" / "syntax" / "sql_tree.py"
# Functions of sqlglot, and methods of its dialects, that read text.
_READING = {
    "parse", "parse_into", "parse_one", "maybe_parse", "tokenize", "tokenizer", "parser", "transpile", "condition", "to_table",
    "to_column", "from_str", "build", "sql_to_tokens", "Parser", "Tokenizer",
}  # fmt: skip
_MODULES = {"sqlglot", "Dialect", "Spark", "DataType", "exp"}


def readings(source: str) -> Iterator[str]:
    """The calls in a source that let sqlglot read a text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlglot"):
            yield from (f"import {alias.name}" for alias in node.names if alias.name in _READING)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in _READING and _of_sqlglot(node.func.value):
            yield ast.unparse(node.func)


def _of_sqlglot(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return _of_sqlglot(value.func)
    if isinstance(value, ast.Attribute):
        return _of_sqlglot(value.value)
    return isinstance(value, ast.Name) and value.id in {*_MODULES, "spark", "_parser"}


@pytest.mark.parametrize(
    "source",
    [
        "sqlglot.parse_one(sql)", "sqlglot.tokenize(sql, dialect='spark')", "Dialect.get_or_raise('spark').tokenize(sql)",
        "spark().parser().parse(tokens)", "exp.maybe_parse(sql)", "exp.DataType.build('int')",
        "from sqlglot import parse_one", "sqlglot.Dialect.get_or_raise('spark').parser()",
    ],
)  # fmt: skip
def test_a_reading_is_found(source: str) -> None:
    assert list(readings(source))


def test_no_other_module_lets_sqlglot_read_a_text() -> None:
    found = {
        str(path.relative_to(ROOT.parent)): calls
        for path, text in modules_with("sqlglot|parse|tokenize")
        if path not in {READER, OF_OTHERS} and (calls := list(readings(text)))
    }
    assert found == {}
    assert list(readings(READER.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "sql",
    [
        "select window.start, count(*) as n from `@ref a` group by window(ts, '30 minutes')",
        "select first_value(x, false) as x from `@ref a` group by k",
        "select any_value(x, false) as x, last(y, false) as y from `@ref a` group by k",
        "select all from `@ref a` group by all, k",
        "with recursive r max recursion level 100 as (select 1 as n) select n from r",
        "select a !> b as c, a >>> 2 as d from `@ref a`",
        "from `@ref a` |> where x > 1 |> select x",
        "select v:a.b from `@ref a`",
    ],
)
def test_what_compile_reads_is_read_everywhere(sql: str) -> None:
    parse_text(sql)
    read_names(sql)


def test_what_no_lexer_knows_is_not_parsed() -> None:
    with pytest.raises(ParseError):
        parse_text("select @x")
