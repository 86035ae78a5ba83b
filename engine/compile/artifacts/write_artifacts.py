"""Write target/manifest.json, in the shape of dbt's version 12, and target/compiled/: only what has changed.

The record of what compile wrote, and so may remove, is in the user's cache: one in target/ may have come with the
project. A lost or wrong record costs time; files are compared with it, and written where they differ.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from engine import __version__, schema
from engine.bounds.regular_file import MOST_OF_A_CACHE, read_regular
from engine.compile.artifacts.dbt_manifest import About, macro_dict, node_dict, unique_id
from engine.compile.artifacts.node_json import digest, to_json
from engine.compile.artifacts.pyspark_script import script
from engine.compile.nodes.guarantee import guarantees
from engine.compile.nodes.macro_docs import macros_used
from engine.compile.nodes.manifest import KeptRecords, Manifest, Model, NodeRecord, Source
from engine.errors import ProjectError
from engine.secrets.scrubber import scrub, scrubber
from engine.sources import location
from engine.target_folder import TargetFolder, is_plain_name
from engine.user_cache import project_cache

_FILE = "written.json"
_LOCK = ".cache/lock"


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Files made from one thing: its key, and of each file (relative to target/) the time in ns and the size."""

    key: str
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def stands(self, key: str, folder: TargetFolder) -> bool:
        return self.key == key and all(folder.file_stamp(name) == stamp for name, stamp in self.files.items())


@contextmanager
def alone(folder: TargetFolder) -> Iterator[None]:
    """Wait until no other command writes into a target folder, which is made if it is not there."""
    with folder.append(_LOCK) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write(folder: TargetFolder, name: str, text: str) -> tuple[int, int]:
    """Write a file below target/, return its time in ns and size. Half a surrogate pair has no UTF-8 form."""
    return folder.write(name, text.encode("utf-8", "replace"))


def load(cache: Path | None) -> dict[str, WrittenFiles]:
    """What was written before, by node; nothing if that cannot be read, or is kept nowhere."""
    if cache is None:
        return {}
    try:
        files_by_node = msgspec.json.decode(read_regular(cache / _FILE, MOST_OF_A_CACHE), type=dict[str, WrittenFiles])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return {}
    return {node: item for node, item in files_by_node.items() if all(map(is_plain_name, item.files))}


def save(written: Mapping[str, WrittenFiles], cache: Path | None) -> None:
    """Keep what was written; a folder that cannot be written only costs time."""
    if cache is not None:
        with suppress(OSError, ValueError, ProjectError), TargetFolder(cache) as folder:
            folder.write(_FILE, msgspec.json.encode(written))


# The keys that the schemas are made from.
_KEYS: Final = Path(schema.__file__).parent
# Among what was written; no node has such an id.
SCHEMAS: Final = "schema"


def write_schemas(folder: TargetFolder, before: Mapping[str, WrittenFiles]) -> WrittenFiles:
    """Write the schemas to target/schema, unless they are there.

    Args:
        folder: target/.
        before: what an earlier compilation wrote.
    """
    with os.scandir(_KEYS) as entries:
        modules = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py")]
    stamps = sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in modules)
    # Installers may give all files one time.
    key = " ".join([__version__, *(f"{name}:{size}:{time}" for name, size, time in stamps)])
    schemas_before = before.get(SCHEMAS)
    if schemas_before is not None and schemas_before.stands(key, folder):
        return schemas_before
    from engine.schema.all_blocks import FILES_OF_A_PROJECT
    from engine.schema.json_schema import json_schema

    texts = {f"schema/{file.name}.json": json_schema(file) for file in FILES_OF_A_PROJECT}
    return WrittenFiles(key, {name: write(folder, name, text) for name, text in texts.items()})


# The newest dbt whose manifest has this shape; tools read it to choose how they parse.
DBT_VERSION = "1.10.0"
MANIFEST = "manifest.json"
_SCHEMA = "https://schemas.getdbt.com/dbt/{}.json"
_EMPTY = (
    "docs", "metrics", "groups", "selectors", "disabled", "group_map", "saved_queries",
    "semantic_models",
)  # fmt: skip


def write_artifacts(manifest: Manifest, folder: Path) -> None:
    """Write the manifest, the compiled SQL, each stream as a PySpark script and the schemas of editors below target/.

    Unchanged files are left alone; those of an earlier compilation that belong to no model now are removed. Commands
    that do this at the same time take turns.

    Raises:
        ProjectError: `target-link`, `target-unwritable`.
    """
    cache = project_cache(folder)
    with TargetFolder(folder) as target, alone(target):
        before = load(cache)
        now = _write(manifest, target, before)
        if now != before:
            _remove_others(target, before, now)
            save(now, cache)


def _write(manifest: Manifest, folder: TargetFolder, before: Mapping[str, WrittenFiles]) -> dict[str, WrittenFiles]:
    now: dict[str, WrittenFiles] = {}
    clean = scrubber()
    keys = _keys(manifest)
    for node_id, key in keys.items():
        if node_id.startswith("model."):
            old = before.get(node_id)
            is_current = old is not None and old.stands(key, folder)
            now[node_id] = old if is_current and old else _write_model(manifest, node_id, key, folder, clean)
    key = _manifest_key(manifest, keys)
    whole = before.get("")
    if whole is None or not whole.stands(key, folder):
        whole = WrittenFiles(key, {MANIFEST: write(folder, MANIFEST, clean(manifest_text(manifest)))})
    now[""] = whole
    now[SCHEMAS] = write_schemas(folder, before)
    return now


def _write_model(
    manifest: Manifest, node_id: str, key: str, folder: TargetFolder, clean: Callable[[str], str]
) -> WrittenFiles:
    model = manifest.nodes[node_id]
    if not isinstance(model, Model) or not model.sql:
        return WrittenFiles(key)
    name = f"compiled/{manifest.project or 'project'}/{model.file}"
    texts = {name: f"{_comment(model, manifest)}{model.sql}\n"}
    if stream := script(model, manifest):
        texts[f"{name.rpartition('.')[0]}.py"] = stream
    return WrittenFiles(key, {name: write(folder, name, clean(text)) for name, text in texts.items()})


def _keys(manifest: Manifest) -> Mapping[str, str]:
    records = records_of(manifest)
    if isinstance(records, KeptRecords):
        return records.keys_written()
    return {i: record.key for i, record in records.items()}


def _manifest_key(manifest: Manifest, keys: Mapping[str, str]) -> str:
    macros = [[macro.name, macro.file, macro.text] for macro in manifest.macros]
    return digest([__version__, manifest.project, manifest.target, keys, macros])


def _remove_others(folder: TargetFolder, before: Mapping[str, WrittenFiles], now: Mapping[str, WrittenFiles]) -> None:
    """Remove what an earlier compilation wrote and this one did not, folders too once they are empty."""
    names = {name for item in now.values() for name in item.files}
    for name in sorted({name for item in before.values() for name in item.files} - names):
        folder.remove(name)


def write_text(folder: Path, name: str, text: str) -> Path:
    """Write a file below target/ at once or not at all, secrets masked; return its path.

    Raises:
        ProjectError: `target-link`, `target-unwritable`.
    """
    with TargetFolder(folder) as target:
        write(target, name, scrub(text))
    return folder / name


def _comment(model: Model, manifest: Manifest) -> str:
    lines = [f"-- {model.relation} ({model.materialized.value})"]
    for item in model.inputs:
        if not item.view.startswith("`__"):
            continue
        node = manifest.nodes[item.node]
        origin = f"{node.spec.format} from {location(node.spec)}" if isinstance(node, Source) else item.name
        parts = [f"-- {item.view} is {'a stream of ' if item.stream else ''}{origin}"]
        if item.watermark:
            expression_prefix = f"{item.watermark.expression} as " if item.watermark.expression else ""
            parts.append(f"watermark {expression_prefix}{item.watermark.column} delay {item.watermark.delay}")
        if item.dedup:
            parts.append(f"duplicates of ({', '.join(item.dedup)}) dropped")
        lines.append("; ".join(parts))
    return "\n".join(lines) + "\n"


def about_nodes(manifest: Manifest) -> dict[str, About]:
    project, promised = manifest.project, guarantees(manifest)
    names = [macro.name for macro in manifest.macros]
    without_guarantee = About(project)
    return {
        node_id: About(project, promised.get(node_id), macros_used(node.raw_sql, names))
        if isinstance(node, Model)
        else without_guarantee
        for node_id, node in manifest.nodes.items()
    }


def records_of(manifest: Manifest) -> Mapping[str, NodeRecord]:
    """The nodes as they are in manifest.json, by id: as the compiler kept them, else made now."""
    if manifest.records:
        return manifest.records
    about, records = about_nodes(manifest), {}
    for node_id, node in manifest.nodes.items():
        text = bytes(to_json(node_dict(node, about[node_id])))
        records[node_id] = NodeRecord(manifest.parents(node_id), text, hashlib.sha256(text).hexdigest())
    return records


def manifest_text(manifest: Manifest) -> str:
    """The manifest as JSON: the records of its nodes, joined; broken nodes are in it, marked."""
    return b"".join(_manifest(manifest)).decode()


def _manifest(manifest: Manifest) -> Iterator[bytes | memoryview]:
    project, records = manifest.project, records_of(manifest)
    names = {i: unique_id(i, project) for i in records}
    kinds: dict[str, list[str]] = {"nodes": [], "sources": [], "unit_tests": [], "exposures": []}
    for i in records:
        kind = i.partition(".")[0]
        kinds.get("exposures" if kind == "sink" else f"{kind}s", kinds["nodes"]).append(i)
    macros = {f"macro.{project}.{macro.name}": macro_dict(macro, project) for macro in manifest.macros}
    above = {names[i]: _ids(record.depends_on, names) for i, record in records.items()}
    below: dict[str, list[str]] = {name: [] for name in above}
    for name, parents in above.items():
        for parent in parents:
            below[parent].append(name)
    yield b'{\n"metadata": '
    yield json.dumps(_metadata(manifest)).encode()
    for kind, ids in kinds.items():
        yield f',\n"{kind}": {{'.encode()
        for n, i in enumerate(ids):
            yield f"{',' if n else ''}\n{json.dumps(names[i])}: ".encode()
            yield records[i].text
        yield b"\n}"
    more = {"macros": macros, **{key: {} for key in _EMPTY}, "parent_map": above, "child_map": below}
    for key, value in more.items():
        yield f',\n"{key}": {json.dumps(value)}'.encode()
    yield b"\n}\n"


def _ids(nodes: Iterable[str], names: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(names[node] for node in nodes if node in names))


def _metadata(manifest: Manifest) -> dict[str, Any]:
    return {
        **artifact_metadata("manifest/v12"),
        "env": {"HEADRACE_VERSION": __version__, "HEADRACE_TARGET": manifest.target},
        "project_name": manifest.project,
        "adapter_type": "spark",
        "quoting": {"database": True, "schema": True, "identifier": True, "column": True},
    }


def artifact_metadata(schema: str, **more: Any) -> dict[str, Any]:
    return {
        "dbt_schema_version": _SCHEMA.format(schema),
        "dbt_version": DBT_VERSION,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "env": {"HEADRACE_VERSION": __version__},
        **more,
    }
