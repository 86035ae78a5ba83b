"""Columns, types and lineage of a model, from those of what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.compile.columns import ColumnFacts, InputColumns, QueryColumns
from engine.compile.columns.column_texts import starts
from engine.compile.columns.find_columns import BoundQuery, bind
from engine.compile.config.window_config import Window
from engine.compile.nodes.manifest import Column, Input, Model, Source
from engine.compile.output.clause_checks import misplaced_calls
from engine.compile.output.contract import declared_faults
from engine.compile.output.null_event_times import with_needed_times
from engine.compile.output.output_columns import is_misspelled
from engine.compile.output.storable_types import GivenColumn, storable_faults
from engine.compile.output.stream_columns import stream_faults
from engine.compile.sql.parse import ParsedQuery, with_printed
from engine.compile.sql.schema_text import spelt
from engine.compile.streaming.check_query import broken_rules, placeholder
from engine.errors import Diagnostic, Level, Location, near
from engine.jinja import Rendered
from engine.sources import ORIGIN, kind_of, knows_columns


def quoted_columns(
    query: ParsedQuery, rendered: Rendered, inputs: Iterable[InputColumns], model: str
) -> Iterator[Diagnostic]:
    """Yield a warning for each string in double quotes that equals a column which the query reads.

    Args:
        query: of the model.
        rendered: the text that it was read from.
        inputs: what it reads, as far as that is known.
        model: its name.
    """
    if not query.double_quoted:
        return
    names = {name.lower(): name for each in inputs for name, _ in each.columns or ()}
    for alias in query.tree.find_all(exp.Alias):
        # One of a CTE or a subquery; the outermost SELECT's are read by nobody.
        if alias.parent is not None and alias.parent.parent is not None:
            names.setdefault(alias.alias.lower(), alias.alias)
    for offset, text in query.double_quoted:
        if (name := names.get(text.lower())) is not None:
            message = f'"{text}" is a constant string in Spark, and not the column of that name'
            hint = f"Write `{name}` for the column, or '{text}' for the string."
            place = rendered.location(offset)
            hint = with_printed(hint, rendered, offset)
            yield Diagnostic("string-for-column", message, hint, Level.WARNING, model, place)


# Errors that leave the query, its windows and its streams as they are meant.
_QUERY_HOLDS = {
    "condition-syntax", "dedup-needs-watermark", "partition-clash", "schedule-syntax", "session-mode",
    "trigger-continuous", "unknown-column", "update-needs-key",
}  # fmt: skip
# Those that leave the names in it: what is read and not known may have any column.
_NAMES_HOLD = _QUERY_HOLDS | {
    "stream-bounded", "stream-not-streamable", "stream-unlisted", "stream-unread", "unknown-ref", "unknown-source",
    "window-unused",
}  # fmt: skip

_NOT_FOUND = {"unknown-ref", "unknown-source"}

_SHOWN = 5
_MEETING = ("spark.sql.ansi.", "spark.sql.legacy.")
_BRINGING = ("spark.sql.extensions", "spark.sql.catalogImplementation", "spark.plugins", "spark.jars")


@dataclass(frozen=True, slots=True)
class ParsedModel:
    """What the text of a model gave: the query and the text it was read from, and the declared windows.

    `foreign`: there may be functions that are not Spark's own. `whole`: no declared window was left out for a fault.
    """

    query: ParsedQuery
    bound: BoundQuery
    rendered: Rendered
    windows: tuple[Window, ...]
    foreign: bool = False
    whole: bool = True
    is_verbatim: bool = False
    ansi: bool = True


def with_columns(
    model: Model, text: ParsedModel, columns_by_node: Mapping[str, InputColumns], diagnostics: list[Diagnostic]
) -> tuple[Model, InputColumns]:
    """Return a model with its columns, and how others see them.

    Columns missing from `columns_by_node` (by id) are not known. Columns that no input has, names given twice and
    broken rules of streams are added to `diagnostics`, whose errors decide what else is checked.
    """
    facts = text.bound.columns
    errors = {finding.code for finding in diagnostics if finding.is_error}
    # A length that cannot be read leaves all names, unless it is that of a window, which is then missing.
    names_are_certain = errors <= (_NAMES_HOLD | {"bad-duration"} if text.whole else _NAMES_HOLD)
    # What is not found may have the time of any window.
    windows = () if errors & _NOT_FOUND else text.windows
    times = list(stream_faults(model, text.bound, windows, columns_by_node)) if names_are_certain else []
    faults = [*times, *_column_faults(model, text, facts, columns_by_node)] if names_are_certain else []
    if errors <= _QUERY_HOLDS and bool(errors) == model.broken and not times:
        own = (text.bound, text.rendered) if text.is_verbatim else None
        # The streaming rules know the same types: a wrong type of a window's time is reported once.
        reported_codes = errors | ({"window-type"} if own and any(f.code == "type-mismatch" for f in faults) else set())
        faults += [rule for rule in broken_rules(model, columns_by_node, own) if rule.code not in reported_codes]
    diagnostics += faults
    diagnostics += quoted_columns(text.query, text.rendered, columns_by_node.values(), model.name)
    broken = model.broken or any(fault.is_error for fault in faults)
    columns = _merge_declared(model.columns, facts.columns)
    output = facts.as_input(model.id, in_table=not model.computed_when_read)
    if facts.columns is not None and is_misspelled((column.name for column in facts.columns), facts.unresolved):
        # Others may read the column that was meant: only its own model has an error.
        output = replace(output, complete=False)
    model = replace(model, columns=columns, indirect=facts.indirect, broken=broken)
    return with_needed_times(model, text.query.nodes, text.bound), output


def brings_functions(conf: Mapping[str, str]) -> bool:
    """Whether Spark's settings may bring functions that are not its own."""
    return any(key.startswith(_BRINGING) for key in conf)


def by_default(conf: Mapping[str, str]) -> bool:
    """Whether Spark's settings leave it how types meet."""
    return not any(key.startswith(_MEETING) for key in conf)


def source_columns(source: Source) -> InputColumns:
    """How models see the columns of a source."""
    columns = tuple((column.name, column.type) for column in source.columns)
    kind = kind_of(source.spec.format)
    origin = kind.origin(source.spec) if kind else None
    # Without a schema, what is described need not be all that the table has.
    hidden = ((ORIGIN, spelt(origin) if origin else None),)
    return InputColumns(source.id, columns or None, hidden=hidden, complete=knows_columns(source.spec))


def bound_query(
    query: ParsedQuery,
    rendered: Rendered,
    windows: Iterable[Window],
    reads: tuple[Iterable[Input], Iterable[str]],
    columns_by_node: Mapping[str, InputColumns],
    *,
    with_uses: bool = False,
) -> BoundQuery:
    """Return a model's query with its names and types; columns missing from `columns_by_node` (by id) are not known.

    `reads` are its inputs, and the ephemeral models that it names. `with_uses`: also note what each name refers to.
    """
    inputs = {}
    for name in reads[1]:
        inputs[f"@ref {name}"] = columns_by_node.get(f"model.{name}", InputColumns(f"model.{name}", None))
    for item in reads[0]:
        if not item.through:
            columns = columns_by_node.get(item.node, InputColumns(item.node, None))
            time = item.watermark.column if item.stream and item.watermark is not None else ""
            dedup = item.stream and bool(item.dedup)
            inputs[placeholder(item)] = replace(
                columns, added=_added_times(item), event_time=time, streaming=item.stream, dedup=dedup
            )
    times = {window.name: window.time for window in windows}
    return bind(query.tree, inputs, times, rendered.text, query.items, with_uses=with_uses)


def _added_times(item: Input) -> tuple[tuple[str, str], ...]:
    mark = item.watermark
    return ((mark.column, mark.expression),) if mark is not None and mark.expression is not None else ()


def _column_faults(
    model: Model, text: ParsedModel, facts: QueryColumns, columns_by_node: Mapping[str, InputColumns]
) -> Iterable[Diagnostic]:
    for missing in facts.unresolved:
        place = text.rendered.location(missing.offset)
        message = f"column '{missing.name}' not found"
        hint = with_printed(
            near(missing.name, missing.near or missing.visible_names or _readable_names(model, columns_by_node)),
            text.rendered,
            missing.offset,
        )
        yield Diagnostic("unknown-column", message, hint, node=model.name, location=place)
    for fault in (*facts.faults, *misplaced_calls(text.query.nodes, text.bound.noted.key_of)):
        unsure = {"unknown-function": text.foreign, "type-mismatch": not text.ansi}
        if not unsure.get(fault.code):
            place = text.rendered.location(fault.offset)
            hint = with_printed(fault.hint, text.rendered, fault.offset)
            yield Diagnostic(fault.code, fault.message, hint, node=model.name, location=place)
    if facts.duplicates and not facts.unresolved:
        yield _same_names(model, facts.duplicates)
    if facts.columns is not None:
        certain = all(column.named for column in facts.columns)
        certain = certain and not is_misspelled((column.name for column in facts.columns), facts.unresolved)
        named_types = [(column.name, column.type) for column in facts.columns if column.named]
        yield from declared_faults(model, named_types, certain=certain)
        columns = facts.columns
        given_columns = [GivenColumn(column.name, column.type, column.sql) for column in columns]
        yield from storable_faults(model, given_columns, lambda index: _place(text, columns, index))


def _place(text: ParsedModel, columns: Sequence[ColumnFacts], index: int) -> Location:
    begins = starts(text.rendered.text, text.query.items, text.query.tree, [column.name for column in columns])
    return text.rendered.location(begins[index])


def _same_names(model: Model, names: Sequence[str]) -> Diagnostic:
    message = f"two columns have the name '{names[0]}'"
    hint = "Give one of them an alias; Spark's column names are case-insensitive."
    if len(names) > 1:
        listed_names = ", ".join(f"'{name}'" for name in names[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        message = f"two columns each have the names {listed_names}{more}"
        hint = "Select the columns of one input by name instead of '*', or give them aliases."
    return Diagnostic("duplicate-name", message, hint, node=model.name, location=Location(model.file))


def _readable_names(model: Model, columns_by_node: Mapping[str, InputColumns]) -> list[str]:
    inputs = (columns_by_node.get(node) for node in model.depends_on)
    return [name for columns in inputs if columns is not None for name, _ in columns.columns or ()]


def _merge_declared(described: tuple[Column, ...], facts: tuple[ColumnFacts, ...] | None) -> tuple[Column, ...]:
    """The query's columns in their order, with the user's declarations."""
    if facts is None:
        return described
    described_by_name = {column.name.lower(): column for column in described}
    columns = []
    for fact in facts:
        own = described_by_name.pop(fact.name.lower(), Column(fact.name))
        derived = (fact.origins, fact.sql, fact.derivation, fact.window, fact.named, fact.certain)
        columns.append(Column(own.name, own.description, fact.type or own.type, own.meta, *derived, own.renamed_from))
    return (*columns, *described_by_name.values())
