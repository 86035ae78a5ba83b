"""Following the files of a project: which of them were written, made or removed since they were looked at last.

Followed are the files that `load_project` reads, found in the same way: links to files inside the project are followed,
others are not, and nothing outside the project is looked at. Files are told apart by what the system says of them, so
that looking at a thousand takes some ten milliseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from engine.project.project_files import find
from engine.project.project_loader import DEFAULT_PATHS, PROJECT_FILE, SCHEMA_SUFFIX

# Files next to project.yml that count, or whose presence is an error.
_READ: Final = (PROJECT_FILE, "selectors.yml")
_TOP: Final = (*_READ, "profiles.yml", "dbt_project.yml", "packages.yml", "dependencies.yml")
_YAML: Final = (".yml", ".yaml")
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "models": (".sql", *_YAML),
    "sources": (*_YAML, SCHEMA_SUFFIX),
    "tests": (".sql", ".csv", *_YAML),
    "macros": (".sql", ".jinja"),
    "packages": (".sql", ".jinja"),
}
# Looking takes at most this part of the time.
_SHARE: Final = 0.05
_EVERY: Final = 0.2
# Writes that follow each other so closely belong together; one that does not end is not waited for much longer.
_QUIET: Final = 0.08
_MOST_WAIT: Final = 30.0

Stamp = tuple[int, int, int, int]
Stamps = Mapping[str, Stamp]


def read_stamps(root: Path, paths: Mapping[str, str] = DEFAULT_PATHS) -> Stamps:
    """Return time of writing and of change, size and inode of each followed file, by its name in the project."""
    files = {name: str(root / name) for name in _TOP} | read_files(root, paths)
    return {name: stamp for name, path in files.items() if (stamp := _stamp(path)) is not None}


def read_files(root: Path, paths: Mapping[str, str] = DEFAULT_PATHS) -> dict[str, str]:
    """Return the paths of the files that a compilation reads, by name; some may not exist."""
    files = {name: str(root / name) for name in _READ}
    for key, suffixes in _SUFFIXES.items():
        files |= {file.shown_path: file.path for file in find(root, paths.get(key, DEFAULT_PATHS[key]), suffixes, [])}
    return files


def _stamp(path: str) -> Stamp | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 - thousands of files
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


@dataclass(slots=True)
class FileFollower:
    """The files of a project as they were when they were looked at last.

    `paths`: its folders; one that is named later is looked at from then on, and its files count as changed. `pause`:
    how long to wait between two looks, in seconds.
    """

    root: Path
    paths: Mapping[str, str] = field(default_factory=lambda: DEFAULT_PATHS)
    sleep: Callable[[float], None] = time.sleep
    pause: float = _EVERY
    _stamps: Stamps = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stamps = self._read_stamps()

    def edited(self) -> tuple[str, ...]:
        """Return the files that are not what they were at the last call, when nobody writes any more; () if none."""
        current = self._read_stamps()
        if current == self._stamps:
            return ()
        current = self._wait_until_quiet(current)
        edited = tuple(
            sorted(name for name in {*self._stamps, *current} if self._stamps.get(name) != current.get(name))
        )
        self._stamps = current
        return edited

    def edits(self) -> Iterator[tuple[str, ...]]:
        """Yield without end what was edited after each pause; () if nothing was."""
        while True:
            self.sleep(self.pause)
            yield self.edited()

    def _read_stamps(self) -> Stamps:
        begin = time.monotonic()
        stamps = read_stamps(self.root, self.paths)
        self.pause = max(_EVERY, (time.monotonic() - begin) / _SHARE)
        return stamps

    def _wait_until_quiet(self, current: Stamps) -> Stamps:
        deadline = time.monotonic() + _MOST_WAIT
        while time.monotonic() < deadline:
            self.sleep(_QUIET)
            previous_stamps, current = current, self._read_stamps()
            if previous_stamps == current and not _is_checked_out(self.root):
                break
        return current


def _is_checked_out(root: Path) -> bool:
    """Whether git is changing the files: half of another branch is not a project."""
    repository = next((folder for folder in (root, *root.parents) if (folder / ".git").is_dir()), None)
    return repository is not None and (repository / ".git" / "index.lock").exists()
