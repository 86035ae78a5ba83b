"""The files of models: names and texts, each taken apart into header and SQL where it changed since it was last read.

A file is the same if its size, its times and its inode are. A file that was changed just before it was looked at
is read all the same: a second change within one tick of the clock would leave no trace.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from engine.bounds.regular_file import MOST_OF_A_CACHE, read_regular
from engine.errors import Diagnostic, Level, Location, ProjectError
from engine.project.model_header import split_header
from engine.project.parse_yaml import Yaml
from engine.project.project_files import File, find, is_open, read
from engine.project.trojan_source import deceptions
from engine.project.yaml_section import is_table_name
from engine.target_folder import TargetFolder

# Times of files go in steps; two seconds are the largest (FAT), and clocks of file servers may be a little off.
_MARGIN = 2_000_000_000
_FORM = 1


class SeenFile(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was read: size, times of change in ns, inode; `sure`: it had been left alone for a while."""

    size: int
    changed: int
    touched: int
    inode: int
    sure: bool
    digest: str


class _StoredIndex(msgspec.Struct, frozen=True):
    form: int
    files: dict[str, SeenFile]


@dataclass(slots=True)
class Index:
    """The files by the names shown to users: as they were known, and as they are now.

    `path`: where it is kept; None: nowhere. `began`: when the files were looked at, in ns.
    """

    path: Path | None
    earlier_files: Mapping[str, SeenFile]
    began: int
    now: dict[str, SeenFile] = field(default_factory=dict)

    def same(self, shown_path: str, stat: os.stat_result) -> str | None:
        """The digest of a file that is as it was; None if it has to be read."""
        seen_file = self.earlier_files.get(shown_path)
        if seen_file is None or not seen_file.sure or self._seen_file(stat, seen_file.digest) != seen_file:
            return None
        self.now[shown_path] = seen_file
        return seen_file.digest

    def add(self, shown_path: str, stat: os.stat_result, digest: str) -> None:
        self.now[shown_path] = self._seen_file(stat, digest)

    def _seen_file(self, stat: os.stat_result, digest: str) -> SeenFile:
        is_settled = max(stat.st_mtime_ns, stat.st_ctime_ns) < self.began - _MARGIN
        return SeenFile(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, is_settled, digest)

    def save(self) -> None:
        """Keep it; a folder that cannot be written only costs time."""
        if self.path is None or self.now == self.earlier_files:
            return
        with contextlib.suppress(ProjectError, UnicodeEncodeError), TargetFolder(self.path.parent) as folder:
            folder.write(self.path.name, msgspec.json.encode(_StoredIndex(_FORM, self.now)))


def load_index(path: Path | None) -> Index:
    looked_at = time.time_ns()
    if path is not None:
        with contextlib.suppress(OSError, ValueError, RecursionError, msgspec.MsgspecError):
            stored_index = msgspec.json.decode(read_regular(path, MOST_OF_A_CACHE), type=_StoredIndex)
            return Index(path, stored_index.files if stored_index.form == _FORM else {}, looked_at)
    return Index(path, {}, looked_at)


def text_digest(shown_path: str, text: str | None) -> str:
    """A hash of a file's name and text; None is a file that cannot be read."""
    whole = f"{shown_path}\0{text}" if text is not None else f"{shown_path}\0\0"
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# Findings about a header that is nevertheless understood.
MENDED = {"yaml-duplicate-key", "yaml-split-item"}


class ModelText(Struct, frozen=True):
    """A model's file as it was read. A struct, as `File` is.

    `content`: its text with plain line ends; None if the file cannot be read, or is read when it is asked for.
    `digest`: hash of the file's name and text; empty if nobody has made one. `path`: where to read it when it is asked
    for; empty if it was read.
    """

    name: str
    file: str
    folders: tuple[str, ...]
    content: str | None
    digest: str = ""
    path: str = ""

    @property
    def text(self) -> str | None:
        """The text with plain line ends; None if the file cannot be read."""
        return read(self.path, self.file, []) if self.path else self.content

    @property
    def hash(self) -> str:
        return self.digest or text_digest(self.file, self.content)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model as written.

    Attributes:
        header: the header's YAML, or None.
        sql: the file's text with the header blanked out; empty if the file cannot be read.
        broken: the file or its header cannot be read, so that its settings are unknown.
        stable: it was the same all the time.
    """

    name: str
    file: str
    folders: tuple[str, ...]
    header: Yaml | None
    sql: str
    broken: bool = False
    stable: bool = True


def open_model(source: ModelText, diagnostics: list[Diagnostic]) -> ModelFile:
    """Take a model's file apart; what is wrong with its header is added to `diagnostics`."""
    name, file, folders = source.name, source.file, source.folders
    text = source.text
    if source.path and text_digest(file, text) != source.digest:
        message = "the file changed while the project was loaded"
        diagnostics.append(
            Diagnostic("file-unreadable", message, "Run the command again.", node=name, location=Location(file))
        )
        return ModelFile(name, file, folders, None, "", broken=True, stable=False)
    if text is None:
        return ModelFile(name, file, folders, None, "", broken=True)
    parts = split_header(text, file)
    diagnostics += [problem.at(None, name) for problem in parts.problems]
    diagnostics += deceptions(text, file, name)
    unread = any(problem.code not in MENDED for problem in parts.problems)
    return ModelFile(name, file, folders, parts.header, parts.sql, broken=unread)


_READ = (".sql", ".yml", ".yaml")
# What people keep beside models.
_NOTES = (".md", ".txt", ".rst")
_INDEX = "files.json"
_NAMES = (
    "Use lower-case letters, digits and underscores; names that begin with branch_, tag_ or __, or end "
    "with __quarantine or __deleted, are taken."
)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    models: tuple[ModelText, ...]
    properties: tuple[File, ...]


def read_models(root: Path, folder: str, cached: Path | None, diagnostics: list[Diagnostic]) -> ModelFiles:
    """All models of a project, and the YAML files beside them.

    Args:
        root: the project's folder.
        folder: that of its models, relative to it.
        cached: the folder that keeps what the files were; None: all are read.
        diagnostics: findings are added here.
    """
    index = load_index(cached / _INDEX if cached else None)
    models: dict[str, ModelText] = {}
    properties: list[File] = []
    depth = len(Path(folder).parts)
    for file in find(root, folder, None, diagnostics):
        if file.suffix in _NOTES:
            continue
        if file.suffix not in _READ:
            message = f"files of models end in .sql; {file.shown_path} is not read"
            hint = "Models are SQL." if file.suffix == ".py" else "Rename it, or keep it in another folder."
            place = Location(file.shown_path)
            diagnostics.append(Diagnostic("unread-file", message, hint, Level.WARNING, location=place))
            continue
        if file.suffix != ".sql":
            properties.append(file)
            continue
        name = file.stem
        if not is_table_name(name):
            message = f"'{name}' is not a valid model name"
            diagnostics.append(Diagnostic("bad-name", message, _NAMES, location=Location(file.shown_path)))
        elif name in models:
            message = f"two models have the name '{name}': {models[name].file} and {file.shown_path}"
            hint = "Rename one of them."
            diagnostics.append(
                Diagnostic("duplicate-name", message, hint, node=name, location=Location(file.shown_path))
            )
        else:
            folders = tuple(file.shown_path.split("/")[depth:-1])
            models[name] = _model(file, name, folders, index, diagnostics)
    index.save()
    return ModelFiles(tuple(models.values()), tuple(properties))


def _model(file: File, name: str, folders: tuple[str, ...], index: Index, diagnostics: list[Diagnostic]) -> ModelText:
    # Looked at before it is read: what changes in between is seen the next time.
    # A text of an editor says nothing about the file, and must not be noted as its content.
    stat = None if is_open(file.shown_path) else file.stat()
    digest = index.same(file.shown_path, stat) if stat else None
    if digest is not None:
        return ModelText(name, file.shown_path, folders, None, digest, file.path)
    text = read(file.path, file.shown_path, diagnostics)
    digest = text_digest(file.shown_path, text)
    if stat and text is not None:
        index.add(file.shown_path, stat, digest)
    return ModelText(name, file.shown_path, folders, text, digest)
