"""Diagnostics of terms that match no node, with the nearest names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePosixPath

from engine.compile.artifacts.dbt_manifest import config_values
from engine.compile.nodes.manifest import DataTest, Manifest, Model, Source
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.errors import Diagnostic, Level, Location, near

TEST_TYPES = ("unit", "data", "generic", "singular")
# Methods that select by change, result or kind of node: matching no node is a valid result.
_MAY_BE_EMPTY = ("state:", "result:", "resource_type:", "test_type:")
_CODE = "selection-empty"


def may_be_empty(term: str) -> bool:
    """Whether a term that matches no node is an answer, and not a typing error."""
    return term.startswith(_MAY_BE_EMPTY)


def no_match(manifest: Manifest, term: str, level: Level, place: Location | None = None) -> Diagnostic:
    return _finding(f"the selection '{term}' matches nothing", _nearest(manifest, term), level, place)


def no_intersection(text: str, level: Level, place: Location | None = None) -> Diagnostic:
    hint = "A comma selects the intersection of its terms, a space the union." if "," in text else ""
    return _finding(f"the selection '{text}' matches nothing", hint, level, place)


def _finding(message: str, hint: str, level: Level, place: Location | None) -> Diagnostic:
    return Diagnostic(_CODE, message, hint, level, location=place)


def _nearest(manifest: Manifest, term: str) -> str:
    method, colon, value = term.partition(":")
    if not colon:
        return _near_name(manifest, term)
    candidates = _KNOWN.get(method, partial(_configured_values, method.removeprefix("config.")))
    names = {f"{method}:{name}" for name in candidates(manifest)}
    if not names:
        return f"Nothing in the project can be selected with '{method}:'."
    return near(f"{method}:{value}", names)


def _near_name(manifest: Manifest, text: str) -> str:
    if any(text in {source.name, source.source} for source in manifest.sources):
        return f"Sources are selected with source:{text}."
    if "/" in text:
        return near(text, _paths(manifest))
    if any(text in tags for tags in _tags(manifest)):
        return f"Tags are selected with tag:{text}."
    models = {model.name for model in manifest.models}
    other_names = {node.name for node in manifest.nodes.values() if not isinstance(node, Source)}
    close = near(text, models | other_names)
    # A list of what there is names models alone: there are many more tests.
    return close if close.startswith("Did") else near(text, models)


def _paths(manifest: Manifest) -> set[str]:
    files = {PurePosixPath(node.file) for node in manifest.nodes.values()}
    folders = {folder for file in files for folder in file.parents}
    return {str(path) for path in files | folders} - {"."}


def _tags(manifest: Manifest) -> Iterable[Iterable[str]]:
    return (node.tags for node in manifest.nodes.values())


def _all_names(manifest: Manifest) -> Iterable[str]:
    return (node.name for node in manifest.nodes.values() if isinstance(node, Model | DataTest | UnitTest))


def _configured_values(key: str, manifest: Manifest) -> Iterable[str]:
    return (text for node in manifest.nodes.values() for text in config_values(node, key))


_KNOWN: dict[str, Callable[[Manifest], Iterable[str]]] = {
    "path": _paths,
    "file": lambda manifest: (PurePosixPath(path).name for path in _paths(manifest) if path.endswith((".sql", ".yml"))),
    "fqn": lambda manifest: (model.name for model in manifest.models),
    "package": lambda manifest: (manifest.project,),
    "group": lambda manifest: (str(model.meta["group"]) for model in manifest.models if "group" in model.meta),
    "tag": lambda manifest: (tag for tags in _tags(manifest) for tag in tags),
    "source": lambda manifest: (name for source in manifest.sources for name in (source.name, source.source)),
    "exposure": lambda manifest: (exposure.name for exposure in manifest.exposures),
    "sink": lambda manifest: (sink.name for sink in manifest.sinks),
    "unit_test": lambda manifest: (n.name for n in manifest.nodes.values() if isinstance(n, UnitTest)),
    "test_name": lambda manifest: (n.kind for n in manifest.nodes.values() if isinstance(n, DataTest)),
    "name": _all_names,
}
