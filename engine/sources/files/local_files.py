"""The files below a folder of this machine, as Spark finds them, and those that no source may have.

Spark follows every link: one to its own folder is read 40 times over, until the system stops (measured), one to a file
beside it twice. Devices, named pipes and sockets are empty to it. A name with a colon cannot be opened (the name of its
checksum would be a URI), and is an error among or above the names that a pattern is compared with. A name that is not
UTF-8 is skipped without a word.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from engine import local_paths
from engine.errors import SetupError
from engine.ignored_file_names import holds_rows, is_listed

_SHOWN: Final = 3
_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_HINT: Final = (
    "Remove or rename it: only regular files below the folder are read, each once. Names that begin with '_' or '.' "
    "are ignored. To read another folder, write it as 'path'; to read several, declare several sources."
)


_NO_PATTERN: Final = (
    "Rename it; or write a folder without a pattern as 'path': all files below it are read, and 'pathGlobFilter' in "
    "'options' chooses some of them by name."
)


def check_top(source: str, top: Path) -> None:
    """Check what a source's `path` leads to.

    Raises SetupError: `source-path`, it is neither a folder nor a file that Spark reads.
    """
    mode = top.stat().st_mode
    kind = next((kind_name for is_kind, kind_name in _KINDS if is_kind(mode)), None)
    if kind is not None:
        raise unsuitable(source, [f"{top} is {kind}"])
    if not stat.S_ISREG(mode):
        return
    if not is_listed(top.name) or not holds_rows(top.name):
        raise unsuitable(source, [f"{top} is a file whose name Spark ignores"])
    if fault := _name_fault(str(top)):
        raise unsuitable(source, [fault])


def check_colon(source: str, path: Path, location: str) -> None:
    """Check that a path with characters of a pattern, also one that is a plain name, has no colon.

    Raises SetupError: `source-path`.
    """
    letter = local_paths.pattern_letter(location)
    if letter and ":" in str(path):
        fault = f"the path {path} has a colon, and Hadoop takes none in a path with the letter '{letter}' of a pattern"
        raise unsuitable(source, [fault], _NO_PATTERN)


def check_pattern(source: str, top: Path, parts: Sequence[str]) -> None:
    """Check the names that a pattern is compared with. Raises SetupError: `source-path`, one of them has a colon."""
    folders, colon_paths = [str(top)], list[str]()
    for part in parts:
        fits = local_paths.names_of_pattern(part).fullmatch
        entries = [entry for folder in folders for entry in _entries(source, folder)]
        compared = local_paths.has_wildcard(part)
        colon_paths += [entry.path for entry in entries if ":" in entry.name and (compared or fits(entry.name))]
        folders = [entry.path for entry in entries if fits(entry.name) and _true_if_readable(entry.is_dir)]
    if colon_paths:
        faults = [f"{path} has a colon in its name, and the pattern is compared with it" for path in colon_paths]
        raise unsuitable(source, faults, _NO_PATTERN)


def walk(source: str, top: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder, in no order.

    Raises:
        SetupError: `source-path`, one of them cannot be read, or a link leads out of the folder or to what is read
            anyway; after all others.
    """
    waiting, through, faults = [str(top)], set[str](), list[str]()
    while waiting:
        for entry in _entries(source, waiting.pop()):
            if not is_listed(entry.name):
                continue
            if unreadable := local_paths.name_fault(entry.name):
                faults.append(f"{entry.path} {unreadable}")
            elif entry.is_symlink() and (fault := link_fault(top, entry.path) or _again(entry.path, through)):
                faults.append(fault)
            elif _true_if_readable(entry.is_dir):
                waiting.append(entry.path)
            elif _true_if_readable(entry.is_file) and holds_rows(entry.name):
                if fault := _name_fault(entry.path):
                    faults.append(fault)
                yield entry
    if faults:
        raise unsuitable(source, faults)


def link_fault(top: Path, path: str) -> str | None:
    """Return what is wrong with the way to a file or folder, in a few words; None: nothing is.

    A link may lead to what has a name that is ignored, in the folder itself: so whole versions of a folder are swapped.
    """
    real_top, real = os.path.realpath(top), os.path.realpath(path)
    if real == os.path.normpath(real_top + path.removeprefix(str(top))) or not os.path.lexists(real):
        return None
    if not f"{real}/".startswith(f"{real_top.rstrip('/')}/"):
        return f"{path} is a link that leads out of the folder, to {real}"
    inside = real[len(real_top) :].strip("/").split("/")
    if all(is_listed(part) for part in inside if part):
        return f"{path} is a link to {real}, which is read itself"
    return None


def _again(path: str, through: set[str]) -> str | None:
    real = os.path.realpath(path)
    if real in through:
        return f"{path} is a link to {real}, as another one is"
    through.add(real)
    return None


def file_faults(top: Path, paths: Iterable[str]) -> list[str]:
    return [fault for path in paths if (fault := link_fault(top, path) or _name_fault(path))]


def unsuitable(source: str, faults: list[str], hint: str = _HINT) -> SetupError:
    more = f"; and {len(faults) - _SHOWN:,} more" if len(faults) > _SHOWN else ""
    return SetupError("source-path", f"source '{source}' cannot be read: {'; '.join(faults[:_SHOWN])}{more}", hint)


def _name_fault(path: str) -> str | None:
    if ":" in path.rpartition("/")[2]:
        return f"{path} has a colon in its name, and Spark cannot open such a file"
    unreadable = local_paths.name_fault(path)
    return f"{path} {unreadable}" if unreadable else None


def _entries(source: str, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        # It was there a moment ago.
        return []
    except OSError as error:
        raise unsuitable(source, [f"{folder} cannot be listed: {error.strerror}"]) from error


def _true_if_readable(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:
        # A link to itself: it leads nowhere, and is neither a folder nor a file.
        return False
