"""Writing the archive of Java's classes: by one writer at a time, checked before it is put in place, within bounds.

A session that found no archive has one written when it ends: by a process of its own, of the lowest priority, that
holds nothing of the run that it comes from. It takes a minute and a half of a processor: an archive that was written or
failed is tried again after a day, an attempt that was cut off or met another writer after ten minutes.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from engine import local_paths
from engine.errors import SetupError
from engine.secrets.scrubber import without_secrets
from engine.spark.archive import (
    QUIET,
    SUFFIX,
    Classes,
    archive_folder,
    archive_path,
    base_of,
    class_path,
    file_option,
)
from engine.user_cache import is_own

# Each is 210 MB, and as much again while it is written.
_MAX_ARCHIVES: Final = 3
_MAX_BYTES: Final = 1_000_000_000
_ROOM: Final = 600_000_000
_DUMP_SECONDS: Final = 120
_WRITING: Final = ".writing-"
_LOCK: Final = ".lock"
# Its time is that of the attempt; its text why it failed, `_EMPTY_OUTCOME`, or nothing as long as it has not ended.
_ATTEMPT: Final = "tried-"
_DONE: Final = "written"
_TRIED_AGAIN_AFTER: Final = 86_400
_UNFINISHED_AGAIN_AFTER: Final = 600
# Set to `off`, no process is started for it.
_SWITCH: Final = "ENGINE_WARMUP"
_LOWEST: Final = 19
_LONGEST: Final = 1800
_log = logging.getLogger("engine.spark")


def begin_writing(classes: Classes, env: Mapping[str, str] = os.environ) -> bool:
    """Start a process that writes the archive, unless switched off, without room or tried lately; nobody waits."""
    folder = archive_folder(env)
    if folder is None or env.get(_SWITCH) == "off":
        return False
    try:
        attempt = folder / f"{_ATTEMPT}{classes.key()}"
        unfinished = attempt.exists() and not attempt.read_bytes()
        pause = _UNFINISHED_AGAIN_AFTER if unfinished else _TRIED_AGAIN_AFTER
        tried_lately = attempt.exists() and time.time() - attempt.stat().st_mtime < pause
        if tried_lately or shutil.disk_usage(folder).free < _ROOM:
            return False
        if unfinished:
            _log.info("Java's class archive was not finished by an earlier attempt: writing it again in the background")
        attempt.write_bytes(b"")
        width = ("--driver-memory", "32g") if classes.wide else ()
        # -P: no module is taken from the folder that it is started in. The shell ends at once: it is nobody's child.
        arguments = ["sh", "-c", '"$@" &', "sh", sys.executable, "-P", "-m", "engine", "warmup", "--background", *width]
        subprocess.run(
            arguments,
            cwd=folder,
            env=without_secrets(env),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def step_back() -> None:
    """Let this process and those that it starts take only what others leave, and end if it takes too long."""
    os.nice(_LOWEST)
    signal.alarm(_LONGEST)
    with suppress(OSError):
        # Linux ends this one first where memory is short.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def note_written(classes: Classes, env: Mapping[str, str] = os.environ) -> None:
    note_failure(classes, _DONE, env)


def note_failure(classes: Classes, reason: str, env: Mapping[str, str] = os.environ) -> None:
    folder = archive_folder(env)
    with suppress(OSError):
        if folder is not None:
            (folder / f"{_ATTEMPT}{classes.key()}").write_text(reason, encoding="utf-8")


def last_failure(classes: Classes, env: Mapping[str, str] = os.environ) -> str:
    """Why the archive could not be written when that was tried last; empty if it was not tried or did not fail."""
    folder = archive_folder(env)
    try:
        text = (folder / f"{_ATTEMPT}{classes.key()}").read_text(encoding="utf-8") if folder else ""
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if text == _DONE else text


@contextmanager
def only_writer(*, wait: bool, env: Mapping[str, str] = os.environ) -> Iterator[bool]:
    """Be the only writer of archives; yields whether that is so. A reader never waits.

    Raises SetupError: archive, there is no place for archives.
    """
    folder = _writable_folder(env)
    try:
        with (folder / _LOCK).open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True
    except OSError as error:
        raise _unwritable(error) from error


def sound(classes: Classes, env: Mapping[str, str] = os.environ) -> Path | None:
    """The archive of some classes, if Java itself finds nothing wrong with it: it is asked, which takes a second."""
    path = archive_path(classes, env)
    if path is None:
        return None
    base = base_of(classes.java, path.parent, path.stem.partition("-")[0])
    return path if _accepted(classes, path, base) else None


@contextmanager
def writing(classes: Classes, env: Mapping[str, str] = os.environ) -> Iterator[tuple[str, ...]]:
    """Let one JVM write the archive when it ends: yields its options; afterwards the archive is in place.

    Whoever reads meanwhile sees the archive that was there before, or none. The caller is the `only_writer`.

    Raises SetupError: archive, it cannot be written.
    """
    folder = _writable_folder(env)
    try:
        _remove_leftovers(folder)
        if shutil.disk_usage(folder).free < _ROOM:
            message = f"the class archive needs {_ROOM // 1_000_000} MB of free space in {folder}"
            raise SetupError("class-archive", message, "Free some space; sessions start without the archive.")
        key = classes.key()
        with tempfile.TemporaryDirectory(prefix=_WRITING, dir=folder) as name:
            temporary = Path(name) / f"{key}{SUFFIX}"
            base = base_of(classes.java, folder, key)
            if base is not None and not (is_own(base) and _accepted(classes, base)):
                # The other archive records where this one is, so that it goes to its place first.
                _dump(classes, Path(name) / base.name)
                _move_into_place(Path(name) / base.name, base)
            options = (f"-XX:ArchiveClassesAtExit={temporary}", *QUIET)
            yield (*_width(classes), *((f"-XX:SharedArchiveFile={base}",) if base else ()), *options)
            if not temporary.exists() or not _accepted(classes, temporary, base):
                hint = "See the log of the command; sessions start without the archive."
                raise SetupError("class-archive", "Java did not write the class archive", hint)
            for old in folder.glob(f"{key}-*{SUFFIX}"):
                old.unlink(missing_ok=True)
            _move_into_place(temporary, folder / f"{key}-{temporary.stat().st_size}{SUFFIX}")
        _forget_old(folder)
    except OSError as error:
        raise _unwritable(error) from error


def _writable_folder(env: Mapping[str, str]) -> Path:
    folder = archive_folder(env)
    if folder is None:
        message = "the class archive cannot be stored: there is no cache folder that only you can write to"
        hint = "Set XDG_CACHE_HOME to a folder outside the project that belongs to you."
        raise SetupError("class-archive", message, hint)
    return folder


def _unwritable(error: OSError) -> SetupError:
    hint = "Check the permissions and the free space of the cache folder; sessions start without the archive."
    return SetupError("class-archive", f"the class archive cannot be written: {error.strerror or error}", hint)


def _width(classes: Classes) -> tuple[str, ...]:
    return ("-XX:-UseCompressedOops",) if classes.wide else ()


def _accepted(classes: Classes, path: Path, base: Path | None = None) -> bool:
    path_of_classes = local_paths.class_path(class_path(classes.core))
    required = ("-Xmx256m", *_width(classes), "-Xshare:on", "-XX:+VerifySharedSpaces", file_option(path, base))
    arguments = [str(classes.java.path), *required, "-cp", path_of_classes, "-version"]
    return _run(arguments).returncode == 0


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(arguments, capture_output=True, check=False, timeout=_DUMP_SECONDS, env=without_secrets())


def _dump(classes: Classes, base: Path) -> None:
    """Write the archive of Java's own classes; raise SetupError, `class-archive`, if that fails."""
    arguments = [str(classes.java.path), *_width(classes), f"-XX:SharedArchiveFile={base}", "-Xshare:dump"]
    dump = _run(arguments)
    if dump.returncode or not base.exists():
        hint = "Sessions start without the archive; try another build of Java 17 or 21."
        raise SetupError("class-archive", "Java did not write its default class archive", hint)


def _move_into_place(new_file: Path, place: Path) -> None:
    new_file.chmod(0o600)
    # After a loss of power a file can have its name and size, and not its content.
    with new_file.open("rb") as file:
        os.fsync(file.fileno())
    new_file.replace(place)


def _remove_leftovers(folder: Path) -> None:
    for path in folder.glob(f"{_WRITING}*"):
        shutil.rmtree(path, ignore_errors=True)


def _forget_old(folder: Path) -> None:
    """Keep the archives that were used last, within a number and a size; what belongs to no archive goes."""
    archives = [path for path in folder.glob(f"*-*{SUFFIX}") if not path.name.startswith("base-")]
    room, kept_keys = _MAX_BYTES, set()
    for place, path in enumerate(sorted(archives, key=lambda path: path.stat().st_mtime, reverse=True), 1):
        room -= path.stat().st_size
        if place <= _MAX_ARCHIVES and room >= 0:
            kept_keys.add(path.stem.partition("-")[0])
        else:
            path.unlink(missing_ok=True)
    for path in folder.glob(f"base-*{SUFFIX}"):
        if path.stem.removeprefix("base-") not in kept_keys:
            path.unlink(missing_ok=True)
    for path in folder.glob(f"{_ATTEMPT}*"):
        if time.time() - path.stat().st_mtime > _TRIED_AGAIN_AFTER:
            path.unlink(missing_ok=True)
