"""The files of models: their names, and their texts where they have changed since they were last read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.errors import Diagnostic, Level, Location
from engine.project.file_index import Index, load_index, text_digest
from engine.project.model_file import ModelText
from engine.project.project_files import File, find, is_open, read
from engine.project.yaml_section import is_table_name

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


def read_models(root: Path, folder: str, cached: Path | None, found: list[Diagnostic]) -> ModelFiles:
    """All models of a project, and the YAML files beside them.

    Args:
        root: the project's folder.
        folder: that of its models, relative to it.
        cached: the folder that keeps what the files were; None: all are read.
        found: findings are added here.
    """
    index = load_index(cached / _INDEX if cached else None)
    models: dict[str, ModelText] = {}
    properties: list[File] = []
    depth = len(Path(folder).parts)
    for file in find(root, folder, None, found):
        if file.suffix in _NOTES:
            continue
        if file.suffix not in _READ:
            message = f"files of models end in .sql; {file.shown} is not read"
            hint = "Models are SQL." if file.suffix == ".py" else "Rename it, or keep it in another folder."
            place = Location(file.shown)
            found.append(Diagnostic("unread-file", message, hint, Level.WARNING, location=place))
            continue
        if file.suffix != ".sql":
            properties.append(file)
            continue
        name = file.stem
        if not is_table_name(name):
            message = f"'{name}' is not a valid model name"
            found.append(Diagnostic("bad-name", message, _NAMES, location=Location(file.shown)))
        elif name in models:
            message = f"two models have the name '{name}': {models[name].file} and {file.shown}"
            hint = "Rename one of them."
            found.append(Diagnostic("duplicate-name", message, hint, node=name, location=Location(file.shown)))
        else:
            folders = tuple(file.shown.split("/")[depth:-1])
            models[name] = _model(file, name, folders, index, found)
    index.save()
    return ModelFiles(tuple(models.values()), tuple(properties))


def _model(file: File, name: str, folders: tuple[str, ...], index: Index, found: list[Diagnostic]) -> ModelText:
    # Looked at before it is read: what changes in between is seen the next time.
    # A text of an editor says nothing about the file, and must not be noted as its content.
    stat = None if is_open(file.shown) else file.stat()
    digest = index.same(file.shown, stat) if stat else None
    if digest is not None:
        return ModelText(name, file.shown, folders, None, digest, file.path)
    text = read(file.path, file.shown, found)
    digest = text_digest(file.shown, text)
    if stat and text is not None:
        index.add(file.shown, stat, digest)
    return ModelText(name, file.shown, folders, text, digest)
