"""The columns of a table that are not those of its query: `history` adds some, `exclude` leaves some out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.compile.columns.column_texts import columns_named
from engine.compile.nodes.column_facts import InputColumns, Origin
from engine.compile.nodes.manifest import Column, Model
from engine.compile.nodes.model_settings import History, Write

# Type and meaning of the columns that a history of full extracts adds.
_OF_VERSIONS = {
    "valid_from": ("timestamp", "the time of the extract that has it first"),
    "valid_to": ("timestamp", "the time of the extract that has it no more"),
    "is_current": ("boolean", "valid_to is null"),
}
_OF_CHANGES = {
    "change_type": ("string", "insert, update_before, update_after or delete"),
    "changed_at": ("timestamp", "the time of the build or extract that has it"),
}


def with_table_columns(model: Model, output: InputColumns) -> tuple[Model, InputColumns]:
    """Return a model with the columns of its table, and how others see them; `output` has those of its query."""
    write = model.write
    if not write.unique_key:
        return model, output
    indirect = tuple(dict.fromkeys((*model.indirect, *_deciding_origins(model))))
    types = {name.lower(): type_ for name, type_ in output.columns or ()}
    columns = [*model.columns]
    returned = [*(output.columns or ())]
    if write.history is History.CHANGES:
        returned += [(name, type_) for name, (type_, _) in _OF_CHANGES.items()]
        columns = list(_with_build_times(columns, _OF_CHANGES))
    if write.history is History.VERSIONS:
        order = types.get(write.sequence_by[0].lower()) if write.sequence_by else "timestamp"
        returned += [("valid_from", order), ("valid_to", order), ("is_current", "boolean")]
        columns = list(_with_history(columns, write))
    out = {name.lower() for name in write.exclude}
    columns = [column for column in columns if column.name.lower() not in out]
    if output.columns is not None:
        output = replace(output, columns=tuple(item for item in returned if item[0].lower() not in out))
    return replace(model, columns=tuple(columns), indirect=indirect), output


def _deciding_origins(model: Model) -> Iterator[Origin]:
    write = model.write
    newer = {name.lower() for name in write.sequence_by}
    deletes = columns_named(write.delete_when or "")
    for kind, names in (("sort", newer), ("filter", deletes)):
        for column in model.columns:
            if column.name.lower() in names:
                yield from (Origin(origin.node, origin.column, kind) for origin in column.origins)


def _with_history(columns: list[Column], write: Write) -> Iterator[Column]:
    """The columns, and those of the time in which a version was valid, which come from the first of `sequence_by`."""
    if not write.sequence_by:
        yield from _with_build_times(columns, _OF_VERSIONS)
        return
    first, *_ = write.sequence_by
    order = next((column for column in columns if column.name.lower() == first.lower()), Column(first))
    keys, times = ", ".join(write.unique_key), ", ".join(write.sequence_by)
    added = {
        "valid_from": (order.type, first),
        "valid_to": (order.type, f"lead({first}) over (partition by {keys} order by {times})"),
        "is_current": ("boolean", "valid_to is null"),
    }
    described = {column.name.lower(): column for column in columns}
    yield from (column for column in columns if column.name.lower() not in added)
    for name, (type_, sql) in added.items():
        yield replace(described.get(name, Column(name)), type=type_, origins=order.origins, sql=sql)


def _with_build_times(columns: list[Column], added_columns: Mapping[str, tuple[str, str]]) -> Iterator[Column]:
    """The columns, and those of a history of full extracts, whose times are those of the extracts."""
    described = {column.name.lower(): column for column in columns}
    yield from (column for column in columns if column.name.lower() not in added_columns)
    for name, (type_, meaning) in added_columns.items():
        yield replace(described.get(name, Column(name)), type=type_, sql=meaning)
