"""The one writer below target/: no link is followed, whole files are moved into place, and all is the owner's alone.

A project comes from others, and so may a folder target/ in it. Each folder on the way is opened by its name in the
folder above, without following links (`openat` with `O_NOFOLLOW`), and files are made, moved and removed in the folder
that is open: exchanging a folder for a link in between leads nowhere.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from engine.errors import ProjectError

FOLDER_MODE = 0o700
FILE_MODE = 0o600
# Somebody else may have put a file there. The results of a run of ten thousand models have a third of these bytes.
MOST_BYTES = 1 << 26
_PRIVATE_FILE = stat.S_IFREG | FILE_MODE
Buffer = bytes | memoryview
_PLAIN = "Rename it: files below target/ have plain relative names, without '..'."
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# A process that runs for weeks keeps the newest part of its logs.
_MOST_OF_A_LOG = 64 << 20
_KEPT_OF_A_LOG = 16 << 20
# A project may have more folders than a process may have open.
_OPEN_FOLDERS = 64
_LINK_HINT = "Remove it: artifacts are written to the project folder only, never through a symbolic link."


def forget_oldest(number: int) -> None:
    """Keep the last lines of a log that has become too large; what is written meanwhile may be lost.

    Raises:
        OSError: the file cannot be read or written.
    """
    if os.fstat(number).st_size <= _MOST_OF_A_LOG:
        return
    with open(f"/proc/self/fd/{number}", "rb") as file:  # noqa: PTH123 - no path leads to it for certain
        file.seek(-_KEPT_OF_A_LOG, os.SEEK_END)
        kept = file.read().partition(b"\n")[2]
    os.ftruncate(number, 0)
    os.write(number, kept)


class TargetFolder:
    """A folder whose content the engine writes, mostly target/; names are relative to it, with `/`.

    Everything raises ProjectError: `target-link` if a link or what is not a plain file or folder is in the way,
    `path-outside` if a name leads out, `target-unwritable` for what the system says.

    Args:
        path: of the folder; it is made when something is written. The folder above it is taken as it is.
        given: the folder itself keeps its mode; what is made in it is private all the same.
        shared: what is in it gets the modes that the umask gives.
    """

    def __init__(self, path: Path, *, given: bool = False, shared: bool = False) -> None:
        self.path = path
        self._given = given or shared
        self._shared = shared
        self._open: dict[str, int] = {}
        self._temporary = f".{os.getpid()}.{secrets.token_hex(4)}.tmp"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def write(self, name: str, content: Buffer | Iterable[Buffer]) -> tuple[int, int]:
        """Write a file at once or not at all, and return its time in ns and its size in bytes."""
        folder, last = self._split(name)
        with self._told(name):
            at = self._folder(folder, make=True)
            self._check_plain(name, last, at)
            temporary = self._temporary
            try:
                with open(temporary, "wb", opener=self._opener(at, _NEW)) as file:
                    file.writelines([content] if isinstance(content, Buffer) else content)
                    file.flush()
                    self._own(file.fileno(), FILE_MODE)
                    written = os.fstat(file.fileno())
                os.replace(temporary, last, src_dir_fd=at, dst_dir_fd=at)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=at)
                raise
        return written.st_mtime_ns, written.st_size

    def append(self, name: str) -> BinaryIO:
        """Open a file to add to its end; one that has a second name elsewhere is not written."""
        folder, last = self._split(name)
        with self._told(name):
            at = self._folder(folder, make=True)
            self._check_plain(name, last, at)
            file = open(last, "ab", opener=self._opener(at, _APPEND))  # noqa: SIM115 - the caller closes it
            seen = os.fstat(file.fileno())
            if not stat.S_ISREG(seen.st_mode) or seen.st_nlink > 1:
                file.close()
                raise self._in_the_way(
                    name, "has a second name (a hard link)" if seen.st_nlink > 1 else "is not a file"
                )
            self._own(file.fileno(), FILE_MODE)
        return file

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> bytes | None:
        """The content of a file; None if there is none, or something else in its place, or more than so many bytes."""
        folder, last = self._split(name)
        try:
            at = self._folder(folder, make=False)
            with open(last, "rb", opener=self._opener(at, _READ)) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                content = file.read(most_bytes + 1)
                return content if len(content) <= most_bytes else None
        except (OSError, ProjectError):
            return None

    def seen(self, name: str) -> tuple[int, int] | None:
        """The time in ns and the size of a file that `write` may have left; None if it did not."""
        folder, _, last = name.rpartition("/")
        try:
            found = os.stat(last, dir_fd=self._folder(folder, make=False), follow_symlinks=False)
        except OSError:
            return None
        mode = found.st_mode
        plain = stat.S_ISREG(mode) if self._shared else mode == _PRIVATE_FILE
        return (found.st_mtime_ns, found.st_size) if plain else None

    def names(self, folder: str) -> list[str]:
        """The names in a folder of it ("" is itself); none if there is no such folder."""
        with self._told(folder):
            try:
                return os.listdir(self._folder(folder and self._checked(folder), make=False))  # noqa: PTH208 - of an open folder
            except FileNotFoundError:
                return []

    def make(self, name: str) -> None:
        with self._told(name):
            self._folder(name and self._checked(name), make=True)

    def remove(self, name: str) -> None:
        """Remove a file, and the folders that are empty without it; what is not a plain file stays."""
        folder, last = self._split(name)
        with self._told(name):
            try:
                at = self._folder(folder, make=False)
                if not stat.S_ISREG(os.stat(last, dir_fd=at, follow_symlinks=False).st_mode):
                    return
                os.unlink(last, dir_fd=at)
                while folder:
                    above, _, last = folder.rpartition("/")
                    self._forget(folder)
                    os.rmdir(last, dir_fd=self._folder(above, make=False))
                    folder = above
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise

    def clear(self) -> None:
        """Remove the folder with all that is in it; links in it go, and what they lead to stays."""
        with self._told(""):
            try:
                self._folder("", make=False)
            except FileNotFoundError:
                return
            self.close()
            above = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                shutil.rmtree(self.path.name, dir_fd=above)
            finally:
                os.close(above)

    def _split(self, name: str) -> tuple[str, str]:
        folder, _, last = self._checked(name).rpartition("/")
        return folder, last

    def _checked(self, name: str) -> str:
        if not is_plain(name):
            raise ProjectError("path-outside", f"the path '{name}' leads out of {self.path}", _PLAIN)
        return name

    def _folder(self, name: str, *, make: bool) -> int:
        """An open folder, by its name; "" is the folder itself."""
        known = self._open.get(name)
        if known is not None:
            return known
        if not name:
            made = self._entered(str(self.path), None, "", make=make)
        else:
            above, _, last = name.rpartition("/")
            made = self._entered(last, self._folder(above, make=make), name, make=make)
        if len(self._open) >= _OPEN_FOLDERS:
            self.close()
        self._open[name] = made
        return made

    def _entered(self, last: str, above: int | None, name: str, *, make: bool) -> int:
        try:
            found = self._opened(last, above, name)
        except FileNotFoundError:
            if not make:
                raise
            if above is None:
                self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(last, 0o777 if self._shared else FOLDER_MODE, dir_fd=above)
            found = self._opened(last, above, name)
        if name or not self._given:
            self._own(found, FOLDER_MODE)
        return found

    def _opened(self, last: str, above: int | None, name: str) -> int:
        try:
            return os.open(last, _FOLDER, dir_fd=above)
        except FileNotFoundError:
            raise
        except OSError as error:
            if not _is_link(last, above):
                raise
            raise self._in_the_way(name, "is a link") from error

    def _check_plain(self, name: str, last: str, at: int) -> None:
        try:
            found = os.stat(last, dir_fd=at, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISREG(found):
            raise self._in_the_way(name, "is a link" if stat.S_ISLNK(found) else "is not a file")

    def _own(self, descriptor: int, mode: int) -> None:
        """Set the mode, whatever the umask was; what belongs to another user stays as it is."""
        found = os.fstat(descriptor)
        if not self._shared and stat.S_IMODE(found.st_mode) != mode and found.st_uid == os.geteuid():
            os.fchmod(descriptor, mode)

    def _forget(self, folder: str) -> None:
        if folder in self._open:
            os.close(self._open.pop(folder))

    def _opener(self, at: int, flags: int) -> Callable[[str, int], int]:
        mode = 0o666 if self._shared else FILE_MODE
        return lambda name, _: os.open(name, flags, mode, dir_fd=at)

    def _in_the_way(self, name: str, what: str) -> ProjectError:
        shown = self.path / name if name else self.path
        return ProjectError("target-link", f"{shown} {what}; nothing is written there", _LINK_HINT)

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._in_the_way(name, "is a link") from error
            path = self.path / name if name else self.path
            raise unwritable(path, error) from error


def is_plain(name: str) -> bool:
    return "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


def _is_link(last: str, above: int | None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(last, dir_fd=above, follow_symlinks=False).st_mode)
    except OSError:
        return False


def unwritable(path: Path, error: OSError) -> ProjectError:
    hint = "Check the permissions and the free space there."
    return ProjectError("target-unwritable", f"{path} cannot be written: {error.strerror}", hint)


def write_text(folder: Path, name: str, text: str) -> Path:
    """Write a text into a folder such as target/. Half a surrogate pair has no UTF-8 form.

    Raises:
        ProjectError: `target-link`, `target-unwritable`.
    """
    with TargetFolder(folder) as target:
        target.write(name, text.encode("utf-8", "replace"))
    return folder / name


def write_report(path: Path, content: bytes, root: Path) -> None:
    """Write a file that the command line names: inside the project through no link, elsewhere as the user's path says.

    Args:
        path: of the file; folders that are missing are made.

    Raises:
        ProjectError: `target-link`, `target-unwritable`.
    """
    plain = Path(os.path.abspath(path))  # noqa: PTH100 - links must not be followed
    name = _name_inside(plain, root.resolve())
    if name is None:
        try:
            plain.parent.mkdir(parents=True, exist_ok=True)
            plain.write_bytes(content)
        except OSError as error:
            raise unwritable(plain, error) from error
        return
    folder, name = _folder_of(root, name)
    with folder:
        folder.write(name, content)


def append_line(path: Path, line: str, root: Path) -> None:
    """Add a line to a file that the project names: in the project, and through no link.

    Raises:
        ProjectError: `path-outside`, `target-link`, `target-unwritable`.
    """
    name = _name_inside(Path(os.path.abspath(root / path)), root.resolve())  # noqa: PTH100 - links must not be followed
    if name is None:
        hint = "Use a file of the project, such as target/openlineage.jsonl."
        raise ProjectError("path-outside", f"'{path}' is outside the project; nothing is written there", hint)
    folder, name = _folder_of(root, name)
    with folder, folder.append(name) as file:
        file.write(f"{line}\n".encode("utf-8", "replace"))


def own_folder(path: Path, root: Path) -> None:
    """Make a folder in a hidden one of the project (.engine/lake, .engine/state) the owner's alone.

    A lake elsewhere keeps the mode that somebody gave it: others may read it on purpose.

    One that cannot be made is left to those who write there: their message says what it is, the lake or the state.

    Raises:
        ProjectError: `target-link`.
    """
    first, _, rest = (_name_inside(path, root.resolve()) or "").partition("/")
    if not first.startswith("."):
        return
    try:
        with TargetFolder(root / first) as folder:
            folder.make(rest)
    except ProjectError as error:
        if error.diagnostic.code != "target-unwritable":
            raise


def _folder_of(root: Path, name: str) -> tuple[TargetFolder, str]:
    """The folder through which a file of the project is written, and its name there: target/ is private, others not."""
    first, _, rest = name.partition("/")
    return (TargetFolder(root / first), rest) if first == "target" and rest else (TargetFolder(root, shared=True), name)


def _name_inside(path: Path, root: Path) -> str | None:
    """A path's name in a folder; None if it is elsewhere. The folder may be reached by links, what is in it may not."""
    above = next((folder for folder in reversed(path.parents) if folder.resolve() == root), None)
    return path.relative_to(above).as_posix() if above else None
