"""dbt's manifest.json as records: only what is needed, everything of a wrong type left out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from engine.errors import ProjectError
from engine_import.output.input_folder import read_bounded

# The largest public projects have manifests of less than a tenth of this.
MOST_BYTES = 512 * 2**20
MOST_NODES = 200_000
OLDEST, NEWEST = 10, 12
_SCHEMA = re.compile(r"/manifest/v(\d{1,3})\.json$")
_FILE = "manifest.json"
SOURCE_CALL = re.compile(r"""\bsource\(\s*(['"])([^'"]*)\1\s*,\s*(['"])([^'"]*)\3\s*\)""")


@dataclass(frozen=True, slots=True)
class DbtNode:
    """A model, seed, snapshot, test or other node, or a source.

    Attributes:
        path: of its file, relative to its kind's folder.
        file: of its file, relative to the project.
    """

    id: str
    kind: str
    name: str
    package: str
    path: str
    file: str
    code: str
    config: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """A string of its data; empty if there is none."""
        return text_of(self.data, key)

    @property
    def version(self) -> str:
        value = self.data.get("version")
        return str(value)[:20] if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(texts_of(mapping_of(self.data, "depends_on"), "nodes"))

    @property
    def macros(self) -> tuple[str, ...]:
        return tuple(texts_of(mapping_of(self.data, "depends_on"), "macros"))


@dataclass(frozen=True, slots=True)
class DbtMacro:
    """A macro.

    Attributes:
        path: of its file, relative to its package.
        code: its text, from `macro` to `endmacro`.
    """

    id: str
    name: str
    package: str
    path: str
    code: str
    macros: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DbtManifest:
    """A dbt project.

    Attributes:
        version: of the manifest's schema.
        adapter: the kind of its warehouse, such as `snowflake`.
        nodes: models, seeds, snapshots, tests and others by id.
        groups: owner of each group by name.
        not_carried: number of things of kinds that have no counterpart, by kind.
        disabled: names of nodes that dbt leaves out.
        rebuilt: sources whose tables the project builds itself, which are read as `ref()`, as phrases.
    """

    project: str
    version: int
    dbt: str
    adapter: str
    nodes: Mapping[str, DbtNode]
    sources: Mapping[str, DbtNode]
    unit_tests: Mapping[str, DbtNode]
    exposures: Mapping[str, DbtNode]
    macros: Mapping[str, DbtMacro]
    groups: Mapping[str, str]
    not_carried: Mapping[str, int]
    disabled: tuple[str, ...]
    rebuilt: tuple[str, ...] = ()


def read_manifest(folder: Path) -> DbtManifest:
    """Read target/manifest.json of a dbt project.

    Raises:
        ProjectError: `import-unreadable`: there is none, or it is not a manifest; `import-version`: its schema is
            older than v10.
    """
    data = _document(folder)
    metadata = mapping_of(data, "metadata")
    version = _version(folder, metadata)
    data, rebuilt = _with_refs(data)
    nodes = {key: _node(key, node) for key, node in _items(data, "nodes")}
    return DbtManifest(
        project=text_of(metadata, "project_name") or _most_frequent(nodes),
        version=version,
        dbt=text_of(metadata, "dbt_version"),
        adapter=text_of(metadata, "adapter_type"),
        nodes=nodes,
        sources={key: _node(key, node) for key, node in _items(data, "sources")},
        exposures={key: _node(key, node) for key, node in _items(data, "exposures")},
        unit_tests={key: _node(key, node) for key, node in _items(data, "unit_tests")},
        macros={key: _macro(key, macro) for key, macro in _items(data, "macros")},
        groups={text_of(group, "name"): _owner(group) for _, group in _items(data, "groups")},
        not_carried=_counts(data),
        disabled=tuple(sorted(str(key) for key in mapping_of(data, "disabled"))),
        rebuilt=rebuilt,
    )


def _with_refs(data: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The manifest with `ref()` in the place of sources that are seeds, models or snapshots of the project.

    Some projects load their seeds into the schema that their sources name (dbt Labs' jaffle-shop does). dbt then needs
    two commands in the right order; here the seed would be built into another place than the one that is read.
    """
    built = {_relation(node): (key, text_of(node, "name")) for key, node in _items(data, "nodes") if _is_built(node)}
    sources = {
        key: (text_of(node, "source_name"), text_of(node, "name"), *built[_relation(node)])
        for key, node in _items(data, "sources")
        if _relation(node) in built and key not in _parents(mapping_of(data, "nodes")[built[_relation(node)][0]])
    }
    if not sources:
        return data, ()
    ids = {key: new for key, (_, _, new, _) in sources.items()}
    refs = {(group, table): f"ref('{name}')" for group, table, _, name in sources.values()}

    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return ids.get(value) or SOURCE_CALL.sub(lambda m: refs.get((m[2], m[4]), m[0]), value)
        if isinstance(value, dict):
            return {key: changed(inner) for key, inner in value.items()}
        return [changed(inner) for inner in value] if isinstance(value, list) else value

    kept = {key: node for key, node in mapping_of(data, "sources").items() if key not in sources}
    parts = {part: changed(mapping_of(data, part)) for part in ("nodes", "unit_tests", "exposures")}
    said = (
        f"the source {group}.{table} is the {new.partition('.')[0]} {name}, and read as ref('{name}')"
        for group, table, new, name in sources.values()
    )
    return {**data, **parts, "sources": kept}, tuple(sorted(said))


def _parents(node: Mapping[str, Any]) -> list[str]:
    return texts_of(mapping_of(node, "depends_on"), "nodes")


def _is_built(node: Mapping[str, Any]) -> bool:
    return text_of(node, "resource_type") in ("model", "seed", "snapshot") and bool(text_of(node, "schema"))


def _relation(node: Mapping[str, Any]) -> tuple[str, ...]:
    table = text_of(node, "identifier") or text_of(node, "alias") or text_of(node, "name")
    return tuple(part.casefold() for part in (text_of(node, "database"), text_of(node, "schema"), table))


def text_of(data: Mapping[str, Any], key: str) -> str:
    """A string; empty if there is none."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def mapping_of(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping; empty if there is none."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def sequence_of(data: Mapping[str, Any], key: str) -> Sequence[Any]:
    """Return a list; a single value becomes a list of one."""
    value = data.get(key)
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def texts_of(data: Mapping[str, Any], key: str) -> list[str]:
    return [value for value in sequence_of(data, key) if isinstance(value, str)]


def _document(folder: Path) -> dict[str, Any]:
    content = read_bounded(folder, _FILE, MOST_BYTES)
    if content is None:
        _unreadable(
            folder, "there is no such file", "Run dbt parse in the dbt project; it writes target/manifest.json."
        )
    try:
        data = json.loads(content)
    except RecursionError:
        _unreadable(folder, "it is nested too deeply")
    except ValueError as error:
        _unreadable(folder, f"it is not JSON ({str(error)[:100]})")
    if not isinstance(data, dict) or "metadata" not in data or "nodes" not in data:
        _unreadable(folder, "it is not a manifest of dbt")
    parts = ("nodes", "sources", "macros", "unit_tests", "exposures")
    if sum(len(mapping_of(data, key)) for key in parts) > MOST_NODES:
        _unreadable(folder, f"it has more than {MOST_NODES} nodes")
    return data


def _unreadable(folder: Path, reason: str, hint: str = "Run dbt parse again.") -> NoReturn:
    raise ProjectError("import-unreadable", f"'{folder / _FILE}' cannot be imported: {reason}", hint)


def _version(folder: Path, metadata: Mapping[str, Any]) -> int:
    found = _SCHEMA.search(text_of(metadata, "dbt_schema_version")[:200])
    version = int(found[1]) if found else 0
    if version < OLDEST:
        shown = f"v{version}" if found else "unknown"
        message = f"'{folder / _FILE}' has the schema version {shown}; v{OLDEST} and newer can be imported"
        raise ProjectError("import-version", message, "Run dbt parse with dbt 1.6 or newer.")
    return version


def _items(data: Mapping[str, Any], key: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [(key, value) for key, value in mapping_of(data, key).items() if isinstance(value, dict)]


def _node(key: str, data: Mapping[str, Any]) -> DbtNode:
    return DbtNode(
        key,
        text_of(data, "resource_type"),
        text_of(data, "name"),
        text_of(data, "package_name"),
        text_of(data, "path"),
        text_of(data, "original_file_path"),
        plain_lines(text_of(data, "raw_code")),
        mapping_of(data, "config"),
        data,
    )


def _macro(key: str, data: Mapping[str, Any]) -> DbtMacro:
    called = texts_of(mapping_of(data, "depends_on"), "macros")
    path, code = text_of(data, "path"), plain_lines(text_of(data, "macro_sql"))
    return DbtMacro(key, text_of(data, "name"), text_of(data, "package_name"), path, code, tuple(called))


def plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def _owner(group: Mapping[str, Any]) -> str:
    owner = mapping_of(group, "owner")
    return text_of(owner, "name") or text_of(owner, "email")


def _counts(data: Mapping[str, Any]) -> dict[str, int]:
    kinds = ("metrics", "semantic_models", "saved_queries", "functions")
    return {kind: len(mapping_of(data, kind)) for kind in kinds if mapping_of(data, kind)}


def _most_frequent(nodes: Mapping[str, DbtNode]) -> str:
    """Return the package with most models: manifests before v11 may not name the project."""
    packages = [node.package for node in nodes.values() if node.kind == "model"]
    return max(sorted(set(packages)), key=packages.count, default="")
