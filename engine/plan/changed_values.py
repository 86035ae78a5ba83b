"""What changed between the query that wrote a table and the one of now, with both values, for people."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.compile.nodes.facts import NO_FACTS, Facts, PartitionFacts, WatermarkFacts, WriteFacts
from engine.plan.edits.definition_diff import definition_lines

# Lines of a difference, characters of a line, and of a value.
_LINES, _WIDTH, _VALUE = 10, 160, 120
_NOTHING = "nothing"


def identity_changes(old: Facts, new: Facts) -> Iterator[str]:
    if old.partition_by != new.partition_by:
        yield changed("'partition_by'", *(", ".join(map(_partition, facts.partition_by)) for facts in (old, new)))
    for key in WriteFacts.__struct_fields__:
        was, now = getattr(old.write, key), getattr(new.write, key)
        if was != now:
            yield changed(f"'{key}'", _text(was), _text(now))
    if old.output_mode != new.output_mode:
        yield changed("'output_mode'", _text(old.output_mode), _text(new.output_mode))


def table_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) == new.get(key):
            continue
        if key == "expectations":
            yield "its expectations changed"
        elif key == "columns":
            yield "the declared types of its columns changed"
        elif key == "sort_by":
            yield changed("'sort_by'", *(", ".join(map(_sorted_by, table.get(key) or ())) for table in (old, new)))
        else:
            yield changed(f"'{key}'", _text(old.get(key)), _text(new.get(key)))


def input_changes(old: Facts, new: Facts) -> Iterator[str]:
    before = {item.name: item for item in old.inputs}
    for item in new.inputs:
        name, input_before = item.name, before.get(item.name)
        if input_before is None:
            continue
        if input_before.watermark != item.watermark:
            yield changed(f"the watermark of '{name}'", *(_watermark(one.watermark) for one in (input_before, item)))
        if input_before.dedup != item.dedup:
            yield changed(f"the dedup of '{name}'", _text(input_before.dedup), _text(item.dedup))
        if input_before.stream != item.stream:
            yield f"'{name}' is now {'a stream' if item.stream else 'a static input'}"
        yield from _deferral(name, input_before.deferred, item.deferred)
        yield from _source_changes(name, input_before.source, item.source)


def deferral_changes(old: Facts, new: Facts) -> tuple[str, ...]:
    before = {item.name: item.deferred for item in old.inputs}
    pairs = ((item.name, before[item.name], item.deferred) for item in new.inputs if item.name in before)
    return tuple(text for name, was, now in pairs for text in _deferral(name, was, now))


def _deferral(name: str, was: str, now: str) -> Iterator[str]:
    if was != now:
        yield f"'{name}' was {_place(was)} and is {_place(now)} now"


def _place(deferred: str) -> str:
    return f"deferred to {deferred}" if deferred else "read in this target"


def _source_changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        if key == "schema":
            yield from _column_changes(name, was or (), now or ())
        elif isinstance(was or {}, Mapping) and isinstance(now or {}, Mapping):
            pairs = [{**(one or {})} for one in (was, now)]
            for option in sorted({*pairs[0], *pairs[1]}):
                if pairs[0].get(option) != pairs[1].get(option):
                    yield changed(f"{option} of '{name}'", _text(pairs[0].get(option)), _text(pairs[1].get(option)))
        else:
            yield changed(f"{key} of '{name}'", _text(was), _text(now))


def _column_changes(name: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[str]:
    before, after = ({str(column): kind for column, kind in columns} for columns in (old, new))
    for column in dict.fromkeys((*before, *after)):
        if before.get(column) != after.get(column):
            yield changed(f"column '{column}' of '{name}'", _text(before.get(column)), _text(after.get(column)))
    if before == after:
        yield changed(f"the order of the columns of '{name}'", ", ".join(before), ", ".join(after))


def changed(subject: str, was: str, now: str) -> str:
    return f"{subject} changed from {_short(was)} to {_short(now)}"


def query_changes(old: Facts, new: Facts) -> tuple[str, ...]:
    """Return the lines of the compiled SQL that changed, each with - or + before it; those of ephemeral models too."""
    pairs = [("", old.sql, new.sql)]
    for name in sorted({*old.inlined, *new.inlined}):
        was, now = (facts.inlined.get(name, NO_FACTS).sql for facts in (old, new))
        pairs.append((name, was, now))
    diff_lines = [line for name, was, now in pairs if was != now for line in _difference(name, was, now)]
    more = len(diff_lines) - _LINES
    return (*diff_lines[:_LINES], f"... and {more:,} more lines") if more > 1 else tuple(diff_lines)


def _difference(name: str, old: str, new: str) -> Iterator[str]:
    if name:
        yield f"ephemeral model '{name}':"
    before, after = (definition_lines({"sql": sql}) for sql in (old, new))
    lines = difflib.unified_diff(before, after, n=0, lineterm="")
    for line in lines:
        if line[:1] in "+-" and line[:3] not in {"+++", "---"}:
            text = f"{line[0]} {line[1:]}"
            yield text if len(text) <= _WIDTH else f"{text[:_WIDTH]}..."


def _sorted_by(column: Mapping[str, Any]) -> str:
    nulls = column.get("nulls_first")
    parts = [
        "desc" if column.get("descending") else "",
        "" if nulls is None else f"nulls {'first' if nulls else 'last'}",
    ]
    return " ".join([str(column["column"]), *filter(None, parts)])


def _partition(field: PartitionFacts) -> str:
    inner = ", ".join(str(part) for part in (field.number, field.column) if part is not None)
    text = field.column if field.transform == "identity" else f"{field.transform}({inner})"
    return f"{text} as {field.name}" if field.name else text


def _watermark(mark: WatermarkFacts | None) -> str:
    if not mark:
        return ""
    column = f"{mark.expression} as {mark.column}" if mark.expression else mark.column
    rest = {"delay": mark.delay, "max_future": mark.max_future, "on_null": mark.on_null}
    return " ".join([column, *(f"{key} {value}" for key, value in rest.items() if value)])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_text(inner)}" for key, inner in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value))
    return "" if value is None else str(value)


def _short(text: str) -> str:
    text = text or _NOTHING
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}..."
