"""What keeps other users of the machine away from a session: its temporary folder and its settings."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.errors import SetupError

AUTHENTICATE: Final = "spark.authenticate"
CRYPTO: Final = "spark.network.crypto.enabled"
PREFIX: Final = "headrace-spark-"
LOCAL_DIR: Final = "spark.local.dir"
LOCAL_DIRS: Final = "SPARK_LOCAL_DIRS"
_MAKING_SECONDS: Final = 60
# Nobody else reads or writes what the JVM makes. A lake that is shared on purpose has another umask
# (engine.lake.catalog.catalog_settings).
UMASK: Final = 0o077
# For a session in one JVM: its ports answer nobody who does not know its secret, which Spark makes for a local master
# and keeps out of all settings. On a cluster the secret is the cluster's, so nothing is set there.
LOCAL_SETTINGS: Final[Mapping[str, str]] = {
    AUTHENTICATE: "true",
    CRYPTO: "true",
    "spark.network.crypto.saslFallback": "false",
}


@dataclass(frozen=True, slots=True)
class Scratch:
    """Folders, mode 0700; JVMs inherit `locks`: a folder whose lock is free was left behind."""

    folders: tuple[Path, ...]
    locks: tuple[int, ...]


@contextmanager
def scratch(conf: Mapping[str, str], env: Mapping[str, str] = os.environ) -> Iterator[Scratch]:
    """Make the folders of one session, and remove those that killed sessions left behind.

    The folders stay when the block ends; see `remove`.

    Raises SetupError: java-start, one of the folders cannot be made.
    """
    folders: list[Path] = []
    locks: list[int] = []
    try:
        for parent in _parents(conf, env):
            remove_leftovers(parent)
            try:
                parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                folders.append(Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)))
            except OSError as error:
                message = f"Spark's temporary folder {parent} cannot be written: {error.strerror}."
                raise SetupError("java-start", message, f"Correct {LOCAL_DIR}, or the variable TMPDIR.") from error
            locks.append(os.open(folders[-1], os.O_RDONLY | os.O_DIRECTORY))
            fcntl.flock(locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Scratch(tuple(folders), tuple(locks))
    except BaseException:
        remove(folders)
        raise
    finally:
        # The JVM has its own copies by now.
        for descriptor in locks:
            os.close(descriptor)


def _parents(conf: Mapping[str, str], env: Mapping[str, str]) -> list[Path]:
    dirs_text = env.get(LOCAL_DIRS) or conf.get(LOCAL_DIR) or ""
    parents = [Path(part.strip()).absolute() for part in dirs_text.split(",") if part.strip()]
    default = tempfile.gettempdir()
    if not parents and "," in default:
        message = f"Spark's temporary folder {default} has a comma in its path, which separates two folders"
        raise SetupError("java-start", message, f"Set {LOCAL_DIR}, or the variable TMPDIR, to another folder.")
    return parents or [Path(default)]


def remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(parent: Path) -> None:
    with suppress(OSError):
        for folder in parent.glob(f"{PREFIX}*"):
            with suppress(OSError):
                _remove_free(folder)


def _remove_free(folder: Path) -> None:
    stat = folder.lstat()
    # One that was just made is not locked yet.
    if stat.st_uid != os.getuid() or time.time() - stat.st_mtime < _MAKING_SECONDS:
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
