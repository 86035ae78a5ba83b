"""Data tests as nodes: a test kind is a macro `test_<kind>(model, column_name, ...)` that returns failing rows."""

from __future__ import annotations

import jinja2

from engine.compile.config import TestConfig
from engine.compile.context import ref
from engine.compile.inputs import Known
from engine.compile.lower import splice
from engine.compile.manifest import DataTest
from engine.compile.sql import parse
from engine.compile.windows import Edit
from engine.errors import Diagnostic, EngineError, near
from engine.jinja import Rendered, Sandbox


def compile_tests(
    model: str,
    file: str,
    tests: tuple[TestConfig, ...],
    sandbox: Sandbox,
    known: Known,
    found: list[Diagnostic],
) -> list[DataTest]:
    """The tests of one model as nodes."""
    nodes: list[DataTest] = []
    names: set[str] = set()
    for test in tests:
        node = _compile(model, file, test, sandbox, known, found)
        if node is None:
            continue
        name, number = node.name, 2
        while name in names:
            name, number = f"{node.name}_{number}", number + 1
        names.add(name)
        nodes.append(_renamed(node, name))
    return nodes


def _renamed(node: DataTest, name: str) -> DataTest:
    return DataTest(
        f"test.{name}", name, node.kind, node.model, node.sql, node.column, node.severity, node.depends_on,
        node.tags, node.file, node.location,
    )  # fmt: skip


def _compile(
    model: str, file: str, test: TestConfig, sandbox: Sandbox, known: Known, found: list[Diagnostic]
) -> DataTest | None:
    macro = sandbox.macros.get(f"test_{test.kind}")
    if macro is None:
        kinds = [name.removeprefix("test_") for name in sandbox.macros if name.startswith("test_")]
        hint = near(test.kind, kinds) + " A test kind is a macro test_<name> in macros/."
        message = f"there is no test '{test.kind}'"
        found.append(Diagnostic("unknown-macro", message, hint.strip(), node=model, location=test.location))
        return None
    arguments = {str(k): v for k, v in test.arguments.items()}
    if test.column is not None:
        arguments["column_name"] = test.column
    try:
        text = str(macro(ref(model), **arguments)).strip()
    except (jinja2.TemplateError, TypeError, EngineError) as error:
        message = f"the test '{test.kind}' cannot be made: {error}"
        hint = "Check the arguments of the test."
        found.append(Diagnostic("jinja-error", message, hint, node=model, location=test.location))
        return None
    return _node(model, file, test, text, known, found)


def _node(
    model: str, file: str, test: TestConfig, text: str, known: Known, found: list[Diagnostic]
) -> DataTest | None:
    rendered = Rendered(text, text, file)
    problems: list[Diagnostic] = []
    query = parse(rendered, model, problems)
    if query is None or problems:
        for problem in problems:
            message = f"the SQL of the test '{test.kind}': {problem.message}"
            found.append(Diagnostic(problem.code, message, problem.hint, node=model, location=test.location))
        return None
    parents: dict[str, None] = {}
    edits = []
    for reference in query.references:
        relation = known.relations.get(reference.name)
        if reference.kind != "ref" or relation is None:
            message = f"the test '{test.kind}' reads '{reference.name}', which is no model"
            hint = near(reference.name, known.relations)
            found.append(Diagnostic("unknown-ref", message, hint, node=model, location=test.location))
            return None
        parents[f"model.{reference.name}"] = None
        edits.append(Edit(reference.start, reference.end, relation.sql))
    sql, _ = splice(rendered, edits, query.end)
    name = "_".join(part for part in (test.kind, model, test.column) if part)
    return DataTest(
        id=f"test.{name}",
        name=name,
        kind=test.kind,
        model=f"model.{model}",
        sql=sql,
        column=test.column,
        severity=test.severity,
        depends_on=tuple(parents),
        file=file,
        location=test.location,
    )
