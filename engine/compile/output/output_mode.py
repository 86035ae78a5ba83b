"""The output mode of a stream, and the key of update mode, where the header leaves them to the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from engine.compile.columns.find_columns import BoundQuery
from engine.compile.config.window_config import Window
from engine.compile.nodes.materialization import Materialized
from engine.compile.nodes.model_settings import History, OutputMode, Write
from engine.compile.output.output_columns import GroupColumns, group_keys, outermost, output_columns
from engine.compile.references.expand_windows import Report
from engine.compile.sql.aggregates import has_aggregate, reads_names, streaming_names
from engine.compile.sql.parse import ParsedQuery, first_offset
from engine.compile.sql.query_nodes import QueryNodes, relations
from engine.errors import Location

MERGED = "its rows are replaced by newer ones (it has a unique_key)"


def decide_output_mode(
    write: Write,
    query: tuple[ParsedQuery, BoundQuery],
    windows: tuple[Window, ...],
    streams: frozenset[str],
    places: Mapping[str, Location],
    report: Report,
) -> Write:
    """Complete the write of a streaming model; `streams` are the names by which it reads streams itself."""
    parsed, bound = query
    mode = write.output_mode or (OutputMode.UPDATE if _updates(write, parsed, windows, streams) else OutputMode.APPEND)
    write = replace(write, output_mode=mode)
    if mode is not OutputMode.UPDATE:
        return write
    if _check_session_window(parsed, windows, places, report):
        return write
    select = outermost(bound.tree)
    keys = group_keys(bound, select, windows) if isinstance(select, exp.Select) else None
    if keys is None:
        if not write.unique_key and "unique_key" not in places:
            hint = "Add 'unique_key: id': in update mode a row may be emitted again, and is then merged by its key."
            report("update-needs-key", "output_mode 'update' needs a 'unique_key'", hint, places["output_mode"])
        return write
    return replace(write, unique_key=_key(write, bound, keys, places, report))


def why_rows_change(kind: Materialized, write: Write) -> str:
    """Why the rows of a model change after they were written, so that no stream can read them; empty: they never do."""
    if not kind.traits.streaming:
        return "" if write.history is History.CHANGES else f"it is a {kind.traits.noun}"
    if write.output_mode is OutputMode.COMPLETE:
        return "it is rewritten in each micro-batch (output_mode: complete)"
    merged = write.unique_key or write.output_mode is OutputMode.UPDATE
    return MERGED if merged else ""


def _check_session_window(
    query: ParsedQuery, windows: tuple[Window, ...], places: Mapping[str, Location], report: Report
) -> bool:
    """Report a session window in update mode; whether there is one."""
    hint = "Set output_mode: append: a session is written when it ends."
    session = next((window for window in windows if window.time.kind == "session"), None)
    if session is not None:
        message = f"the session window '{session.name}' does not run in update mode ({_at(places, session)})"
        report("session-mode", message, hint, session.location)
        return True
    call = next(_session_calls(query.nodes), None)
    if call is not None:
        report("session-mode", "session_window() does not run in update mode", hint, first_offset(call))
    return call is not None


def _session_calls(nodes: QueryNodes) -> Iterator[exp.Expr]:
    return (node for node in nodes.every(exp.Anonymous) if node.name.lower() == "session_window")


def _at(places: Mapping[str, Location], window: Window) -> str:
    place = places.get("output_mode") or places["unique_key"]
    where = f"line {place.line}" if place.file == window.location.file else str(place)
    return f"output_mode in {where}" if "output_mode" in places else f"unique_key in {where}"


def _key(
    write: Write, bound: BoundQuery, keys: list[GroupColumns], places: Mapping[str, Location], report: Report
) -> tuple[str, ...]:
    """The key of a query that groups: its grouping columns, and no other."""
    missing = [key.text for key in keys if not key.columns]
    if missing:
        names = " and ".join(f"'{text}'" for text in missing)
        hint = "Add the grouping column to the SELECT (of a window, its start), so that it can be the key."
        place = places.get("output_mode") or places["unique_key"]
        report("update-needs-key", f"the query groups by {names}, and the SELECT has no column of it", hint, place)
        return write.unique_key
    grouping = tuple(key.columns[0] for key in keys)
    if "unique_key" not in places:
        return grouping
    output = {name.lower() for name in output_columns(bound) or write.unique_key}
    selected = all(name.lower() in output for name in write.unique_key)
    if write.unique_key and selected and not _fits(write.unique_key, keys):
        key_text = ", ".join(grouping) or "nothing"
        message = f"'unique_key' is not the grouping key of the query ({key_text}), and output_mode is 'update'"
        hint = f"Write unique_key: [{key_text}] or leave it out; or write output_mode: append."
        report("update-needs-key", message, hint, places["unique_key"])
    return write.unique_key


def _fits(unique_key: tuple[str, ...], keys: list[GroupColumns]) -> bool:
    names = {name.lower() for name in unique_key}
    groups = [{column.lower() for column in key.columns} for key in keys]
    return names <= set().union(*groups) and all(group & names for group in groups)


def _updates(write: Write, query: ParsedQuery, windows: tuple[Window, ...], streams: frozenset[str]) -> bool:
    """Return whether the query has a key, and an aggregate as its only stateful step that update mode can emit."""
    if not write.unique_key or any(window.time.kind == "session" for window in windows):
        return False
    nodes = query.nodes
    if next(_session_calls(nodes), None) is not None:
        return False
    if any(not isinstance(node, exp.Union) or node.args.get("distinct") for node in nodes.every(exp.SetOperation)):
        return False
    names = streaming_names(nodes, streams)
    selects = [select for select in nodes.every(exp.Select) if reads_names(nodes, select, names)]
    if any(select.args.get("distinct") or select.args.get("limit") for select in selects) or nodes.every(exp.Pivot):
        return False
    if any(sum(reads_names(nodes, one, names) for one in relations(select)) > 1 for select in selects):
        return False
    return sum(_aggregates(select) for select in selects) == 1


def _aggregates(select: exp.Select) -> bool:
    if select.args.get("group") is not None:
        return True
    return any(has_aggregate(item) for item in select.expressions if not isinstance(item.unalias(), exp.Subquery))
