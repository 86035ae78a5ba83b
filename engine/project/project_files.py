"""Finding and reading the files of a project; nothing outside its folder is read."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from operator import attrgetter
from pathlib import Path

from msgspec import Struct

from engine.errors import Diagnostic, Location
from engine.project.model_header import location_of

# Of a file that somebody writes.
MAX_BYTES = 10_000_000
_READABLE = "Make it readable for this user, or remove it from the project."
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


# Texts of files that are open in an editor, by the names shown to users: they count instead of what is on the disk.
_OPEN: ContextVar[Mapping[str, str]] = ContextVar("open texts")


# Names under which files are read, by those that they have.
_MOVED: ContextVar[Mapping[str, str]] = ContextVar("moved files")


@contextmanager
def open_texts(texts: Mapping[str, str], moved: Mapping[str, str] | None = None) -> Iterator[None]:
    """Read these texts in place of the files of the same names; a file that does not exist is not added by its text.

    Args:
        texts: by the name under which the file is read.
        moved: the name under which a file is read, by the one that it has.
    """
    token, moved_token = _OPEN.set(texts), _MOVED.set(moved or {})
    try:
        yield
    finally:
        _MOVED.reset(moved_token)
        _OPEN.reset(token)


def is_open(shown_path: str) -> bool:
    return shown_path in _OPEN.get({})


class File(Struct, frozen=True):
    """A file of the project. A struct: there are thousands, and a frozen dataclass takes ten times as long to make.

    `shown_path`: its name as shown to users, relative to the project. `stem`: its name without folders and suffix.
    `suffix`: the end of its name from the last dot on, in lower case.
    """

    path: str
    shown_path: str
    stem: str
    suffix: str

    def stat(self) -> os.stat_result | None:
        """Size, times and inode; None if it is gone."""
        try:
            return os.stat(self.path)  # noqa: PTH116 - thousands of files, and Path takes ten times as long
        except OSError:
            return None


def find(root: Path, folder: str, suffixes: Container[str] | None, diagnostics: list[Diagnostic]) -> Iterator[File]:
    """The files below a folder of the project that end in a suffix (None: all of them), in name order."""
    base = root / folder
    # A link in a circle is not a folder, and leads nowhere.
    if (base.is_dir() or base.is_symlink()) and not inside(root, base):
        _leads_out(folder, diagnostics)
        return
    if not base.is_dir():
        return
    folder_path = base.relative_to(root).as_posix()
    yield from _files_below(root, str(base), "" if folder_path == "." else f"{folder_path}/", suffixes, diagnostics)


def _files_below(
    root: Path, folder: str, prefix: str, suffixes: Container[str] | None, diagnostics: list[Diagnostic]
) -> Iterator[File]:
    try:
        with os.scandir(folder) as entries_iterator:
            entries = sorted(entries_iterator, key=attrgetter("name"))
    except OSError as error:
        message = f"the folder cannot be read: {error.strerror}"
        place = Location(prefix.rstrip("/") or ".")
        diagnostics.append(Diagnostic("file-unreadable", message, _READABLE, location=place))
        return
    moved = _MOVED.get({})
    for entry in entries:
        name = entry.name
        if name.startswith("."):
            continue
        shown_path = prefix + name
        shown_path = moved.get(shown_path, shown_path)
        name = shown_path.rpartition("/")[2]
        if not name.isascii() and written_name(name) != name:
            hint = "Rename the file or folder."
            place = Location(prefix + written_name(name))
            diagnostics.append(Diagnostic("file-unreadable", "the name is not UTF-8", hint, location=place))
            continue
        stem, dot, last = name.rpartition(".")
        suffix = dot + last.lower() if dot else ""
        if entry.is_symlink():
            path = Path(entry.path)
            if path.is_dir() or not inside(root, path):
                _leads_out(shown_path, diagnostics)
            elif (suffixes is None or suffix in suffixes) and (path.is_file() or not path.exists()):
                yield File(entry.path, shown_path, stem, suffix)
        elif entry.is_dir(follow_symlinks=False):
            yield from _files_below(root, entry.path, f"{shown_path}/", suffixes, diagnostics)
        elif (suffixes is None or suffix in suffixes) and entry.is_file(follow_symlinks=False):
            yield File(entry.path, shown_path, stem, suffix)


def written_name(name: str) -> str:
    r"""The name of a file with the bytes that are no UTF-8 written out (`\xff`); such a name fits no artifact."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _leads_out(shown_path: str, diagnostics: list[Diagnostic]) -> None:
    message = "symbolic links to folders, or to files outside the project, are not followed"
    hint = "Copy the files into the project instead of linking to them."
    diagnostics.append(Diagnostic("path-outside", message, hint, location=Location(shown_path)))


def inside(root: Path, path: Path) -> bool:
    """Whether a path stays inside the project once links are followed; those in a circle lead nowhere."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def first_link(root: Path, path: Path) -> str | None:
    """The first link on the way from the project's folder to a path in it, relative to that; None: there is none."""
    if not path.is_relative_to(root):
        return None
    at = root
    for part in path.relative_to(root).parts:
        at /= part
        if at.is_symlink():
            return at.relative_to(root).as_posix()
    return None


def exists(root: Path, name: str, diagnostics: list[Diagnostic]) -> bool:
    """Whether a file is in the project's folder; one that is a link out of the project is a finding, and is not."""
    path = root / name
    if path.is_symlink() and not (inside(root, path) and path.is_file()):
        _leads_out(name, diagnostics)
        return False
    return path.is_file()


def read(path: Path | str, shown_path: str, diagnostics: list[Diagnostic]) -> str | None:
    data = b""
    try:
        if (unsaved := _OPEN.get({}).get(shown_path)) is not None:
            data = unsaved.encode("utf-8", "replace")
        else:
            with open(path, "rb") as file:  # noqa: PTH123 - thousands of files
                data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            message = f"the file is larger than {MAX_BYTES // 1_000_000} MB"
            hint = "Keep data outside the project folders, and read it through a source."
            diagnostics.append(Diagnostic("file-unreadable", message, hint, location=Location(shown_path)))
            return None
        text = _plain_lines(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = _plain_lines(data[: error.start].decode("utf-8-sig", errors="replace"))
        place = location_of(before, len(before), shown_path)
        diagnostics.append(Diagnostic("file-unreadable", "the file is not UTF-8", "Save it as UTF-8.", location=place))
        return None
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        diagnostics.append(Diagnostic("file-unreadable", message, _READABLE, location=Location(shown_path)))
        return None
    control = _CONTROL.search(text)
    if control:
        message = f"the file contains the control character U+{ord(control[0]):04X}"
        place = location_of(text, control.start(), shown_path)
        diagnostics.append(Diagnostic("control-character", message, "Remove it.", location=place))
        return None
    return text


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
