"""The one writer below target/: it follows no link, moves whole files into place, and keeps all of them private.

A project comes from others, and so may its folder target/. Each folder on the way is opened by its name in its parent
without following links (`openat` with `O_NOFOLLOW`), so that replacing a folder by a link meanwhile has no effect.
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
_RENAME_HINT = "Rename it: files below target/ have plain relative names, without '..'."
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# A process that runs for weeks keeps the newest part of its logs.
_LOG_LIMIT = 64 << 20
_LOG_TAIL = 16 << 20
# A project may have more folders than a process may have open.
_OPEN_FOLDERS = 64
_LINK_HINT = "Remove it: artifacts are written to the project folder only, never through a symbolic link."


def forget_oldest(number: int) -> None:
    """Keep the last lines of a log that has grown too large; lines written meanwhile may be lost."""
    if os.fstat(number).st_size <= _LOG_LIMIT:
        return
    with open(f"/proc/self/fd/{number}", "rb") as file:  # noqa: PTH123 - no path leads to it for certain
        file.seek(-_LOG_TAIL, os.SEEK_END)
        newest = file.read().partition(b"\n")[2]
    os.ftruncate(number, 0)
    os.write(number, newest)


class TargetFolder:
    """A folder whose content Headrace writes, mostly target/; names are relative to it, with `/`.

    Methods raise ProjectError: `target-link` if a link or another file type is in the way, `path-outside` if a name
    leads out, `target-unwritable` for errors of the system.

    Args:
        path: created on the first write; its parent is used as it is.
        keep_mode: keep the folder's own mode; what is created in it is still private.
        shared: files in it get the umask's modes.
    """

    def __init__(self, path: Path, *, keep_mode: bool = False, shared: bool = False) -> None:
        self.path = path
        self._keeps_mode = keep_mode or shared
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
        """Write a file atomically; return its time in ns and its size in bytes."""
        folder, file_name = self._split(name)
        with self._as_project_error(name):
            descriptor = self._folder(folder, make=True)
            self._check_plain(name, file_name, descriptor)
            temporary = self._temporary
            try:
                with open(temporary, "wb", opener=self._opener(descriptor, _NEW)) as file:
                    file.writelines([content] if isinstance(content, Buffer) else content)
                    file.flush()
                    self._set_mode(file.fileno(), FILE_MODE)
                    written = os.fstat(file.fileno())
                os.replace(temporary, file_name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=descriptor)
                raise
        return written.st_mtime_ns, written.st_size

    def append(self, name: str) -> BinaryIO:
        """Open a file for appending; a file with a second hard link is rejected."""
        folder, file_name = self._split(name)
        with self._as_project_error(name):
            descriptor = self._folder(folder, make=True)
            self._check_plain(name, file_name, descriptor)
            file = open(file_name, "ab", opener=self._opener(descriptor, _APPEND))  # noqa: SIM115 - the caller closes it
            file_stat = os.fstat(file.fileno())
            if not stat.S_ISREG(file_stat.st_mode) or file_stat.st_nlink > 1:
                file.close()
                raise self._in_the_way(
                    name, "has a second name (a hard link)" if file_stat.st_nlink > 1 else "is not a file"
                )
            self._set_mode(file.fileno(), FILE_MODE)
        return file

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> bytes | None:
        """Return the content of a file; None if it is missing, no file, or larger than `most_bytes`."""
        folder, file_name = self._split(name)
        try:
            descriptor = self._folder(folder, make=False)
            with open(file_name, "rb", opener=self._opener(descriptor, _READ)) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                content = file.read(most_bytes + 1)
                return content if len(content) <= most_bytes else None
        except (OSError, ProjectError):
            return None

    def file_stamp(self, name: str) -> tuple[int, int] | None:
        """Return time in ns and size of a file that `write` may have written; None if it did not."""
        folder, _, file_name = name.rpartition("/")
        try:
            entry_stat = os.stat(file_name, dir_fd=self._folder(folder, make=False), follow_symlinks=False)
        except OSError:
            return None
        mode = entry_stat.st_mode
        absolute = stat.S_ISREG(mode) if self._shared else mode == _PRIVATE_FILE
        return (entry_stat.st_mtime_ns, entry_stat.st_size) if absolute else None

    def names(self, folder: str) -> list[str]:
        """Return the names in a subfolder ("" is the folder itself); none if it does not exist."""
        with self._as_project_error(folder):
            try:
                return os.listdir(self._folder(folder and self._checked_name(folder), make=False))  # noqa: PTH208 - of an open folder
            except FileNotFoundError:
                return []

    def make(self, name: str) -> None:
        with self._as_project_error(name):
            self._folder(name and self._checked_name(name), make=True)

    def remove(self, name: str) -> None:
        """Remove a file, and the folders that are empty without it; anything but a regular file stays."""
        folder, file_name = self._split(name)
        with self._as_project_error(name):
            try:
                descriptor = self._folder(folder, make=False)
                if not stat.S_ISREG(os.stat(file_name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                    return
                os.unlink(file_name, dir_fd=descriptor)
                while folder:
                    above, _, file_name = folder.rpartition("/")
                    self._forget(folder)
                    os.rmdir(file_name, dir_fd=self._folder(above, make=False))
                    folder = above
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise

    def clear(self) -> None:
        """Remove the folder and its content; links in it are removed, not followed."""
        with self._as_project_error(""):
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
        folder, _, file_name = self._checked_name(name).rpartition("/")
        return folder, file_name

    def _checked_name(self, name: str) -> str:
        if not is_plain_name(name):
            raise ProjectError("path-outside", f"the path '{name}' leads out of {self.path}", _RENAME_HINT)
        return name

    def _folder(self, name: str, *, make: bool) -> int:
        """Return the descriptor of a folder by its name; "" is the folder itself."""
        open_descriptor = self._open.get(name)
        if open_descriptor is not None:
            return open_descriptor
        if not name:
            opened = self._open_or_make(str(self.path), None, "", make=make)
        else:
            above, _, file_name = name.rpartition("/")
            opened = self._open_or_make(file_name, self._folder(above, make=make), name, make=make)
        if len(self._open) >= _OPEN_FOLDERS:
            self.close()
        self._open[name] = opened
        return opened

    def _open_or_make(self, folder_name: str, above: int | None, shown_path: str, *, make: bool) -> int:
        try:
            descriptor = self._open_folder(folder_name, above, shown_path)
        except FileNotFoundError:
            if not make:
                raise
            if above is None:
                self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(folder_name, 0o777 if self._shared else FOLDER_MODE, dir_fd=above)
            descriptor = self._open_folder(folder_name, above, shown_path)
        if shown_path or not self._keeps_mode:
            self._set_mode(descriptor, FOLDER_MODE)
        return descriptor

    def _open_folder(self, folder_name: str, above: int | None, shown_path: str) -> int:
        try:
            return os.open(folder_name, _FOLDER, dir_fd=above)
        except FileNotFoundError:
            raise
        except OSError as error:
            if not _is_link(folder_name, above):
                raise
            raise self._in_the_way(shown_path, "is a link") from error

    def _check_plain(self, name: str, file_name: str, descriptor: int) -> None:
        try:
            entry_stat = os.stat(file_name, dir_fd=descriptor, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISREG(entry_stat):
            raise self._in_the_way(name, "is a link" if stat.S_ISLNK(entry_stat) else "is not a file")

    def _set_mode(self, descriptor: int, mode: int) -> None:
        """Set the mode, whatever the umask was; files of another user stay as they are."""
        entry_stat = os.fstat(descriptor)
        if not self._shared and stat.S_IMODE(entry_stat.st_mode) != mode and entry_stat.st_uid == os.geteuid():
            os.fchmod(descriptor, mode)

    def _forget(self, folder: str) -> None:
        if folder in self._open:
            os.close(self._open.pop(folder))

    def _opener(self, descriptor: int, flags: int) -> Callable[[str, int], int]:
        mode = 0o666 if self._shared else FILE_MODE
        return lambda name, _: os.open(name, flags, mode, dir_fd=descriptor)

    def _in_the_way(self, name: str, problem: str) -> ProjectError:
        blocked_path = self.path / name if name else self.path
        return ProjectError("target-link", f"{blocked_path} {problem}; nothing is written there", _LINK_HINT)

    @contextmanager
    def _as_project_error(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._in_the_way(name, "is a link") from error
            path = self.path / name if name else self.path
            raise unwritable(path, error) from error


def is_plain_name(name: str) -> bool:
    return "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


def _is_link(file_name: str, above: int | None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(file_name, dir_fd=above, follow_symlinks=False).st_mode)
    except OSError:
        return False


def unwritable(path: Path, error: OSError) -> ProjectError:
    hint = "Check the permissions and the free space there."
    return ProjectError("target-unwritable", f"{path} cannot be written: {error.strerror}", hint)


def write_text(folder: Path, name: str, text: str) -> Path:
    """Write a text below a folder such as target/; half a surrogate pair, which has no UTF-8 form, is replaced."""
    with TargetFolder(folder) as target:
        target.write(name, text.encode("utf-8", "replace"))
    return folder / name


def write_report(path: Path, content: bytes, root: Path) -> None:
    """Write a file that the command line names; inside the project no link is followed."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - links must not be followed
    name = _name_inside(absolute, root.resolve())
    if name is None:
        try:
            absolute.parent.mkdir(parents=True, exist_ok=True)
            absolute.write_bytes(content)
        except OSError as error:
            raise unwritable(absolute, error) from error
        return
    folder, name = _folder_of(root, name)
    with folder:
        folder.write(name, content)


def append_line(path: Path, line: str, root: Path) -> None:
    """Append a line to a file that the project names, inside the project and through no link."""
    name = _name_inside(Path(os.path.abspath(root / path)), root.resolve())  # noqa: PTH100 - links must not be followed
    if name is None:
        hint = "Use a file of the project, such as target/openlineage.jsonl."
        raise ProjectError("path-outside", f"'{path}' is outside the project; nothing is written there", hint)
    folder, name = _folder_of(root, name)
    with folder, folder.append(name) as file:
        file.write(f"{line}\n".encode("utf-8", "replace"))


def own_folder(path: Path, root: Path) -> None:
    """Create a folder in a hidden one of the project (.engine/lake, .engine/state) for its owner alone.

    A lake elsewhere keeps its mode: others may read it on purpose. A folder that cannot be created is reported by the
    code that writes there. Raise ProjectError `target-link` for a link.
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
    """Return the folder through which a file of the project is written, and its name there; only target/ is private."""
    first, _, rest = name.partition("/")
    return (TargetFolder(root / first), rest) if first == "target" and rest else (TargetFolder(root, shared=True), name)


def _name_inside(path: Path, root: Path) -> str | None:
    """Return a path's name in a folder; None if it is elsewhere. Links may lead to the folder, but not further."""
    above = next((folder for folder in reversed(path.parents) if folder.resolve() == root), None)
    return path.relative_to(above).as_posix() if above else None
