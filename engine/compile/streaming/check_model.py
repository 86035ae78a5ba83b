"""Spark's rules of streaming, applied to the SQL of models that runs; findings have their place in the user's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import BoundQuery
from engine.compile.nodes.facts import InputFacts
from engine.compile.nodes.manifest import Input, Model
from engine.compile.sql.aggregates import is_stateful
from engine.compile.sql.dialect import DIALECT, parse_text
from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.streaming.check_query import check, check_text
from engine.compile.streaming.parse_statement import parse
from engine.compile.streaming.query_plan.stream_facts import Mode
from engine.compile.templates.template_names import REF, SOURCE, spoken
from engine.errors import Diagnostic
from engine.jinja import Rendered

# Rules that hold for every query.
ALWAYS = {
    "agg-not-grouped",
    "agg-alias-key",
    "agg-two-windows",
    "ambiguous-column",
    "subquery-place",
    "subquery-over-union",
    "window-many",
    "window-week",
}
# Reported by earlier stages, at a better place.
_SAID = {"unknown-column", "not-streaming", "not-a-query", "sql-syntax", "duplicate-name"}


def broken_rules(
    model: Model, inputs: Mapping[str, InputColumns], text: tuple[BoundQuery, Rendered] | None = None
) -> Iterator[Diagnostic]:
    """Yield the rules that a model breaks: all of them for a stream, those of any query for a table or a view.

    `text`: the user's query, bound, and its text, where no other query was put in; it need not be parsed again.
    """
    if not model.in_catalog or not model.sql:
        return
    mode: Mode = model.write.output_mode.value if model.write.output_mode else "append"
    if text is None:
        relations = {item.view: _input_as_read(item, inputs.get(item.node)) for item in model.inputs}
        findings = check_text(model.sql, relations, mode)
    else:
        findings = check(text[0], mode)
    for finding in findings:
        if finding.code in ALWAYS or (model.streaming and finding.code not in _SAID):
            at = finding.offset
            place = model.positions.locate(model.file, at) if text is None else text[1].location(at)
            message, hint = (_with_input_names(line, model) for line in (finding.message, finding.hint))
            yield Diagnostic(finding.code, message, hint, finding.level, model.name, place)


def reads_state(spelled: str, streams: Iterable[InputFacts]) -> bool:
    """Whether a query keeps state, from the facts of a model: its text in one spelling, and its streams."""
    listed = list(streams)
    tree = parse(spelled).tree
    names = [f"{kind}{item.name}" for item in listed for kind in (REF, SOURCE)]
    return tree is None or is_stateful(QueryNodes.of_tree(tree), names, dedup=any(item.dedup for item in listed))


def placeholder(item: Input) -> str:
    """The name that stands for an input in the user's query."""
    return f"{REF if item.node.startswith('model.') else SOURCE}{item.name}"


def _with_input_names(text: str, model: Model) -> str:
    """The text with the names of temporary views, and what stands for names, turned into those the user wrote."""
    text = spoken(text)
    for name, window in model.windows.items() if "WINDOW(" in text else ():
        text = text.replace(parse_text(window.sql).sql(dialect=DIALECT), name)
    for item in model.inputs:
        for name in (item.view, item.view.strip("`"), placeholder(item)):
            text = text.replace(name, item.name)
    return text


def _input_as_read(item: Input, columns: InputColumns | None) -> InputColumns:
    """What the SQL that runs sees of an input: a view that computes the event time."""
    mark = item.watermark if item.stream else None
    pairs = columns.columns if columns is not None else None
    if columns is not None and pairs is not None:
        types = {name.lower(): (name, kind) for name, kind in (*pairs, *(columns.hidden if item.metadata else ()))}
        if mark is not None and mark.expression is not None:
            types[mark.column.lower()] = (mark.column, "timestamp")
        pairs = tuple(types.values())
    time = mark.column if mark is not None else ""
    return InputColumns(
        item.node, pairs, event_time=time, streaming=item.stream, dedup=item.stream and bool(item.dedup)
    )
