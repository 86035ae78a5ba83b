"""The Avro schema file that a source names: read with the project, so that columns are known without a registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from posixpath import normpath

from engine.errors import Diagnostic, Level, ProjectError, near
from engine.project import LoadedProject
from engine.project.yaml_section import Section
from engine.sources import SourceSpec


def with_schema_file(project: LoadedProject, spec: SourceSpec, chosen: Mapping[str, Section]) -> SourceSpec:
    """The source with the text of its schema file; what is wrong with the file is reported."""
    value, section = spec.settings.get("value"), chosen.get("value")
    if not isinstance(value, dict) or value.get("format") != "avro" or section is None:
        return spec
    # Loaded where a project has Avro: it takes some 40 ms.
    from engine.sources import avro

    named = section.child(avro.SCHEMA_FILE)
    if named is None:
        if not spec.schema and value.get("schema_registry"):
            _warn(section, spec.name)
        return spec
    text = _text(project, named)
    return replace(spec, settings={**spec.settings, "value": {**value, avro.SCHEMA_TEXT: text}}) if text else spec


def _text(project: LoadedProject, named: Section) -> str | None:
    """The schema in its one form, so that a space or a comment changes no fingerprint."""
    if not isinstance(named.value, str) or not named.value:
        return None
    from engine.sources import avro

    beside = normpath(PurePosixPath(named.doc.file).parent / named.value)
    shown = next((name for name in (beside, normpath(named.value)) if name in project.texts), None)
    if shown is None:
        schemas = [name for name in project.texts if name.endswith(avro.SUFFIX)]
        hint = near(named.value, schemas) or f"Put it in the folder {project.paths['sources']}/, beside this file."
        named.report("file-unreadable", f"schema file '{named.value}' not found", hint)
        return None
    try:
        return avro.one_text(project.texts[shown], shown)
    except ProjectError as error:
        named.found.append(replace(error.diagnostic, node=named.node))
        return None


def _warn(section: Section, name: str) -> None:
    message = f"the columns of '{name}' are known to the schema registry only"
    hint = (
        f"They are checked before the first batch. 'engine source inspect {name}' prints a declaration that has them."
    )
    section.found.append(
        Diagnostic("unknown-columns", message, hint, level=Level.WARNING, node=section.node, location=section.place)
    )
