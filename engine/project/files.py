"""Finding and reading the files of a project; nothing outside its folder is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from engine.errors import Diagnostic, Location
from engine.project.header import location_of

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def find(root: Path, folder: str, suffixes: tuple[str, ...], found: list[Diagnostic]) -> Iterator[tuple[Path, str]]:
    """The files below a folder of the project, in name order, each with the name shown to users."""
    base = root / folder
    if not base.is_dir():
        return
    if not inside(root, base):
        _leads_out(folder, found)
        return
    for path in sorted(base.rglob("*")):
        shown = path.relative_to(root).as_posix()
        if any(part.startswith(".") for part in path.relative_to(base).parts):
            continue
        if path.is_symlink() and (path.is_dir() or not inside(root, path)):
            _leads_out(shown, found)
        elif path.suffix.lower() in suffixes and (path.is_file() or path.is_symlink()):
            yield path, shown


def _leads_out(shown: str, found: list[Diagnostic]) -> None:
    message = "links to folders, and links that lead out of the project, are not followed"
    hint = "Copy the files into the project instead of linking to them."
    found.append(Diagnostic("path-outside", message, hint, location=Location(shown)))


def inside(root: Path, path: Path) -> bool:
    """Whether a path stays inside the project once links are followed."""
    return path.resolve().is_relative_to(root.resolve())


def read(path: Path, shown: str, found: list[Diagnostic]) -> str | None:
    """The text of a file with plain line ends, or None and a finding."""
    data = b""
    try:
        data = path.read_bytes()
        text = _plain_lines(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = _plain_lines(data[: error.start].decode("utf-8-sig", errors="replace"))
        place = location_of(before, len(before), shown)
        found.append(Diagnostic("file-unreadable", "the file is not UTF-8", "Save it as UTF-8.", location=place))
        return None
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        found.append(Diagnostic("file-unreadable", message, location=Location(shown)))
        return None
    control = _CONTROL.search(text)
    if control:
        message = f"the file holds the control character U+{ord(control[0]):04X}"
        place = location_of(text, control.start(), shown)
        found.append(Diagnostic("control-character", message, "Remove it.", location=place))
        return None
    return text


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
