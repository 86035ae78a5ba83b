"""What an editor asks beside diagnostics, answered from what was compiled last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lsprotocol import types

from engine.compile import Model, Source
from engine.compile.nodes.manifest import Column
from engine.compile.pipeline.edited_model import EditedModel, NamePlace
from engine.errors import Location
from engine.lsp.last_runs import last_run
from engine.lsp.open_project import OpenProject
from engine.lsp.text_positions import location_of_position, range_at
from engine.schema.all_blocks import BLOCKS

# So many columns, and characters of a type, are shown.
_SHOWN = 40


def hover(opened: OpenProject, file: str, position: types.Position) -> types.Hover | None:
    """Describe the column, model, source or key of the header at a place; None if there is nothing to say."""
    text = opened.text(file)
    place = location_of_position(position, text, file)
    if (name := name_at(opened, file, place)) is not None:
        return _hover(_column_text(opened, name), range_at(name.start, text, len(name.text)))
    if (node := node_at(opened, file, place)) is not None:
        return _hover(node_text(opened, node), None)
    return _key_hover(opened, file, place)


def definition(opened: OpenProject, file: str, position: types.Position) -> list[types.Location]:
    """Return where the column, model or source at a place is defined."""
    place = location_of_position(position, opened.text(file), file)
    if (name := name_at(opened, file, place)) is not None:
        return [found for origin in name.origins for found in _column_place(opened, *origin)]
    node = node_at(opened, file, place)
    return [] if node is None else _node_place(opened, node)


def references(opened: OpenProject, file: str, position: types.Position) -> list[types.Location]:
    """Return where models name the model or source at a place; in a model that nothing else is named at: that model."""
    place = location_of_position(position, opened.text(file), file)
    own = opened.model_of(file)
    node = node_at(opened, file, place) or (own.id if own else None)
    if node is None:
        return []
    found = []
    for model in opened.manifest.models:
        if node in model.depends_on:
            edited = analysed(opened, model.file)
            text = opened.text(model.file)
            for read, start in edited.reads if edited else ():
                if read == node:
                    found.append(types.Location(_uri(opened, model.file), range_at(start, text)))
    return found


def name_at(opened: OpenProject, file: str, place: Location) -> NamePlace | None:
    """Return the column's name at a place of a model's SQL."""
    edited = analysed(opened, file)
    for name in edited.names if edited else ():
        begin = name.start
        if begin.line == place.line and begin.column <= place.column <= begin.column + len(name.text):
            return name
    return None


def node_at(opened: OpenProject, file: str, place: Location) -> str | None:
    """Return the id of the model or source that a word names: in ref(), source() or the header."""
    edited = analysed(opened, file)
    lines = opened.text(file).split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    for read, start in edited.reads if edited else ():
        end = line.find("}}", start.column - 1) + 2
        if start.line == place.line and start.column <= place.column <= max(end, start.column):
            return read
    word = range_word(line, place.column - 1)
    return next((i for i in (f"model.{word}", f"source.{word}") if word and i in opened.manifest.nodes), None)


def range_word(line: str, at: int) -> str:
    """Return the word, with dots, around a character of a line."""
    begin = end = min(at, len(line))
    while begin and (line[begin - 1].isalnum() or line[begin - 1] in "_."):
        begin -= 1
    while end < len(line) and (line[end].isalnum() or line[end] in "_."):
        end += 1
    return line[begin:end]


def analysed(opened: OpenProject, file: str) -> EditedModel | None:
    """Return what is known of a model's text; one that was compiled with the project is compiled on its own now."""
    if file not in opened.edited and opened.model_of(file) is not None:
        opened.analyse(file)
    return opened.edited.get(file)


def columns_of(opened: OpenProject, node: str) -> tuple[Column, ...]:
    """Return the columns of a model or source, as they were compiled last."""
    found = opened.manifest.nodes.get(node)
    if isinstance(found, Model) and found.file in opened.edited:
        found = opened.edited[found.file].model
    return found.columns if isinstance(found, Model | Source) else ()


def symbols(opened: OpenProject, file: str) -> list[types.DocumentSymbol]:
    """Return the model of a file with its columns."""
    edited, text = analysed(opened, file), opened.text(file)
    if edited is None:
        return []
    lines = text.split("\n")
    whole = types.Range(types.Position(0, 0), types.Position(len(lines) - 1, len(lines[-1])))
    columns = []
    for column, start in zip(edited.model.columns, edited.outputs, strict=False):
        place = range_at(start, text)
        columns.append(types.DocumentSymbol(column.name, types.SymbolKind.Field, place, place, column.type or ""))
    head = types.Range(types.Position(0, 0), types.Position(0, 0))
    kind = str(edited.model.materialized)
    return [types.DocumentSymbol(edited.model.name, types.SymbolKind.Class, whole, head, kind, children=columns)]


def inlay_hints(opened: OpenProject, file: str) -> list[types.InlayHint]:
    """Return the types of the output columns, at the beginning of each."""
    edited, text = analysed(opened, file), opened.text(file)
    pairs = zip(edited.model.columns, edited.outputs, strict=False) if edited else ()
    return [
        types.InlayHint(range_at(start, text).start, f"{column.type} ", types.InlayHintKind.Type)
        for column, start in pairs
        if column.type and len(column.type) < _SHOWN
    ]


def folding(opened: OpenProject, file: str) -> list[types.FoldingRange]:
    """Return the header as a range that folds."""
    lines = opened.text(file).split("\n")
    begin = next((i for i, line in enumerate(lines) if line.lstrip().startswith("/*---")), None)
    end = next((i for i, line in enumerate(lines) if line.rstrip().endswith("---*/")), None)
    return [types.FoldingRange(begin, end, kind=types.FoldingRangeKind.Comment)] if begin is not None and end else []


def node_text(opened: OpenProject, node_id: str) -> str:
    """Describe a model or source in Markdown: what it is, its columns, and how its last run ended."""
    node = opened.manifest.nodes.get(node_id)
    if not isinstance(node, Model | Source):
        return ""
    kind = f"{node.materialized} model" if isinstance(node, Model) else f"{node.spec.format} source"
    parts = [f"**{node.name}** ({kind})", node.description]
    columns = columns_of(opened, node_id)
    if columns:
        parts.append("```\n" + "\n".join(f"{c.name}: {c.type or 'unknown'}" for c in columns[:_SHOWN]) + "\n```")
    if isinstance(node, Model):
        parts += [_window_text(name, node) for name in node.windows]
        parts.append(last_run(opened.project.target_dir, node.id))
    return "\n\n".join(filter(None, parts))


def _window_text(name: str, model: Model) -> str:
    window = model.windows[name]
    delays = [item.watermark.delay for item in model.inputs if item.watermark]
    slide = f", every {window.slide}" if window.slide else ""
    closes = f"; emitted when an event arrives that is {delays[0]} past its end" if delays else ""
    return f"Window `{name}`: {window.kind}, {window.size}{slide}{closes}"


def _column_text(opened: OpenProject, name: NamePlace) -> str:
    lines = [f"```sql\n{name.text} {name.type or 'unknown type'}\n```"]
    for node, column in name.origins:
        known = next((one for one in columns_of(opened, node) if one.name.lower() == column.lower()), None)
        said = f": {known.description}" if known and known.description else ""
        lines.append(f"from `{node.split('.', 1)[-1]}.{column}`{said}")
    return "\n\n".join(lines)


def _key_hover(opened: OpenProject, file: str, place: Location) -> types.Hover | None:
    """The meaning of a key of a model's header."""
    lines = opened.text(file).split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if opened.model_of(file) is None or place.line > header_end(lines):
        return None
    word = range_word(line, place.column - 1).strip(".")
    model = opened.model_of(file)
    if model is not None and word in model.windows:
        return _hover(_window_text(word, model), None)
    blocks = ("model",) if line.startswith(word) else ("stream", "watermark", "expectation", "column", "model")
    keys = (key for name in blocks for key in BLOCKS[name].keys if key.name == word)
    key = next(keys, None)
    if key is None:
        return None
    return _hover(
        f"`{key.name}` ({key.form}; default: {key.default})\n\n{key.meaning}\n\n```yaml\n{key.example}\n```", None
    )


def header_end(lines: list[str]) -> int:
    """Return the number of the line that ends the header; 0 if there is none."""
    return next((number for number, line in enumerate(lines, 1) if line.rstrip().endswith("---*/")), 0)


def _hover(text: str, place: types.Range | None) -> types.Hover | None:
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), place) if text else None


def _uri(opened: OpenProject, file: str) -> str:
    return (opened.root / file).as_uri()


def _column_place(opened: OpenProject, node: str, column: str) -> Iterator[types.Location]:
    found = opened.manifest.nodes.get(node)
    if isinstance(found, Model):
        edited, text = analysed(opened, found.file), opened.text(found.file)
        outputs: Mapping[str, Location] = (
            {c.name.lower(): start for c, start in zip(edited.model.columns, edited.outputs, strict=False)}
            if edited
            else {}
        )
        start = outputs.get(column.split(".", maxsplit=1)[0].lower(), Location(found.file))
        yield types.Location(_uri(opened, found.file), range_at(start, text))
    elif isinstance(found, Source):
        yield from _node_place(opened, node)


def _node_place(opened: OpenProject, node: str) -> list[types.Location]:
    found = opened.manifest.nodes.get(node)
    if not isinstance(found, Model | Source):
        return []
    place = (found.location if isinstance(found, Source) else None) or Location(found.file)
    return [types.Location(_uri(opened, found.file), range_at(place, opened.text(found.file)))]
