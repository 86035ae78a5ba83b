"""Columns that the settings of streams name: the event time, the keys of dedup, the time of windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from engine.compile.columns import InputColumns, Unresolved
from engine.compile.columns.column_texts import expression
from engine.compile.columns.find_columns import BoundQuery, columns_of_value
from engine.compile.config.window_config import Window
from engine.compile.nodes.manifest import Input, Model, Source, Watermark
from engine.compile.sql.dialect import DIALECT
from engine.compile.types.spark_types import normal
from engine.errors import Diagnostic, Location, near
from engine.times import in_words

_CAST = "watermark: cast({0} as timestamp) as {1} delay {2}"


def stream_faults(
    model: Model, bound: BoundQuery, windows: Iterable[Window], columns_of_inputs: Mapping[str, InputColumns]
) -> Iterator[Diagnostic]:
    """Columns that are not there or cannot carry event time, as far as the columns of the inputs are known."""
    for item in model.inputs:
        columns = columns_of_inputs.get(item.node)
        if item.stream and not item.through and columns is not None and columns.columns is not None:
            if item.watermark is not None:
                place = _place(model, item, "watermark")
                yield from _watermark(item.name, item.watermark, columns, model.name, place)
            yield from _dedup(item, columns, model.name, _place(model, item, "dedup"))
    yield from _windows(model, bound, windows, columns_of_inputs)


def source_faults(source: Source, columns: InputColumns) -> Iterator[Diagnostic]:
    """Report the same of the watermark and the dedup that a source gives to every stream of it."""
    if source.watermark is not None and columns.columns is not None:
        yield from _watermark(source.name, source.watermark, columns, source.name, source.location)
        yield from _dedup(source, columns, source.name, source.location)


def _watermark(
    name: str, mark: Watermark, columns: InputColumns, node: str, place: Location | None
) -> Iterator[Diagnostic]:
    missing, type_ = (
        _expression_type(mark.expression, columns) if mark.expression else _column_type(mark.column, columns)
    )
    for missing_column in missing:
        message = f"the watermark of '{name}' is on '{missing_column.name}', which it does not have"
        hint = near(missing_column.name, missing_column.near or _names(columns))
        code = "unknown-column" if mark.expression else "watermark-missing-column"
        yield Diagnostic(code, message, hint, node=node, location=place)
    if type_ not in {None, "timestamp"}:
        message = f"the watermark of '{name}' is on {type_}, not TIMESTAMP"
        yield Diagnostic("watermark-type", message, _cast(name, mark, type_), node=node, location=place)


def _cast(name: str, mark: Watermark, type_: str | None) -> str:
    if type_ not in {"string", "date", "timestamp_ntz"}:
        return "Use the event-time column."
    delay = in_words(mark.delay)
    cast = _CAST.format(mark.expression or mark.column, mark.column, delay)
    if type_ != "string" or mark.expression or "." not in name:
        return f"Write {cast}."
    return f"Write '{mark.column} timestamp' in the schema of '{name}', or cast it: {cast}."


def _column_type(name: str, columns: InputColumns) -> tuple[tuple[Unresolved, ...], str | None]:
    types = {column.lower(): type_ for column, type_ in (*columns.hidden, *(columns.columns or ()))}
    is_missing = columns.complete and name.lower() not in types
    type_ = types.get(name.lower())
    return (Unresolved(name, (), 0),) if is_missing else (), normal(type_) if type_ else None


def _expression_type(sql: str, columns: InputColumns) -> tuple[tuple[Unresolved, ...], str | None]:
    """The names in an expression that are not there, and its type if all are."""
    query = columns_of_value(sql, columns)
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
    model: Model, bound: BoundQuery, windows: Iterable[Window], columns_of_inputs: Mapping[str, InputColumns]
) -> Iterator[Diagnostic]:
    """Windows over a column that no SELECT of the query has."""
    inputs = [columns_of_inputs.get(item.node) for item in model.inputs]
    if model.inlined or any(i is None or i.columns is None or not i.complete for i in inputs):
        return
    names = [name for columns in inputs if columns is not None for name in _names(columns)]
    names += [item.watermark.column for item in model.inputs if item.watermark]
    input_names = {name.lower() for name in names}
    for window in (window for window in windows if window.name not in bound.noted.timed):
        tree = expression(window.time.time)
        for column in tree.find_all(exp.Column) if tree is not None else ():
            if input_names.isdisjoint(part.name.lower() for part in column.parts):
                message = f"the window '{window.name}' is over '{column.sql(dialect=DIALECT)}', which no input has"
                hint = near(column.name, names)
                yield Diagnostic("unknown-column", message, hint, node=model.name, location=window.location)


def _names(columns: InputColumns) -> list[str]:
    return [name for name, _ in (*(columns.columns or ()), *columns.hidden)]


def _place(model: Model, item: Input, key: str) -> Location:
    places = model.positions.settings
    return places.get(f"streams.{item.name}.{key}") or places.get("streams") or Location(model.file)
