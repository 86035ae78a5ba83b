"""A model's file: its text as read, and taken apart into header and SQL."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import Diagnostic
from engine.project.header import split_header
from engine.project.yaml import Yaml

# Findings about a header that is nevertheless understood.
MENDED = {"yaml-duplicate-key", "yaml-split-item"}


@dataclass(frozen=True, slots=True)
class ModelText:
    """A model's file as it was read.

    Attributes:
        name: the file's name without .sql.
        file: the path as shown to users, relative to the project.
        folders: the folders between models/ and the file.
        text: with plain line ends; None if the file cannot be read.
    """

    name: str
    file: str
    folders: tuple[str, ...]
    text: str | None


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model as written.

    Attributes:
        name: the file's name without .sql.
        file: the path as shown to users, relative to the project.
        folders: the folders between models/ and the file.
        header: the header's YAML, or None.
        sql: the file's text with the header blanked out; empty if the file cannot be read.
        broken: the file or its header cannot be read, so that its settings are unknown.
    """

    name: str
    file: str
    folders: tuple[str, ...]
    header: Yaml | None
    sql: str
    broken: bool = False


def open_model(source: ModelText, found: list[Diagnostic]) -> ModelFile:
    """Take a model's file apart; what is wrong with its header is added to `found`."""
    name, file, folders = source.name, source.file, source.folders
    if source.text is None:
        return ModelFile(name, file, folders, None, "", broken=True)
    parts = split_header(source.text, file)
    found += [problem.at(None, name) for problem in parts.problems]
    unread = any(problem.code not in MENDED for problem in parts.problems)
    return ModelFile(name, file, folders, parts.header, parts.sql, broken=unread)
