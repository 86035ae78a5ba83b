"""The fact cache: what an earlier compilation for the same target found, reused where nothing has changed.

Two levels, compared by hashes of content. The whole project: nothing is rendered or parsed. One model: its own file,
the faces and columns of what it was compiled against and what all models share are the same.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

import engine
from engine.bounds.regular_file import MOST_OF_A_CACHE, open_regular
from engine.compile.artifacts.node_json import Buffer, Encoded, digest, to_json
from engine.compile.declarations.target import Target
from engine.compile.nodes.manifest import KeptRecords, NodeRecord
from engine.compile.nodes.model_interface import ModelInterface
from engine.compile.pipeline.library_version import library_version
from engine.errors import Diagnostic, ProjectError
from engine.project import LoadedProject
from engine.project.project_files import inside
from engine.secrets.scrubber import PREFIX, secret_values
from engine.target_folder import TargetFolder

if TYPE_CHECKING:
    from engine.compile.artifacts.node_json import Buffer, Encoded


# Before the head: its length.
_LENGTH_BYTES = 8
# Of a model are some 15 KB; they are not read at once.
_MOST_BYTES = 1 << 32
_Number = Annotated[int, msgspec.Meta(ge=0)]


class NodePlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a node is: the offset, the lengths of its JSON and of its entry in manifest.json, which follows it.

    Attributes:
        depends_on: ids of the nodes it names.
        key: changes with everything that is written of the node.
    """

    depends_on: tuple[str, ...]
    key: str
    start: _Number
    json: _Number
    record: _Number

    def json_in(self, data: Buffer) -> memoryview:
        """The node, of the bytes of all."""
        return memoryview(data)[self.start : self.start + self.json]

    def record_in(self, data: Buffer) -> memoryview:
        """Its entry in manifest.json."""
        return memoryview(data)[self.start + self.json : self.start + self.json + self.record]


def read_kept(path: Path) -> tuple[memoryview, memoryview]:
    """The head of a cache and the bytes of its nodes.

    Raises:
        OSError: it cannot be read.
        ValueError: it is empty, or shorter than it says.
    """
    with open_regular(path, _MOST_BYTES) as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    end = _LENGTH_BYTES + int.from_bytes(whole[:_LENGTH_BYTES])
    if end > min(len(whole), MOST_OF_A_CACHE):
        raise ValueError(path.name)
    return whole[_LENGTH_BYTES:end], whole[end:]


def content_of(head: bytes, nodes: Iterable[Buffer]) -> list[Buffer]:
    """The content of a cache."""
    return [len(head).to_bytes(_LENGTH_BYTES), head, *nodes]


def place_nodes(
    ids: Iterable[str],
    fresh: Mapping[str, tuple[Encoded, str]],
    places: Mapping[str, NodePlace],
    data: Buffer,
) -> tuple[dict[str, NodePlace], list[Buffer]]:
    """Where nodes will be, and their bytes.

    Args:
        ids: of all nodes, in the order of the manifest.
        fresh: new ones, each with its key.
        places: of the others in `data`.
        data: the bytes of an earlier cache.
    """
    moved: dict[str, NodePlace] = {}
    content: list[Buffer] = []
    at = 0
    for i in ids:
        if i in fresh:
            node, key = fresh[i]
            depends_on, json, record = node.depends_on, memoryview(node.json), memoryview(node.record)
        else:
            old = places[i]
            depends_on, key, json, record = old.depends_on, old.key, old.json_in(data), old.record_in(data)
        moved[i] = NodePlace(depends_on, key, at, len(json), len(record))
        content += (json, record)
        at += len(json) + len(record)
    return moved, content


FOLDER = "compiled"


@dataclass(frozen=True, slots=True)
class Now:
    """The project as it is now: its folder, and hashes of what models share, of all files, of each model's file."""

    root: Path
    shared: str
    files: str
    texts: Mapping[str, str]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CachedModel:
    """What is known of a compiled model beside its nodes.

    The fields are those of `CompiledEntry`, with the hash of the model's file (`text`), what others must know of it
    (`face`), all that was found in it (`problems`), and the hashes of its face and of what it gives.
    """

    face: ModelInterface
    given: msgspec.Raw
    problems: tuple[Diagnostic, ...]
    nodes: tuple[str, ...]
    reads: tuple[str, ...]
    mentions: tuple[str, ...]
    env: Mapping[str, str]
    certain: bool
    repeatable: bool
    text: str
    hashes: tuple[str, str]

    def fresh(self, text: str, env: Mapping[str, str]) -> bool:
        """Whether the model's own file would be read as it was."""
        return self.repeatable and self.text == text and same_env(self.env, env)


@dataclass(frozen=True, slots=True)
class StoredCompilation:
    """What one compilation leaves for the next.

    `shared` and `files` are hashes of what models share and of all files; `env` has those of variables read outside
    models, `env_all` of all. `folders` of sources inside the project were no links that lead out of it. `nodes` is in
    the order of the manifest, `order` has each after what it depends on, `found` is sorted. `fresh` nodes, each with
    its key, are not in the cache yet; `places` are those of the others in `data`.
    """

    shared: str = ""
    files: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    env_all: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    models: Buffer = b"{}"
    nodes: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    found: tuple[Diagnostic, ...] = ()
    fresh: Mapping[str, tuple[Encoded, str]] = field(default_factory=dict)
    places: Mapping[str, NodePlace] = field(default_factory=dict)
    data: Buffer = field(default=b"", repr=False)

    def holds(self, now: Now) -> bool:
        """Whether all of it is what a compilation would give now."""
        same = self.repeatable and self.shared == now.shared and self.files == now.files
        if not same or not same_env(self.env_all, now.env):
            return False
        return all(inside(now.root, now.root / folder) for folder in self.folders)

    def usable(self, now: Now) -> StoredCompilation:
        """Itself if its models may be used one by one, else nothing."""
        return self if self.shared == now.shared and same_env(self.env, now.env) else StoredCompilation()

    def cached_models(self) -> dict[str, CachedModel]:
        """What is known of the models, by id."""
        return msgspec.json.decode(self.models, type=dict[str, CachedModel])

    def json(self, node_id: str) -> Buffer:
        if node_id in self.fresh:
            return self.fresh[node_id][0].json
        return self.places[node_id].json_in(self.data)


class Records(KeptRecords):
    """The nodes of a compilation as they are in manifest.json."""

    def __init__(self, compilation: StoredCompilation) -> None:
        self._compilation = compilation
        self._nodes = frozenset(compilation.nodes)

    def __getitem__(self, node_id: str) -> NodeRecord:
        if node_id in self._compilation.fresh:
            node, key = self._compilation.fresh[node_id]
            return NodeRecord(node.depends_on, memoryview(node.record), key)
        place = self._compilation.places[node_id]
        return NodeRecord(place.depends_on, place.record_in(self._compilation.data), place.key)

    def keys_written(self) -> dict[str, str]:
        fresh, places = self._compilation.fresh, self._compilation.places
        return {i: fresh[i][1] if i in fresh else places[i].key for i in self._compilation.nodes}

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._compilation.nodes)

    def __len__(self) -> int:
        return len(self._compilation.nodes)


class _Head(msgspec.Struct, frozen=True):
    """A compilation as it is kept before the bytes of its nodes; places in the manifest's order."""

    shared: str
    files: str
    env: dict[str, str]
    env_all: dict[str, str]
    repeatable: bool
    sources: dict[str, str]
    folders: tuple[str, ...]
    size: int
    places: dict[str, NodePlace]
    order: tuple[str, ...]
    found: tuple[Diagnostic, ...]
    models: msgspec.Raw


def load(folder: Path | None, target: Target) -> StoredCompilation:
    """The last compilation for a target; an empty one if there is none that can be read."""
    if folder is None:
        return StoredCompilation()
    try:
        head_bytes, data = read_kept(_path(folder, target))
        head = msgspec.json.decode(head_bytes, type=_Head)
    except (OSError, ValueError, KeyError, RecursionError, msgspec.MsgspecError):  # KeyError: a code of another version
        return StoredCompilation()
    within = len(data) == head.size and all(p.start + p.json + p.record <= head.size for p in head.places.values())
    if not within or not head.places.keys() >= set(head.order):
        return StoredCompilation()
    names = ("shared", "files", "env", "env_all", "repeatable", "sources", "folders")
    parts = {name: getattr(head, name) for name in names}
    parts |= {
        "models": head.models,
        "order": head.order,
        "found": head.found,
        "places": head.places,
        "data": data,
    }
    return StoredCompilation(**parts, nodes=tuple(head.places))


def save(compilation: StoredCompilation, folder: Path, target: Target, env: Mapping[str, str]) -> None:
    """Keep a compilation, unless a secret was written into the project: masked, it could not be used again.

    A folder that cannot be written is not an error, it only costs time.
    """
    path = _path(folder, target)
    places, nodes = place_nodes(compilation.nodes, compilation.fresh, compilation.places, compilation.data)
    head = _Head(
        shared=compilation.shared,
        files=compilation.files,
        env=dict(compilation.env),
        env_all=dict(compilation.env_all),
        repeatable=compilation.repeatable,
        sources=dict(compilation.sources),
        folders=compilation.folders,
        size=sum(map(len, nodes)),
        places=places,
        order=compilation.order,
        found=compilation.found,
        models=msgspec.Raw(compilation.models),
    )
    content = content_of(bytes(to_json(head)), nodes)
    forms = [form for value in secret_values(env) for form in _spellings(value)]
    with suppress(OSError, ProjectError):
        if any(form in bytes(part) for form in forms for part in content):
            path.unlink(missing_ok=True)
            return
        with TargetFolder(path.parent) as cache_folder:
            cache_folder.write(path.name, content)


def _spellings(value: str) -> set[bytes]:
    """A text as JSON may have it."""
    forms = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    return {form.encode("utf-8", "replace") for form in forms}


def _path(folder: Path, target: Target) -> Path:
    # What is asked for by --target need not be a target, nor a file's name.
    name = target.name if re.fullmatch(r"\w[\w-]{0,60}", target.name, re.ASCII) else digest(target.name)
    return folder / FOLDER / f"{name}.cache"


def current_hashes(
    project: LoadedProject,
    target: Target,
    variables: Mapping[str, Any],
    env: Mapping[str, str],
    diagnostics: Sequence[Diagnostic] = (),
) -> Now:
    """The hashes of a project as it is now; `diagnostics` is what is wrong in its files and the target."""
    texts = {f"model.{model.name}": model.hash for model in project.models}
    settings = project.texts.get(project.doc.file, "")
    outside = [settings, target.name, target.schema, target.catalog.name, project.macros, project.sources_whole]
    files = [texts, project.texts, diagnostics, project.name, project.version]
    shared = [code_digest(), outside, repr(sorted(variables.items()))]
    return Now(project.root, digest(shared), digest(files), texts, env)


def env_digests(names: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """The hashes of some environment variables; empty for one that is not set. A secret only counts as set."""
    return {name: _env(name, env) for name in sorted(names)}


def _env(name: str, env: Mapping[str, str]) -> str:
    if name not in env:
        return ""
    return "set" if name.startswith(PREFIX) else digest(env[name])


def same_env(digests: Mapping[str, str], env: Mapping[str, str]) -> bool:
    """Whether environment variables are as they were."""
    return all(_env(name, env) == value for name, value in digests.items())


@cache
def code_digest() -> str:
    """Return a digest of what compiles: the versions, and the engine's own files in a checkout; read once a process."""
    files: list[tuple[str, int, int]] = []
    waiting = [str(Path(engine.__file__).parent)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir() and entry.name != "__pycache__":
                    waiting.append(entry.path)
                elif entry.name.endswith((".py", ".sql")):
                    stat = entry.stat()
                    files.append((entry.path, stat.st_size, stat.st_mtime_ns))
    return digest([engine.__version__, library_version("sqlglot"), library_version("jinja2"), sorted(files)])
