"""The fact cache: what an earlier compilation for the same target found, used again where nothing has changed.

Two levels. The whole project: every file, variable and environment variable that was read is the same; then
nothing is rendered or parsed. One model: its own file is the same, and so is what it was compiled against (the
faces and columns of what it reads, and all that models share). Everything is compared by hashes of content.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

import engine
from engine.compile.entries import Encoded, Entry, digest, to_json
from engine.compile.manifest import NodeRecord
from engine.compile.target import Target
from engine.errors import Diagnostic
from engine.project import ModelText, Project
from engine.secrets import PREFIX, secret_values

FOLDER = ".cache"


@dataclass(frozen=True, slots=True)
class Now:
    """The project as it is now: hashes of what models share, of all files, of each model's file by its id."""

    shared: str
    files: str
    texts: Mapping[str, str]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry with the hashes it was made from: of the file, and of what it was compiled against."""

    entry: Entry
    text: str
    against: str

    def fresh(self, text: str, env: Mapping[str, str]) -> bool:
        """Whether the model's own file would be read as it was."""
        return self.entry.repeatable and self.text == text and _same(self.entry.env, env)

    def key(self, shared: str) -> str:
        """Changes with what is compiled from the model; `shared` is the hash of what all models share."""
        if not self.entry.repeatable:
            return digest([node.json for node in self.entry.nodes])
        return digest([shared, self.text, self.against, self.entry.env])


@dataclass(frozen=True, slots=True)
class Stored:
    """What one compilation leaves for the next.

    Attributes:
        shared: hash of what all models share.
        files: hash of all files.
        env: hashes of the environment variables read outside models.
        repeatable: compiling it again from the same gives the same.
        sources: the declared sources by id.
        models: by id.
        order: of the manifest.
        found: everything that was found, sorted.
    """

    shared: str = ""
    files: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    sources: Mapping[str, Encoded] = field(default_factory=dict)
    models: Mapping[str, Kept] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    found: tuple[Diagnostic, ...] = ()

    def holds(self, now: Now) -> bool:
        """Whether all of it is what a compilation would give now."""
        same = self.repeatable and self.shared == now.shared and self.files == now.files
        return same and all(_same(env, now.env) for env in (self.env, *(k.entry.env for k in self.models.values())))

    def usable(self, now: Now) -> Stored:
        """Itself if its models may be used one by one, else nothing."""
        return self if self.shared == now.shared and _same(self.env, now.env) else Stored()

    def records(self) -> dict[str, NodeRecord]:
        """All nodes as manifest.json tells them."""
        found = {i: NodeRecord((), bytes(node.record), digest(node.json)) for i, node in self.sources.items()}
        for kept in self.models.values():
            key = kept.key(self.shared)
            found |= {n.id: NodeRecord(n.depends_on, bytes(n.record), key) for n in kept.entry.nodes}
        return found


def load(folder: Path | None, target: Target) -> Stored:
    """The last compilation for a target; an empty one if there is none that can be read."""
    if folder is None:
        return Stored()
    try:
        return msgspec.json.decode(_path(folder, target).read_bytes(), type=Stored)
    except (OSError, msgspec.MsgspecError, KeyError):
        return Stored()


def save(stored: Stored, folder: Path, target: Target, env: Mapping[str, str]) -> None:
    """Keep a compilation, unless a secret was written into the project.

    A masked one could not be used again. A folder that cannot be written is no fault, it only costs time.
    """
    path = _path(folder, target)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    data = bytes(to_json(stored))
    try:
        if any(form in data for value in secret_values(env) for form in _spellings(value)):
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)


def _spellings(value: str) -> set[bytes]:
    """A text as JSON may have it."""
    forms = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    return {form.encode("utf-8", "replace") for form in forms}


def _path(folder: Path, target: Target) -> Path:
    return folder / FOLDER / f"{target.name}.json"


def look(project: Project, target: Target, variables: Mapping[str, Any], env: Mapping[str, str]) -> Now:
    """The hashes of a project as it is now."""
    texts = {f"model.{model.name}": _text(model) for model in project.models}
    settings = project.texts.get(project.doc.file, "")
    outside = [settings, target.name, target.schema, target.catalog.name, project.macros]
    files = [texts, project.texts, project.diagnostics, project.sources_whole, project.name, project.version]
    return Now(digest([_code(), outside, repr(sorted(variables.items()))]), digest(files), texts, env)


def env_digests(names: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """The hashes of some environment variables; empty for one that is not set. A secret only counts as set."""
    return {name: _env(name, env) for name in sorted(names)}


def _env(name: str, env: Mapping[str, str]) -> str:
    if name not in env:
        return ""
    return "set" if name.startswith(PREFIX) else digest(env[name])


def _same(known: Mapping[str, str], env: Mapping[str, str]) -> bool:
    return all(_env(name, env) == value for name, value in known.items())


def _text(model: ModelText) -> str:
    return digest([model.file, model.folders, model.text])


def _code() -> str:
    """What compiles: the versions, and the engine's own files where somebody works on them."""
    from importlib.metadata import version

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
    return digest([engine.__version__, version("sqlglot"), version("jinja2"), sorted(files)])
