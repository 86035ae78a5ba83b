"""Whether a rename leaves everything else as it is: the project is compiled with it and compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from msgspec import Struct

from engine.compile import Compiled, Model, Source
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.compile.sql.lexer.lexemes import Kind, lexemes
from engine.errors import EngineError
from engine.lsp.edits.header_edits import ProjectChange, changed_texts
from engine.lsp.names.named_places import Name, NameKind
from engine.lsp.opened.open_project import OpenProject

# A name that no project has: with it, nothing else can be meant by chance.
_FRESH = "renamed_to_check_q7"
# What follows from texts and places in files, and changes with them.
_DERIVED = {"raw_sql", "positions", "location", "fingerprint", "slots", "facts", "renamed_from", "text"}
_STRINGS = {Kind.STRING, Kind.RAW_STRING}
_HASH = re.compile(r"\.[0-9a-f]{10}\b")
_SAME_ALIAS = re.compile(r"\b(\w+)\s+as\s+\1(?!\w)")

Changed = Callable[[str], ProjectChange]


def reason_against(opened: OpenProject, name: Name, new: str, changed: Changed) -> str:
    """Return why a rename would change meaning; empty: it would not.

    The project is compiled with a name that it does not have anywhere, which shows whether all places of the name were
    found, and with the new one, which shows whether that means something else somewhere.
    """
    before = opened.compiled
    if before is None:
        return "the project was not compiled"
    if any(_FRESH in opened.text(file) for file in opened.files()):
        return f"the project uses '{_FRESH}', which renaming needs"
    try:
        fresh = _compiled(opened, changed(_FRESH))
        after = _compiled(opened, changed(new))
    except EngineError as error:
        return str(error)
    for one in (fresh, after):
        if one.manifest.errors:
            first = one.manifest.errors[0]
            place = f"{first.location}: " if first.location else ""
            return f"{place}{first.message} [{first.code}]".replace(_FRESH, new)
    reason = _in_text(fresh) or _other_names(before, fresh, name) or _difference(before, fresh, {_FRESH: name.name})
    reason = reason or _difference(fresh, after, {}, {_FRESH: new}) or _new_warning(before, after)
    return reason.replace(_FRESH, new)


def _compiled(opened: OpenProject, change: ProjectChange) -> Compiled:
    return opened.compiled_with(changed_texts(opened, change.changes), dict(change.moved))


def _in_text(fresh: Compiled) -> str:
    for node_id, node in fresh.manifest.nodes.items():
        sql = getattr(node, "sql", "")
        if _FRESH in sql and any(_FRESH in sql[begin:end] for kind, begin, end in lexemes(sql) if kind in _STRINGS):
            return f"a text in the query of '{node_id.partition('.')[2]}' would change"
    return ""


def _new_warning(before: Compiled, after: Compiled) -> str:
    earlier = [one.code for one in before.manifest.diagnostics]
    for one in after.manifest.diagnostics:
        if one.code not in earlier:
            return f"{one.location}: {one.message} [{one.code}]"
        earlier.remove(one.code)
    return ""


def _other_names(before: Compiled, fresh: Compiled, name: Name) -> str:
    """Which other name would change, or that this one would not."""
    if name.kind is NameKind.WINDOW:
        owner = next((model.name for model in before.manifest.models if model.file == name.owner), "")
        name = replace(name, owner=owner)
    expected_names, names = {_moved(one, name) for one in declared_names(before)}, set(declared_names(fresh))
    if expected_names == names:
        return ""
    other = next(iter(sorted(map(str, expected_names - names)) or sorted(map(str, names - expected_names))))
    return f"{other} would get another name, too"


def _moved(one: Name, name: Name) -> Name:
    if one == name:
        return replace(one, name=_FRESH)
    kind, owner = one.kind, one.owner
    if name.kind is NameKind.MODEL and owner in {f"model.{name.name}", name.name} and kind is not NameKind.TABLE:
        return replace(one, owner=owner.replace(name.name, _FRESH))
    if name.kind is NameKind.SOURCE and kind is NameKind.TABLE and owner == name.name:
        return replace(one, owner=_FRESH)
    if kind is NameKind.COLUMN and owner.startswith("source."):
        _, source, table = owner.split(".", 2)
        if name == Name(NameKind.SOURCE, source):
            return replace(one, owner=f"source.{_FRESH}.{table}")
        if name == Name(NameKind.TABLE, table, source):
            return replace(one, owner=f"source.{source}.{_FRESH}")
    return one


def declared_names(compiled: Compiled) -> Iterator[Name]:
    manifest = compiled.manifest
    for macro in manifest.macros:
        test = macro.name.startswith("test_")
        yield Name(NameKind.TEST_KIND if test else NameKind.MACRO, macro.name.removeprefix("test_"))
    for variable in compiled.project.vars:
        yield Name(NameKind.VARIABLE, variable)
    for node in manifest.nodes.values():
        if isinstance(node, Model | Source):
            yield from (Name(NameKind.COLUMN, column.name.lower(), node.id) for column in node.columns)
        if isinstance(node, Model):
            yield Name(NameKind.MODEL, node.name)
            yield from (Name(NameKind.WINDOW, window, node.name) for window in node.windows)
            yield from (Name(NameKind.EXPECTATION, one.name, node.name) for one in node.expectations)
        elif isinstance(node, Source):
            yield Name(NameKind.TABLE, node.table, node.source)
            yield Name(NameKind.SOURCE, node.source)
        elif isinstance(node, UnitTest):
            yield Name(NameKind.TEST, node.name, node.model.removeprefix("model."))


def _difference(
    before: Compiled, after: Compiled, back: Mapping[str, str], forward: Mapping[str, str] | None = None
) -> str:
    """Return what would change but the name, read by `forward` and `back`; empty: nothing would."""
    ours, theirs = plain_nodes(before, forward or {}), plain_nodes(after, back)
    if ours == theirs:
        return ""
    for key in (*ours, *theirs):
        if ours.get(key) != theirs.get(key):
            parts = [one for one in ours.get(key, {}) if ours[key][one] != theirs.get(key, {}).get(one)]
            parts_text = f" ({', '.join(sorted(parts))})" if parts else ""
            return f"'{key.partition(' ')[0]}' would change{parts_text}"
    return ""


def plain_nodes(compiled: Compiled, names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    def text(value: str) -> str:
        value = value.lower().replace("`", "")
        for old, new in names.items():
            value = value.replace(old, new.lower())
        return _SAME_ALIAS.sub(r"\1", _HASH.sub("", value))

    def plain_json(value: Any) -> Any:
        if isinstance(value, str) and not isinstance(value, Enum):
            return text(value)
        if is_dataclass(value):
            return {one.name: plain_json(getattr(value, one.name)) for one in fields(value) if one.name not in _DERIVED}
        if isinstance(value, Struct):
            return {one: plain_json(getattr(value, one)) for one in value.__struct_fields__ if one not in _DERIVED}
        if isinstance(value, Mapping):
            return {text(str(key)): plain_json(inner) for key, inner in value.items()}
        return [plain_json(inner) for inner in value] if isinstance(value, (list, tuple)) else text(repr(value))

    records: dict[str, dict[str, Any]] = {}
    for node_id, node in compiled.manifest.nodes.items():
        key = text(node_id)
        number = sum(other.partition(" ")[0] == key for other in records) if key in records else 0
        records[f"{key} {number}" if number else key] = plain_json(node)
    return records


def table_reason(opened: OpenProject, model: Model) -> str | None:
    """Return why a table or the state of a model forbids a rename; None: nothing of it exists."""
    from engine.lake.catalog.catalog_settings import is_local
    from engine.lake.lake_reader import Lake

    if opened.compiled is None:
        return "the project was not compiled"
    catalog, relation = opened.compiled.target.catalog, model.relation
    if not is_local(catalog):
        return f"the table {relation} may exist on a server, which an editor does not ask"
    try:
        exists = Lake(catalog).table(relation.schema, relation.name) is not None
    except EngineError as error:
        return f"the table {relation} cannot be read: {error}"
    return f"the table {relation} exists and has the name" if exists else None
