"""Where a model's settings come from: folder defaults (`+key` in `models:` of project.yml), the header, config().

The project's own name is accepted as the first level of the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from engine.compile.nodes.acknowledged_warnings import KEY as ACKNOWLEDGE
from engine.errors import Diagnostic, Location, near
from engine.project import LoadedProject, ModelFile
from engine.project.model_header import location_of
from engine.project.parse_yaml import Path, Yaml
from engine.project.yaml_section import Section
from engine.schema.model_keys import MODEL

_MERGE = "'unique_key' makes the write a MERGE; 'sequence_by' decides which row is newer."


_STREAM = "It belongs to an input: streams: {flights: {%s: ...}}."


_HOOKS = "Write '%s', with an underscore."


HABITS = {
    "incremental_strategy": _MERGE,
    "incremental_predicates": _MERGE,
    "merge_update_columns": "A newer row replaces the whole row of its key; 'exclude' keeps columns out of the table.",
    "merge_exclude_columns": "'exclude' keeps columns out of the table.",
    "strategy": "Write 'history: true' and 'unique_key', with 'sequence_by: updated_at' or 'check: all'.",
    "updated_at": "Write 'sequence_by: updated_at', with a 'unique_key'.",
    "check_cols": "Write 'check: [name, city]' or 'check: all', with 'history: true' and a 'unique_key'.",
    "invalidate_hard_deletes": "Write 'deletes: close', with 'history: true'.",
    "hard_deletes": "Write 'deletes: close' or 'deletes: ignore', with 'history: true'.",
    "on_configuration_change": "Changes of a query are checked before each build; 'on_schema_change' is for columns.",
    "pre-hook": _HOOKS % "pre_hook",
    "post-hook": _HOOKS % "post_hook",
    "file_format": "Every table is an Iceberg table; 'format_version' is 2 or 3.",
    "tblproperties": "Write 'table_properties'.",
    "database": "The catalog is set in the target, in project.yml.",
    "location_root": "The target's catalog decides where tables are stored.",
    "clustered_by": "Write 'partition_by: \"bucket(16, id)\"'.",
    "buckets": "Write 'partition_by: \"bucket(16, id)\"'.",
    "cluster_by": "Write 'sort_by'.",
    "liquid_clustered_by": "Write 'sort_by'.",
    "watermark": _STREAM % "watermark",
    "dedup": _STREAM % "dedup",
    "max_files_per_trigger": _STREAM % "max_files_per_trigger",
    "on_upstream_delete": _STREAM % "on_upstream_delete",
    "on_bad_record": _STREAM % "on_bad_record",
    "event_time": _STREAM % "watermark",
    "batch_size": "A stream reads only new data; to limit a micro-batch write 'max_files_per_trigger' for the stream.",
    "lookback": "The stream's watermark sets how late rows may be: streams: {flights: {watermark: scheduled_at "
                "delay 30 minutes}}.",
    "checkpoint_location": "Checkpoints are managed for you, in the target's 'state' folder.",
    "on_fail": "It belongs to an expectation.",
}  # fmt: skip


_CONFIG = re.compile(r"\bconfig\s*\(")
_ADDING = {"tags", "meta"}


def folder_layers(project: LoadedProject, model: ModelFile, diagnostics: list[Diagnostic]) -> list[Section]:
    """The defaults for the model's folders, outermost first, with the plus taken off the keys."""
    top = Section.of_document(project.doc, diagnostics).child("models")
    if top is None or not isinstance(top.value, dict):
        return []
    chains = [[level] for level in (top, _project_level(project, top)) if level is not None]
    for chain in chains:
        for name in model.folders:
            inner = chain[-1].child(name)
            if inner is None or not isinstance(inner.value, dict):
                break
            chain.append(inner)
    depth = max(len(chain) for chain in chains)
    return [_without_plus(chain[i]) for i in range(depth) for chain in chains if i < len(chain)]


def _project_level(project: LoadedProject, top: Section) -> Section | None:
    """`models: {flights: ...}` in the project flights, unless a folder is called so."""
    if any(model.folders[:1] == (project.name,) for model in project.models):
        return None
    level = top.child(project.name)
    return level if level is not None and isinstance(level.value, dict) else None


def _without_plus(level: Section) -> Section:
    keys = {key[1:]: value for key, value in level.value.items() if key.startswith("+")}

    def moved(places: dict[Path, Any]) -> dict[Path, Any]:
        depth = len(level.path)
        return {
            (*path[:depth], str(path[depth])[1:], *path[depth + 1 :]): place
            for path, place in places.items()
            if len(path) > depth and path[:depth] == level.path and str(path[depth]).startswith("+")
        }

    doc = Yaml(
        level.doc.data,
        level.doc.file,
        moved(dict(level.doc.values)),
        moved(dict(level.doc.keys)),
        moved(dict(level.doc.written)),
        level.place,
    )
    return Section(doc, level.path, keys, level.diagnostics)


def call_layers(model: ModelFile, calls: list[dict[str, Any]], diagnostics: list[Diagnostic]) -> list[Section]:
    """The config() calls of a model, with the places of their keys as well as they can be found."""
    places = [match.start() for match in _CONFIG.finditer(model.sql)] or [0]
    layers = []
    for index, call in enumerate(calls):
        start = places[index] if len(places) == len(calls) else places[0]
        origin = location_of(model.sql, start, model.file)
        keys: dict[Path, Location] = {}
        values: dict[Path, Location] = {}
        for key in call:
            match = re.compile(rf"\b({re.escape(key)})\s*=\s*").search(model.sql, start)
            if match:
                keys[(key,)] = location_of(model.sql, match.start(), model.file)
                values[(key,)] = location_of(model.sql, match.end(), model.file)
        layers.append(Section.of_document(Yaml(call, model.file, values, keys, origin=origin), diagnostics, model.name))
    return layers


def check_own(layers: list[Section]) -> None:
    first_by_key: dict[str, Section] = {}
    for key, section in _pairs(layers):
        check_key(section, key)
        first = first_by_key.setdefault(key, section)
        if first.value != section.value and key not in _ADDING:
            section.report(
                "config-conflict",
                f"'{key}' is set twice to different values (also in line {first.key_place.line})",
                "Keep it in the header or in config(), not in both.",
                at_key=True,
            )


def check_key(section: Section, key: str) -> None:
    if key not in MODEL.names:
        hint = HABITS.get(key) or near(key, MODEL.names)
        section.report("unknown-key", f"a model has no key '{key}'", hint, at_key=True)


def _pairs(layers: list[Section]) -> Iterator[tuple[str, Section]]:
    for layer in layers:
        yield from layer.mapping()


def check_folder_defaults(project: LoadedProject, diagnostics: list[Diagnostic]) -> None:
    """Check the `models:` tree of project.yml: `+key` is a known key, all else a folder that exists."""
    top = Section.of_document(project.doc, diagnostics).child("models")
    if top is None:
        return
    folders = {model.folders[:depth] for model in project.models for depth in range(1, len(model.folders) + 1)}
    own_level = _project_level(project, top)

    def walk(level: Section, path: tuple[str, ...]) -> None:
        for key, section in level.mapping():
            if key == f"+{ACKNOWLEDGE}":
                message = "'acknowledge' is not a default of folders"
                hint = "Write it in the header of the model that has the warning."
                section.report("unknown-key", message, hint, at_key=True)
            elif key.startswith("+"):
                check_key(section, key[1:])
            elif own_level is not None and section.path == own_level.path:
                walk(section, path)
            elif (*path, key) in folders:
                walk(section, (*path, key))
            else:
                _no_folder(section, key, [f[len(path)] for f in folders if _below(f, path)])

    walk(top, ())


def _below(folder: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return len(folder) > len(path) and folder[: len(path)] == path


def _no_folder(section: Section, key: str, names: list[str]) -> None:
    if key in MODEL.names:
        section.report("unknown-key", f"'{key}' needs a + prefix here", f"Write '+{key}:'.", at_key=True)
        return
    hint = near(key, names) or f"Write +{key} for a setting; keys without + are folders under models/."
    section.report("unknown-key", f"models/ has no folder '{key}'", hint, at_key=True)
