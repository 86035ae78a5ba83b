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
    for path in sorted(base.rglob("*")):
        shown = path.relative_to(root).as_posix()
        if path.suffix not in suffixes or path.name.startswith((".", "_")) or not path.is_file():
            continue
        if not inside(root, path):
            hint = "Copy the file into the project instead of linking to it."
            found.append(Diagnostic("path-outside", "the link leads out of the project", hint, location=Location(shown)))
            continue
        yield path, shown


def inside(root: Path, path: Path) -> bool:
    """Whether a path stays inside the project once links are followed."""
    return path.resolve().is_relative_to(root.resolve())


def read(path: Path, shown: str, found: list[Diagnostic]) -> str | None:
    """The text of a file with plain line ends, or None and a finding."""
    try:
        text = path.read_text(encoding="utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 (byte {error.start})"
        found.append(Diagnostic("file-unreadable", message, "Save it as UTF-8.", location=Location(shown)))
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
