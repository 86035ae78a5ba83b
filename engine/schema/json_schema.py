"""JSON Schemas (draft 7) of the files of a project, for editors: completion, help and errors while one types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from engine.schema.all_blocks import BLOCKS, ConfigFile
from engine.schema.config_key import ConfigBlock, ConfigKey, ValueForm
from engine.schema.format_keys import FORMATS, READER_KEYS
from engine.schema.model_keys import FOLDER, MODEL
from engine.schema.source_keys import READING, SOURCE_TABLE

Fragment = dict[str, Any]

_TEXT: Final = {"type": ["string", "number"]}
_PLAIN: Final = {"type": ["string", "number", "boolean", "null"]}
_NULL: Final = {"type": "null"}
# A value may be Jinja wherever it is rendered.
_JINJA: Final = {"type": "string", "pattern": r"\{\{"}
_SINGLE: Final[Mapping[ValueForm, tuple[Fragment, ...]]] = {
    ValueForm.TEXT: (_TEXT,),
    ValueForm.TEXTS: (_TEXT,),
    ValueForm.SQL: (_TEXT,),
    ValueForm.PATH: (_TEXT,),
    ValueForm.TIME: (_TEXT,),
    ValueForm.NAME: ({"type": "string", "pattern": r"^[a-z_][a-z0-9_]*$|\{\{"},),
    ValueForm.DURATION: ({"type": "string", "pattern": r"[0-9] *[A-Za-z]|\{\{"},),
    ValueForm.INTEGER: ({"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^[0-9]+$|\{\{"}),
    ValueForm.COUNT: ({"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^[0-9]+$|\{\{"}),
    ValueForm.BOOLEAN: ({"type": "boolean"}, {"type": "string", "pattern": r"^([Tt]rue|[Ff]alse|TRUE|FALSE)$|\{\{"}),
    ValueForm.MAPPING: ({"type": "object", "additionalProperties": _PLAIN},),
    ValueForm.VALUES: ({"type": "object"},),
    ValueForm.ROWS: (_TEXT,),
    ValueForm.TESTS: ({"type": "string"},),
}
_LISTED: Final[Mapping[ValueForm, tuple[Fragment, ...]]] = {
    ValueForm.TEXTS: (_TEXT,),
    ValueForm.ROWS: ({"type": "object"},),
    ValueForm.TESTS: ({"type": "string"},),
}
# What a TREE of definitions may be: one, or a list.
_NESTED: Final = "definition"


def json_schema(file: ConfigFile) -> str:
    first, *_ = file.blocks
    used_blocks = _used_blocks(first)
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"Headrace: {first.title}",
        **_ref(first.name),
        "definitions": {block.name: _block(block) for block in used_blocks},
    }
    # A reference hides what is beside it in this draft.
    schema["allOf"] = [{"$ref": schema.pop("$ref")}]
    return json.dumps(schema, indent=1) + "\n"


def _used_blocks(first: ConfigBlock) -> list[ConfigBlock]:
    """A block and all that it leads to."""
    fragments: dict[str, ConfigBlock] = {}
    waiting = [first]
    while waiting:
        block = waiting.pop(0)
        if block.name not in fragments:
            fragments[block.name] = block
            waiting += [BLOCKS[key.block] for key in _keys(block) if key.block]
    return list(fragments.values())


def _keys(block: ConfigBlock) -> tuple[ConfigKey, ...]:
    """The keys of a block; those of every format for what is read by a format, those of a header for a folder."""
    if block in (SOURCE_TABLE, READING):
        known_keys = {key.name: key for form in (*FORMATS.values(), READER_KEYS) for key in form.keys}
        return (*block.keys, *(key for name, key in known_keys.items() if name not in block.names))
    return MODEL.keys if block == FOLDER else block.keys


def _block(block: ConfigBlock) -> Fragment:
    if block == FOLDER:
        return _folder()
    keys = _keys(block)
    fragment: Fragment = {
        "type": "object",
        "description": _plain_text(block.text),
        "properties": {key.name: False if key.later else _value(key) for key in keys},
    }
    if required := [key.name for key in block.keys if key.required]:
        fragment["required"] = required
    if block in (SOURCE_TABLE, READING):
        fragment |= _by_format(keys)
        return fragment if block == READING else {**fragment, "allOf": list(_keys_of_one_format(block))}
    if not block.open:
        fragment["additionalProperties"] = False
    return fragment


def _folder() -> Fragment:
    """Folder defaults: keys with a plus; others are folders below."""
    properties = {f"+{key.name}": _value(key) for key in MODEL.keys if key.name != "acknowledge"}
    return {
        "type": "object",
        "description": _plain_text(FOLDER.text),
        "properties": properties,
        "propertyNames": {"anyOf": [{"enum": list(properties)}, {"pattern": r"^[^+]"}]},
        "additionalProperties": {"anyOf": [_ref(FOLDER.name), _NULL]},
    }


def _by_format(keys: Iterable[ConfigKey]) -> Fragment:
    """Formats of other packages have keys that are not known here."""
    known_keys = {"anyOf": [{"enum": list(FORMATS)}, {"pattern": r"^spark\.|\{\{"}]}
    return {
        "if": {"properties": {"format": known_keys}},
        "then": {"propertyNames": {"enum": [key.name for key in keys]}},
    }


def _keys_of_one_format(block: ConfigBlock) -> Iterator[Fragment]:
    """A table whose format no target changes takes the keys of that format alone."""
    same_for_all_targets = {"required": ["format"], "not": {"required": ["targets"]}}
    conditions_by_block: dict[str, Fragment] = {READER_KEYS.name: {"type": "string", "pattern": r"^spark\."}}
    for own in FORMATS.values():
        conditions_by_block[own.name] = {"enum": [name for name, form in FORMATS.items() if form.name == own.name]}
    for own_name, chosen_block in conditions_by_block.items():
        known_keys = [key.name for key in (*block.keys, *BLOCKS[own_name].keys)]
        yield {
            "if": {"properties": {"format": chosen_block}, **same_for_all_targets},
            "then": {"propertyNames": {"enum": known_keys}},
        }


def _value(key: ConfigKey) -> Fragment:
    """What a key takes; nothing at all counts as the key left out."""
    forms = (key.form, *key.also)
    if key.choices:
        numbers = [int(choice) for choice in key.choices if choice.isdecimal()]
        numbers += [choice == "true" for choice in key.choices if choice in {"true", "false"}]
        fragments: list[Fragment] = [{"enum": [*key.choices, *numbers]}, _JINJA]
        if key.form is ValueForm.TEXTS:
            fragments.append({"type": "array", "items": _any(list(fragments))})
    else:
        fragments = list(_single(key, forms))
        if items := list(_items(key, forms)):
            fragments.append({"type": "array", "items": _any(items)})
    return {**_any([*fragments, *([] if key.required else [_NULL])]), "description": _help(key)}


def _single(key: ConfigKey, forms: tuple[ValueForm, ...]) -> Iterator[Fragment]:
    for form in forms:
        if form is ValueForm.BLOCK or (form is ValueForm.TREE and key.block):
            yield from _in_place(key)
        elif form is ValueForm.BY_NAME:
            yield _named_schema(key)
        elif form is ValueForm.TREE:
            yield {}
        else:
            yield from _SINGLE.get(form, ())


def _items(key: ConfigKey, forms: tuple[ValueForm, ...]) -> Iterator[Fragment]:
    for form in forms:
        if form is ValueForm.BLOCKS or (form is ValueForm.TREE and key.block == _NESTED):
            yield from _in_place(key)
        elif form is ValueForm.BY_NAME and ValueForm.TEXTS in forms:
            yield _named_schema(key)
        else:
            yield from _LISTED.get(form, ())
        if form is ValueForm.TESTS:
            arguments = _any([_ref(key.block), _NULL])
            yield {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": arguments}


def _in_place(key: ConfigKey) -> Iterator[Fragment]:
    """A block, or what may be written in its place."""
    yield _ref(key.block)
    for form in BLOCKS[key.block].plain:
        yield from _SINGLE[form]


def _named_schema(key: ConfigKey) -> Fragment:
    return {"type": "object", "additionalProperties": _any([*_in_place(key), _NULL])}


def _any(fragments: list[Fragment]) -> Fragment:
    return fragments[0] if len(fragments) == 1 else {"anyOf": fragments}


def _ref(name: str) -> Fragment:
    return {"$ref": f"#/definitions/{name}"}


def _help(key: ConfigKey) -> str:
    return f"{_plain_text(key.meaning)}. Default: {_plain_text(key.default)}. Example: {key.example}"


def _plain_text(text: str) -> str:
    return text.replace("`", "")
