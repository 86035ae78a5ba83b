"""Data tests as nodes: a test kind is a macro test_<kind>(model, ...) that returns the failing rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.compile.columns.find_columns import columns_of
from engine.compile.config.column_config import TestConfig
from engine.compile.config.stream_config import node_name
from engine.compile.config.window_config import Edit
from engine.compile.declarations.compile_context import CompileContext
from engine.compile.nodes.column_facts import InputColumns, Unresolved
from engine.compile.nodes.manifest import DataTest, DataTestAggregate, Model, Node, Source, SourceMap
from engine.compile.output.infer_columns import source_columns
from engine.compile.references.ephemeral import splice
from engine.compile.references.resolve_references import KnownNodes
from engine.compile.sql.dialect import UNFORESEEN, parse_text
from engine.compile.sql.parse import ParsedQuery, parse
from engine.compile.templates.template_names import REF, SOURCE, ref, source
from engine.errors import Diagnostic, Location, ProjectError, near
from engine.jinja import CRASH, Rendered
from engine.node_ids import data_test_id, data_test_name

_WORD = re.compile(r"[A-Za-z_]\w*")


def column_in_sql(column: str, columns: Iterable[str]) -> str:
    """Return a name as SQL reads it (backquoted: as it is); with a dot it is a column, else a field of a struct."""
    if "`" in column:
        return column
    if column.lower() in {name.lower() for name in columns}:
        return _quote_name(column)
    parts = column.split(".")
    return ".".join(map(_quote_name, parts)) if all(map(_WORD.fullmatch, parts)) else f"`{column}`"


@lru_cache(maxsize=1024)
def _quote_name(name: str) -> str:
    if _WORD.fullmatch(name):
        try:
            tree = parse_text(f"select {name} from t where {name} = {name} group by {name}")  # noqa: S608
            item = tree.expressions[0]
        except (SqlglotError, *UNFORESEEN):
            item = None
        if isinstance(item, exp.Column) and item.name == name:
            return name
    return f"`{name}`"


def missing_columns(test: DataTest, tree: exp.Expr, text: str, tables: Mapping[str, InputColumns]) -> list[Diagnostic]:
    aliases = {
        table.alias: tables[name]
        for table in tree.find_all(exp.Table)
        if table.alias and (name := ".".join(part.name for part in table.parts)) in tables
    }
    unresolved = columns_of(tree, tables, {}, text).unresolved
    return [_missing(test, name, aliases, list(tables.values())) for name in unresolved]


def _missing(
    test: DataTest, unresolved: Unresolved, aliases: Mapping[str, InputColumns], tables: list[InputColumns]
) -> Diagnostic:
    qualifier, _, column = unresolved.name.rpartition(".")
    if qualifier in aliases:
        tables = [aliases[qualifier]]
    nodes = list(dict.fromkeys(table.node.partition(".")[2] for table in tables))
    reason = f"which '{nodes[0]}' does not have" if len(nodes) == 1 else "which none of its tables has"
    # A test that is a file of SQL.
    own_file = bool(test.positions.runs)
    message = f"the test '{test.name if own_file else test.kind}' names the column '{column}', {reason}"
    hint = near(column, [name for table in tables for name, _ in table.columns or ()])
    place = test.positions.locate(test.file, unresolved.offset) if own_file else test.location
    return Diagnostic("unknown-column", message, hint, node=test.model.partition(".")[2], location=place)


def missing_in_tests(tests: Iterable[Node], nodes: Mapping[str, Node]) -> Iterator[Diagnostic]:
    """Check tests that read several nodes, or are files of SQL, once all nodes are known."""
    for test in tests:
        if isinstance(test, DataTest):
            yield from _missing_in(test, nodes)


def _missing_in(test: DataTest, nodes: Mapping[str, Node]) -> list[Diagnostic]:
    tables: dict[str, InputColumns] = {}
    for parent in test.depends_on:
        node = nodes.get(parent)
        if isinstance(node, Source):
            tables[node.name] = source_columns(node)
        elif isinstance(node, Model):
            tables[str(node.relation)] = _model_columns(node)
    try:
        return missing_columns(test, parse_text(test.sql), test.sql, tables)
    except (SqlglotError, RecursionError):
        # The query was parsed when the test was made: a fault of it was reported there.
        return []


def _model_columns(model: Model) -> InputColumns:
    certain = not model.broken and any(column.sql or column.origins for column in model.columns)
    columns = tuple((column.name, column.type) for column in model.columns)
    return InputColumns(model.id, columns if certain else None, complete=certain)


_COLUMN = "column_name"
# Stands for what is tested, so that tests of one kind on columns of one name are parsed once; no node has such a name.
_TESTED_NAME = "tested table"
_TESTED = f"`{REF}{_TESTED_NAME}`"
_LACKS = re.compile(r"parameter '(\w+)' was not provided")
_FORMS = {
    "accepted_values": "accepted_values: {values: [a, b]}",
    "relationships": "relationships: {to: airports, field: code}",
    "expression": "expression: {expression: '> 0'}",
    "recency": "recency: {within: 1 day}",
    "no_gaps": "no_gaps: {every: 1 hour}",
    "monotone": "monotone: {order_by: at}",
}
_IS_TEST = re.compile(r"(?:^|(?<!^engine)\.)test_\w+$")


def compile_tests(
    tested: str,
    file: str,
    tests: tuple[TestConfig, ...],
    shared: CompileContext,
    known_nodes: KnownNodes,
    diagnostics: list[Diagnostic],
    columns: InputColumns,
) -> list[DataTest]:
    """The tests of a model or source (by id) with these columns as nodes."""
    nodes: dict[str, DataTest] = {}
    for test in tests:
        node = _compile(tested, file, test, shared, known_nodes, diagnostics, columns) if test.options.enabled else None
        if node is None:
            continue
        name, number = node.name, 2
        # Tables of failing rows have these names, and catalogs need not distinguish letter case.
        while name.lower() in nodes:
            name, number = f"{node.name}_{number}", number + 1
        failures_table = shared.failures(name) if test.options.store_failures else None
        # A test that is alone shares nothing; rows that are kept are written by the query, also if there are none.
        aggregate = (
            _failing_aggregate(tested, test, shared, known_nodes, columns)
            if len(tests) > 1 and failures_table is None
            else None
        )
        nodes[name.lower()] = replace(
            node, id=data_test_id(name, tested), name=name, stored=failures_table, look=aggregate
        )
    return list(nodes.values())


def source_tests(shared: CompileContext, known_nodes: KnownNodes, diagnostics: list[Diagnostic]) -> list[DataTest]:
    """The tests of all sources as nodes; those of a source that is broken wait until it is mended."""
    whole = (source for source in shared.sources.values() if not source.broken)
    return [
        replace(test, tags=tuple(dict.fromkeys((*source.tags, *test.tags))))
        for source in whole
        for test in compile_tests(
            source.id,
            source.file,
            shared.source_tests[source.id],
            shared,
            known_nodes,
            diagnostics,
            source_columns(source),
        )
    ]


def _name(tested: str) -> str:
    return tested.partition(".")[2]


def _is_source(tested: str) -> bool:
    return tested.startswith("source.")


def _compile(
    tested: str,
    file: str,
    test: TestConfig,
    shared: CompileContext,
    known_nodes: KnownNodes,
    diagnostics: list[Diagnostic],
    columns: InputColumns,
) -> DataTest | None:
    sandbox = shared.sandbox
    name = re.sub(r"\b(\w++)$", r"test_\1", test.kind)
    if name not in sandbox.macros:
        if name not in sandbox.macro_files:
            kinds = [re.sub(r"\btest_(\w+)$", r"\1", name) for name in sandbox.macros if _IS_TEST.search(name)]
            hint = f"{near(test.kind, kinds)} A test kind is a macro test_<name> in macros/.".strip()
            message = f"test '{test.kind}' not found"
            diagnostics.append(Diagnostic("unknown-macro", message, hint, node=_name(tested), location=test.location))
        return None
    arguments = _arguments(test, columns)
    try:
        text = str(sandbox.call(name, _rows(_reference(tested), test.options.where), **arguments)).strip()
    except ProjectError as error:
        for reason in error.diagnostics:
            if (lacks := _LACKS.search(reason.message)) is not None:
                form = _FORMS.get(test.kind, f"{test.kind}: {{{lacks[1]}: ..}}")
                message = f"the test '{test.kind}' needs '{lacks[1]}'"
                if lacks[1] == _COLUMN:
                    form = f"it under a column: columns: {{id: {{tests: [{test.kind}]}}}}"
                    message = f"the test '{test.kind}' applies to a column"
                place = test.location
                diagnostics.append(
                    Diagnostic("missing-key", message, f"Write {form}.", node=_name(tested), location=place)
                )
                continue
            message = f"the test '{test.kind}' cannot be rendered: {reason.message.removeprefix(CRASH)}"
            hint = reason.hint or "Check the arguments of the test."
            hint = f"{hint} In {reason.location}." if reason.location else hint
            diagnostics.append(Diagnostic(reason.code, message, hint, node=_name(tested), location=test.location))
        return None
    return _node(tested, file, test, text, known_nodes, diagnostics, columns)


def _arguments(test: TestConfig, columns: InputColumns) -> dict[str, Any]:
    arguments = {str(key): _relation_argument(key, value) for key, value in test.arguments.items()}
    if test.kind == "relationships" and isinstance(arguments.get("field"), str):
        arguments["field"] = column_in_sql(arguments["field"], ())
    if test.column is None:
        return arguments
    return {**arguments, "column_name": column_in_sql(test.column, [name for name, _ in columns.columns or ()])}


def _failing_aggregate(
    tested: str, test: TestConfig, shared: CompileContext, known_nodes: KnownNodes, columns: InputColumns
) -> DataTestAggregate | None:
    """What the macro `failing_<kind>` of the same file gives; None: there is none, or it reads another table."""
    sandbox, rows = shared.sandbox, _rows(_reference(tested), test.options.where)
    relation = (
        _view(_name(tested)) if _is_source(tested) else getattr(known_nodes.relations.get(_name(tested)), "sql", None)
    )
    names = [re.sub(r"\b(\w++)$", rf"{kind}_\1", test.kind) for kind in ("test", "failing")]
    files = [sandbox.macro_files.get(name) for name in names]
    if relation is None or names[1] not in sandbox.macros or files[0] != files[1]:
        return None
    try:
        failing = str(sandbox.call(names[1], rows, **_arguments(test, columns))).strip()
    except ProjectError:
        return None
    rows = _rows(relation, test.options.where)
    return (
        None
        if any(mark in text for mark in (REF, SOURCE) for text in (rows, failing))
        else DataTestAggregate(rows, failing)
    )


def _rows(rows: str, where: str) -> str:
    """What a test reads in place of a model or source, `rows`."""
    return f"(select * from {rows} where {where}\n)" if where else rows  # noqa: S608 - the user's own


def _reference(tested: str) -> str:
    return source(_name(tested)) if _is_source(tested) else ref(_name(tested))


def _view(name: str) -> str:
    return f"`{name}`"


def _relation_argument(key: str, value: Any) -> Any:
    """`to: airports`, `ref('airports')` and `source('ops', 'airports')` name a relation."""
    if not isinstance(value, str):
        return value
    name = node_name(value)
    if name == value.strip() and key != "to":
        return value
    return source(name) if "." in name else ref(name)


def _node(
    tested: str,
    file: str,
    test: TestConfig,
    text: str,
    known_nodes: KnownNodes,
    diagnostics: list[Diagnostic],
    columns: InputColumns,
) -> DataTest | None:
    own = _name(tested)
    shared_text = text.replace(_reference(tested), _TESTED)
    rendered, query = Rendered(shared_text, shared_text, file), _parse_shared(shared_text)
    if query is not None:
        query = _read_by(query, own, "source" if _is_source(tested) else "ref")
    else:
        rendered, problems = Rendered(text, text, file), list[Diagnostic]()
        query = parse(rendered, own, problems, compared=False)
        if query is None or problems:
            for problem in problems:
                message = f"the SQL of the test '{test.kind}': {problem.message}"
                diagnostics.append(Diagnostic(problem.code, message, problem.hint, node=own, location=test.location))
            return None
    read = read_relations(rendered, query, known_nodes, f"the test '{test.kind}'", own, test.location, diagnostics)
    if read is None:
        return None
    sql, parents, _ = read
    kind_name = f"source_{test.kind}" if _is_source(tested) else test.kind
    name, options = test.options.name or data_test_name(kind_name, own, test.column), test.options
    node = DataTest(
        id=data_test_id(name, tested),
        name=name,
        kind=test.kind,
        model=tested,
        sql=sql,
        column=test.column,
        severity=options.severity,
        depends_on=parents,
        tags=options.tags,
        file=file,
        location=test.location,
        warn_if=options.warn_if,
        error_if=options.error_if,
        limit=options.limit,
        description=options.description,
        meta=options.meta,
        deterministic=query.deterministic,
    )
    # Tests that read other nodes, too, are checked when those are known.
    if parents == (tested,) and not _has_all_columns(shared_text, replace(columns, node="")):
        tree = parse_text(text)
        diagnostics += missing_columns(node, tree, text, {_reference(tested).strip("`"): columns})
    return node


@lru_cache(maxsize=256)
def _parse_shared(text: str) -> ParsedQuery | None:
    """Parse the SQL of a test that reads `_TESTED`; None: it has faults, or names the tested table before a column."""
    problems: list[Diagnostic] = []
    query = parse(Rendered(text, text, ""), "", problems, compared=False)
    return None if query is None or problems or query.qualifiers else query


def _read_by(query: ParsedQuery, own: str, kind: str) -> ParsedQuery:
    """The shared query of a test with the name of the model or source that is tested."""
    references = (
        replace(reference, kind=kind, name=own) if reference.name == _TESTED_NAME else reference
        for reference in query.references
    )
    return replace(query, references=tuple(references))


@lru_cache(maxsize=256)
def _has_all_columns(text: str, columns: InputColumns) -> bool:
    query = _parse_shared(text)
    tables = {_TESTED.strip("`"): columns}
    return query is not None and not columns_of(query.tree, tables, {}, text).unresolved


def read_relations(
    rendered: Rendered,
    query: ParsedQuery,
    known_nodes: KnownNodes,
    owner: str,
    node: str,
    place: Location | None,
    diagnostics: list[Diagnostic],
) -> tuple[str, tuple[str, ...], SourceMap] | None:
    """The SQL of a test with tables for its references, what it reads, by id, and the way back; None: it failed."""
    parents: dict[str, None] = {}
    edits = []
    for reference in query.references:
        relation = known_nodes.relations.get(reference.name)
        at = place or rendered.location(reference.start)
        if reference.kind == "source" and f"source.{reference.name}" in known_nodes.sources:
            parents[f"source.{reference.name}"] = None
            edits.append(Edit(reference.start, reference.end, _view(reference.name)))
            continue
        if reference.kind == "source" and not known_nodes.sources_whole:
            # It may be one of those that could not be read, which are reported.
            return None
        if reference.kind != "ref" or relation is None:
            kind = "source" if reference.kind == "source" else "model"
            message = f"{owner} reads '{reference.name}', which is not a {kind}"
            hint = near(reference.name, known_nodes.source_names if kind == "source" else known_nodes.relations)
            diagnostics.append(Diagnostic("unknown-ref", message, hint, node=node, location=at))
            return None
        if known_nodes.inlines(reference.name):
            message = f"{owner} reads the ephemeral model '{reference.name}', which has no table"
            hint = "Test the model that reads it, or give it a table."
            diagnostics.append(Diagnostic("bad-value", message, hint, node=node, location=at))
            return None
        parents[f"model.{reference.name}"] = None
        edits.append(Edit(reference.start, reference.end, relation.sql))
    spliced = splice(rendered, edits, query.end)
    return spliced.sql, tuple(parents), spliced.positions
