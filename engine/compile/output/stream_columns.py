"""Columns that the settings of streams name: the event time, the keys of dedup, the time of windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from engine.compile.columns import InputColumns, Unresolved
from engine.compile.columns.find_columns import columns_of
from engine.compile.config.window_config import Window
from engine.compile.nodes.manifest import Input, Model, Source, Watermark
from engine.compile.sql.dialect import DIALECT, parse_text
from engine.compile.types.spark_types import normal
from engine.errors import Diagnostic, Location, near

_CAST = "Write watermark: cast({0} as timestamp) as {1} delay {2}."
_READ = "@input"
_SELECT = "select {} as value from `{}`"


def stream_faults(
    model: Model, tree: exp.Expr, windows: Iterable[Window], columns_of_inputs: Mapping[str, InputColumns]
) -> Iterator[Diagnostic]:
    """Columns that are not there or cannot carry event time, as far as the columns of the inputs are known."""
    for item in model.inputs:
        columns = columns_of_inputs.get(item.node)
        if item.stream and not item.through and columns is not None and columns.columns is not None:
            if item.watermark is not None:
                place = _place(model, item, "watermark")
                yield from _watermark(item.name, item.watermark, columns, model.name, place)
            yield from _dedup(item, columns, model.name, _place(model, item, "dedup"))
    yield from _windows(model, tree, windows, columns_of_inputs)


def source_faults(source: Source, columns: InputColumns) -> Iterator[Diagnostic]:
    """The same of the watermark and the dedup that a source gives to every stream of it.

    Args:
        source: whose declaration could be read.
        columns: as models see them.
    """
    if source.watermark is not None and columns.columns is not None:
        yield from _watermark(source.name, source.watermark, columns, source.name, source.location)
        yield from _dedup(source, columns, source.name, source.location)


def _watermark(
    name: str, mark: Watermark, columns: InputColumns, node: str, place: Location | None
) -> Iterator[Diagnostic]:
    missing, type_ = _evaluated(mark.expression, columns) if mark.expression else _found(mark.column, columns)
    for lost in missing:
        message = f"the watermark of '{name}' is on '{lost.name}', which it does not have"
        hint = near(lost.name, lost.near or _names(columns))
        code = "unknown-column" if mark.expression else "watermark-missing-column"
        yield Diagnostic(code, message, hint, node=node, location=place)
    if type_ not in {None, "timestamp"}:
        message = f"the watermark of '{name}' is on {type_}, not TIMESTAMP"
        yield Diagnostic("watermark-type", message, _cast(mark, type_), node=node, location=place)


def _cast(mark: Watermark, type_: str | None) -> str:
    if type_ not in {"string", "date", "timestamp_ntz"}:
        return "Use the event-time column."
    return _CAST.format(mark.expression or mark.column, f"{mark.column}_at", mark.delay)


def _found(name: str, columns: InputColumns) -> tuple[tuple[Unresolved, ...], str | None]:
    """The type of a column; what is missing if there is none."""
    types = {column.lower(): type_ for column, type_ in (*columns.hidden, *(columns.columns or ()))}
    lost = columns.complete and name.lower() not in types
    type_ = types.get(name.lower())
    return (Unresolved(name, (), 0),) if lost else (), normal(type_) if type_ else None


def _evaluated(sql: str, columns: InputColumns) -> tuple[tuple[Unresolved, ...], str | None]:
    """The names in an expression that are not there, and its type if all are."""
    text = _SELECT.format(sql, _READ)
    query = columns_of(parse_text(text), {_READ: columns}, {}, text)
    type_ = query.columns[0].type if query.columns and not query.unresolved else None
    return query.unresolved, type_


def _dedup(item: Input | Source, columns: InputColumns, node: str, place: Location | None) -> Iterator[Diagnostic]:
    names = {name.lower() for name in _names(columns)} | ({item.watermark.column.lower()} if item.watermark else set())
    for key in item.dedup:
        if columns.complete and key.partition(".")[0].strip("`").lower() not in names:
            message = f"'dedup' of '{item.name}' names '{key}', which it does not have"
            hint = near(key, _names(columns))
            yield Diagnostic("unknown-column", message, hint, node=node, location=place)


def _windows(
    model: Model, tree: exp.Expr, windows: Iterable[Window], columns_of_inputs: Mapping[str, InputColumns]
) -> Iterator[Diagnostic]:
    """Windows over a column that neither an input nor a part of the query has."""
    windows = list(windows)
    inputs = [columns_of_inputs.get(item.node) for item in model.inputs]
    if not windows or model.inlined or any(i is None or i.columns is None or not i.complete for i in inputs):
        return
    names = [name for columns in inputs if columns is not None for name in _names(columns)]
    names += [item.watermark.column for item in model.inputs if item.watermark]
    made = {alias.alias.lower() for alias in tree.find_all(exp.Alias)} | {
        identifier.name.lower()
        for alias in tree.find_all(exp.TableAlias)
        for identifier in alias.args.get("columns") or ()
    }
    for window in windows:
        # A part of the query that selects another window whole has a column of its name.
        there = made | {other.name for other in windows if other is not window}
        for column in parse_text(f"select {window.time.time}").find_all(exp.Column):
            heads = {part.name.lower() for part in column.parts}
            if not heads & ({name.lower() for name in names} | there):
                message = f"the window '{window.name}' is over '{column.sql(dialect=DIALECT)}', which no input has"
                hint = near(column.name, names)
                yield Diagnostic("unknown-column", message, hint, node=model.name, location=window.location)


def _names(columns: InputColumns) -> list[str]:
    return [name for name, _ in (*(columns.columns or ()), *columns.hidden)]


def _place(model: Model, item: Input, key: str) -> Location:
    places = model.positions.settings
    return places.get(f"streams.{item.name}.{key}") or places.get("streams") or Location(model.file)
