"""A model's file: its text as read, and taken apart into header and SQL."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from engine.errors import Diagnostic, Location
from engine.project.file_index import text_digest
from engine.project.model_header import split_header
from engine.project.parse_yaml import Yaml
from engine.project.project_files import read
from engine.project.trojan_source import deceptions

# Findings about a header that is nevertheless understood.
MENDED = {"yaml-duplicate-key", "yaml-split-item"}


class ModelText(Struct, frozen=True):
    """A model's file as it was read. A struct, as `File` is.

    Attributes:
        said: its text with plain line ends; None if the file cannot be read, or is read when it is asked for.
        digest: hash of the file's name and text; empty if nobody has made one.
        path: where to read it when it is asked for; empty if it was read.
    """

    name: str
    file: str
    folders: tuple[str, ...]
    said: str | None
    digest: str = ""
    path: str = ""

    @property
    def text(self) -> str | None:
        """The text with plain line ends; None if the file cannot be read."""
        return read(self.path, self.file, []) if self.path else self.said

    @property
    def hash(self) -> str:
        return self.digest or text_digest(self.file, self.said)


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


def open_model(source: ModelText, found: list[Diagnostic]) -> ModelFile:
    """Take a model's file apart; what is wrong with its header is added to `found`."""
    name, file, folders = source.name, source.file, source.folders
    text = source.text
    if source.path and text_digest(file, text) != source.digest:
        message = "the file changed while the project was loaded"
        found.append(
            Diagnostic("file-unreadable", message, "Run the command again.", node=name, location=Location(file))
        )
        return ModelFile(name, file, folders, None, "", broken=True, stable=False)
    if text is None:
        return ModelFile(name, file, folders, None, "", broken=True)
    parts = split_header(text, file)
    found += [problem.at(None, name) for problem in parts.problems]
    found += deceptions(text, file, name)
    unread = any(problem.code not in MENDED for problem in parts.problems)
    return ModelFile(name, file, folders, parts.header, parts.sql, broken=unread)
