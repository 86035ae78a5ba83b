"""Tests of relationships: the column in the other model is looked for once all models are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.compile.nodes.manifest import DataTest, Model, Node
from engine.compile.sql.dialect import parse_text
from engine.errors import Diagnostic, near

KIND = "relationships"


def related_faults(tests: Iterable[Node], nodes: Mapping[str, Node]) -> Iterator[Diagnostic]:
    """Findings about fields that the other model does not have; a model whose columns are not known has any."""
    for test in tests:
        if not isinstance(test, DataTest) or test.kind != KIND:
            continue
        others = [node for node in test.depends_on if node != test.model] or [test.model]
        other = nodes.get(others[0])
        names = [column.name for column in other.columns] if isinstance(other, Model) else []
        if not isinstance(other, Model) or not any(column.sql or column.origins for column in other.columns):
            continue
        for name in _fields(test.sql):
            if name.lower() not in {column.lower() for column in names}:
                message = f"the test '{KIND}' names the column '{name}', which '{other.name}' does not have"
                node = test.model.removeprefix("model.")
                yield Diagnostic("unknown-column", message, near(name, names), node=node, location=test.location)


def _fields(sql: str) -> list[str]:
    """The columns of the other model in the SQL of the built-in test, which calls it `parent`."""
    try:
        tree = parse_text(sql)
    except (SqlglotError, RecursionError):
        return []
    return list(dict.fromkeys(c.parts[1].name for c in tree.find_all(exp.Column) if c.parts[0].name == "parent"))
