"""The folder that an import writes: new or empty, with names that lead nowhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import UsageError
from engine.target_folder import TargetFolder

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_DEEPEST = 12


@dataclass(slots=True)
class NewProject:
    files: dict[str, str | bytes] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def add(self, name: str, content: str | bytes) -> str:
        """Add a file; a name that is taken, also in other letter case, gets a number.

        Args:
            name: with `/`, of parts that `safe_folders` and `is_safe` accept.
            content: of the file.

        Returns:
            The name under which it will be written.

        Raises:
            ValueError: the name leads somewhere else.
        """
        if not all(map(is_safe, name.split("/"))):
            raise ValueError(name)
        stem, dot, suffix = name.rpartition(".")
        number, free = 1, name
        while free.casefold() in self._taken:
            number += 1
            free = f"{stem}_{number}{dot}{suffix}"
        self._taken.add(free.casefold())
        self.files[free] = content
        return free

    def write(self, folder: Path) -> None:
        """Write all files.

        Raises:
            UsageError: the folder is not empty: nothing is ever overwritten.
            ProjectError: `target-link`, `target-unwritable`.
        """
        check_empty(folder)
        self.write_more(folder)

    def write_more(self, folder: Path) -> None:
        with TargetFolder(folder, shared=True) as opened:
            for name, content in self.files.items():
                data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
                opened.write(name, data)


def check_empty(folder: Path) -> None:
    """Make sure that a folder is new or empty.

    Raises:
        UsageError: it is not.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        hint = "Give --out a new folder: an import never overwrites a file."
        raise UsageError("usage", f"'{folder}' exists and is not an empty folder", hint)


def is_safe(part: str) -> bool:
    """Return whether a file or folder may have the name: plain ASCII, not hidden, not too long."""
    return bool(_PART.fullmatch(part)) and ".." not in part


def safe_folders(path: str) -> tuple[str, ...]:
    """Return the folders of a path in a foreign manifest; those that are not plain names are left out."""
    return tuple(part for part in path.split("/")[:-1] if is_safe(part))[:_DEEPEST]
