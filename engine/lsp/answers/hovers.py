"""What is known of the word at a place: a column, model, source, window, macro, function, or key of the header."""

from __future__ import annotations

import re
import string
from pathlib import Path

from lsprotocol import types

from engine.compile import Model, Source
from engine.compile.nodes.manifest import Column, Macro
from engine.compile.pipeline.edited_model import NamePlace
from engine.docs.site.last_run import last_run
from engine.errors import Location
from engine.lsp.answers.completions import signatures
from engine.lsp.answers.editor_answers import name_at, node_at
from engine.lsp.opened.header_places import HeaderWord, KnownColumn, columns_of, header_place, meaning
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import TextKind, location_of_position, offset_of, range_at, range_word, segment_at
from engine.schema import ConfigKey
from engine.secrets.scrubber import scrub
from engine.times import duration_seconds, duration_text, in_words, parse_duration

_NUMBERS = ("rows_in", "rows_out", "late", "duplicates", "quarantined", "state_rows")
_MOST_TEXT = 200


def last_run_text(target_dir: Path, node: str) -> str:
    """Return how the last run of a node ended, one line; empty if it is not known."""
    run = last_run(target_dir).nodes.get(node)
    if run is None:
        return ""
    numbers = [f"{name.replace('_', ' ')} {run.numbers[name]:,.0f}" for name in _NUMBERS if name in run.numbers]
    watermark = [f"watermark {run.watermark:%Y-%m-%d %H:%M:%S}"] if run.watermark else []
    details = ", ".join([*numbers, *watermark])
    return scrub(f"Last run: {run.status[:_MOST_TEXT]}" + (f" ({details})" if details else ""))


# So many columns are shown.
_SHOWN = 40
_LETTERS = f"{string.ascii_letters}{string.digits}_"
_ALIAS = re.compile(r"\bas\s+$", re.IGNORECASE)
_ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)


def hover(opened: OpenProject, file: str, position: types.Position) -> types.Hover | None:
    """Describe what is at a place; None if there is nothing to say."""
    text = opened.text(file)
    place = location_of_position(position, text, file)
    text_or_word = _described(opened, file, text, place)
    if text_or_word is None or not text_or_word[0]:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text_or_word[0]), text_or_word[1])


def _described(opened: OpenProject, file: str, text: str, place: Location) -> tuple[str, types.Range | None] | None:
    model = opened.model_of(file)
    kind = segment_at(text, offset_of(place, text)).kind
    if model is not None and kind is TextKind.HEADER:
        return _in_header(opened, model, text, place), None
    if (node := node_at(opened, file, place)) is not None:
        return node_text(opened, node), None
    word = range_word(text.split("\n")[place.line - 1], place.column - 1)
    if model is not None and kind is TextKind.JINJA:
        macro = next((one for one in opened.manifest.macros if one.name == word), None)
        return (_macro_text(macro), None) if macro else None
    return _in_query(opened, file, place, word) if model is not None and kind is TextKind.SQL else None


def _in_query(opened: OpenProject, file: str, place: Location, word: str) -> tuple[str, types.Range | None] | None:
    text = opened.text(file)
    if (name := name_at(opened, file, place)) is not None:
        return column_text(opened, name), range_at(name.start, text, len(name.text))
    if (output := output_at(opened, file, place, word)) is not None:
        return _output_text(output), None
    called = text[offset_of(place, text) :].lstrip(_LETTERS).lstrip().startswith("(")
    signature = signatures().get(word.lower()) if called else None
    return (f"```sql\n{signature}\n```\n\nfunction of Spark", None) if signature else None


def output_at(opened: OpenProject, file: str, place: Location, word: str) -> Column | None:
    """Return the column of the query that an alias at a place names, or an ORDER BY at the query's end."""
    edited, text = opened.analysed(file), opened.text(file)
    if edited is None or not edited.outputs:
        return None
    begin = len(text[: offset_of(place, text)].rstrip(_LETTERS))
    starts = [offset_of(start, text) for start in edited.outputs]
    for column, start, end in zip(edited.model.columns, starts, [*starts[1:], len(text)], strict=False):
        if column.name.lower() == word.lower() and start < begin < end and _ALIAS.search(text[start:begin]):
            return column
    ordered = [match.end() for match in _ORDER.finditer(text, max(starts)) if match.end() <= begin]
    if ordered and ")" not in text[ordered[-1] : begin]:
        return next((one for one in edited.model.columns if one.name.lower() == word.lower()), None)
    return None


def _in_header(opened: OpenProject, model: Model, text: str, place: Location) -> str:
    match = header_place(text, place)
    text_or_word: HeaderWord | None = meaning(opened, model, *match) if match else None
    if text_or_word is None:
        return ""
    if text_or_word.key is not None:
        return _key_text(text_or_word.key)
    if text_or_word.node:
        return node_text(opened, text_or_word.node)
    if text_or_word.window:
        return window_text(text_or_word.window, model)
    return _known_text(text_or_word.column) if text_or_word.column else ""


def node_text(opened: OpenProject, node_id: str) -> str:
    node = opened.manifest.nodes.get(node_id)
    if not isinstance(node, Model | Source):
        return ""
    kind = f"{node.materialized} model" if isinstance(node, Model) else f"{node.spec.format} source"
    parts = [f"**{node.name}** ({kind})", node.description]
    columns = columns_of(opened, node_id)
    if columns:
        parts.append("```\n" + "\n".join(f"{c.name}: {c.type or 'unknown'}" for c in columns[:_SHOWN]) + "\n```")
    if isinstance(node, Model):
        parts += [window_text(name, node) for name in node.windows]
        parts.append(last_run_text(opened.project.target_dir, node.id))
    return "\n\n".join(filter(None, parts))


def window_text(name: str, model: Model) -> str:
    window = model.windows[name]
    delays = [item.watermark.delay for item in model.inputs if item.watermark]
    size, delay = _seconds(window.size), max((_seconds(one) or 0 for one in delays), default=None)
    slide = f", one every {in_words(window.slide)}" if window.slide else ""
    text = f"Window `{name}`: {window.kind} over `{window.time}`, {in_words(window.size)}{slide}"
    if delay is None or size is None or window.varies:
        return text
    if window.kind == "session":
        return f"{text} without a row end it; it is emitted when the watermark passes that: {in_words(delays[0])} later"
    return f"{text}; it closes {duration_text(size + delay)} after its start ({duration_text(delay)} for late rows)"


def _seconds(text: str) -> float | None:
    parsed = parse_duration(text)
    return duration_seconds(parsed) if parsed else None


def column_text(opened: OpenProject, name: NamePlace) -> str:
    """Describe a column that the SQL names: its type, and the columns that its values come from."""
    lines = [f"```sql\n{name.text} {name.type or 'unknown type'}\n```"]
    return "\n\n".join([*lines, *(_origin_text(opened, *origin) for origin in name.origins)])


def _origin_text(opened: OpenProject, node: str, column: str) -> str:
    described_column = next((one for one in columns_of(opened, node) if one.name.lower() == column.lower()), None)
    text_or_word = f": {described_column.description}" if described_column and described_column.description else ""
    return f"from `{node.split('.', 1)[-1]}.{column}`{text_or_word}"


def _output_text(column: Column) -> str:
    lines = [f"```sql\n{column.name} {column.type or 'unknown type'}\n```", column.description]
    lines += [f"from `{origin.node.split('.', 1)[-1]}.{origin.column}`" for origin in column.origins]
    return "\n\n".join(filter(None, lines))


def _known_text(column: KnownColumn) -> str:
    head = f"```sql\n{column.name} {column.type or 'unknown type'}\n```"
    where = f"of `{column.node.split('.', 1)[-1]}`" if column.node else ""
    return "\n\n".join(filter(None, [head, column.description, where]))


def _macro_text(macro: Macro) -> str:
    return f"```jinja\n{macro.name}({', '.join(macro.arguments)})\n```\n\n{macro.description}\n\n{macro.file}"


def _key_text(key: ConfigKey) -> str:
    choices = f"\n\nOne of: {', '.join(f'`{one}`' for one in key.choices)}" if key.choices else ""
    return f"`{key.name}` ({key.form}; default: {key.default})\n\n{key.meaning}{choices}\n\n```yaml\n{key.example}\n```"
