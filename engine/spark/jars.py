"""The locked jars, and the cache that holds them once they were fetched.

The lock is `jars.json`: named sets of coordinates with their sha256. A new set is a new key there. Jars that
PySpark ships are left out, whatever asks for them: two versions of one library on a class path are a lottery.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

from engine.errors import EngineError, SetupError
from engine.spark import _ivy
from engine.spark.java import Java, find_java
from engine.target_folder import TargetFolder
from engine.user_cache import cache_home, create_private, is_own, own_folder

LOCK: Final = Path(__file__).with_name("jars.json")
_STAMPS: Final = 500
_FETCH_HINT: Final = "Run engine jars fetch with network access."


class JarState(StrEnum):
    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Jar:
    """`not_served`: versions that Maven's repository did not have when the jar was locked."""

    coordinates: str
    sha256: str
    not_served: Sequence[str] = field(default=(), compare=False)

    @property
    def file_name(self) -> str:
        return _ivy.file_name(self.coordinates)


def jar_sets() -> tuple[str, ...]:
    return tuple(_lock())


def file_names(name: str) -> tuple[str, ...]:
    """The files of a locked set, in the order in which they are on a class path."""
    return tuple(jar.file_name for jar in _lock()[name])


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """ENGINE_JARS, else headrace/jars in the user's cache folder. Raises SetupError: jars-cache, there is no home."""
    if configured := env.get("ENGINE_JARS"):
        return Path(configured).expanduser().absolute()
    home = cache_home(env)
    if home is None:
        raise SetupError("jars-cache", "the user has no home folder", "Set ENGINE_JARS to a folder for the jars.")
    return home / "jars"


def jar_paths(
    names: Sequence[str],
    *,
    fetch: bool,
    java: Java | None,
    notify: Callable[[str], None] | None = None,
    env: Mapping[str, str] = os.environ,
    lock: Path = LOCK,
) -> tuple[Path, ...]:
    """Return the verified jars of some sets, fetched first if they are missing and `fetch` allows the network.

    Raises SetupError: jars-download, jars-checksum or jars-cache.
    """
    folder = cache_dir(env)
    jars = _jars(names, lock)
    missing_jars = [jar for jar in jars if not (folder / jar.file_name).is_file()]
    if missing_jars and not fetch:
        listed = ", ".join(jar.file_name for jar in missing_jars)
        raise SetupError("jars-download", f"jars are missing in {folder}: {listed}", _FETCH_HINT)
    if missing_jars:
        _fetch(missing_jars, folder, java or find_java(env), notify or (lambda _: None), env)
    for jar in jars:
        _verify(jar, folder / jar.file_name, env)
    return tuple(folder / jar.file_name for jar in jars)


def status(names: Sequence[str] | None = None, env: Mapping[str, str] = os.environ) -> list[tuple[str, Path, JarState]]:
    folder = cache_dir(env)
    return [
        (jar.coordinates, folder / jar.file_name, _state(jar, folder / jar.file_name, env))
        for jar in _jars(jar_sets() if names is None else names, LOCK)
    ]


@cache
def _lock(path: Path = LOCK) -> Mapping[str, tuple[Jar, ...]]:
    raw = json.loads(path.read_text(encoding="utf-8"))
    return {name: tuple(Jar(**entry) for entry in entries) for name, entries in raw.items()}


def _jars(names: Iterable[str], lock: Path) -> tuple[Jar, ...]:
    sets = _lock() if lock == LOCK else _lock(lock)
    # A jar of two sets is wanted once.
    return tuple(dict.fromkeys(jar for name in names for jar in sets[name]))


def _state(jar: Jar, path: Path, env: Mapping[str, str]) -> JarState:
    if not path.is_file():
        return JarState.MISSING
    try:
        return JarState.READY if _hash_if_changed(jar, path, env) == jar.sha256 else JarState.DAMAGED
    except OSError:
        return JarState.DAMAGED


def _verify(jar: Jar, path: Path, env: Mapping[str, str]) -> None:
    try:
        actual = _hash_if_changed(jar, path, env)
    except OSError as error:
        hint = "Check its permissions, or delete it and run engine jars fetch."
        raise SetupError("jars-cache", f"the jar {path} cannot be read: {error.strerror}", hint) from error
    if actual != jar.sha256:
        raise _wrong_hash(jar, path, actual, f"Delete {path} and run engine jars fetch.")


def _wrong_hash(jar: Jar, path: Path, actual: str, hint: str) -> SetupError:
    return SetupError(
        "jars-checksum", f"{path.name} is not the locked jar: its sha256 is {actual}, not {jar.sha256}", hint
    )


def _hash_if_changed(jar: Jar, path: Path, env: Mapping[str, str]) -> str:
    """The file's hash; from the stamp in the user's own cache while the file is the one that was hashed.

    A stamp beside the jar would be as good as whoever prepared the folder. The time of the last change (ctime), which
    nobody can set, shows a file that was replaced by one of the same size and time.
    """
    stat = path.stat()
    expected = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino} {jar.sha256}"
    stamps = own_folder("verified", env)
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    if stamps is not None and is_own(stamps / name):
        with suppress(OSError, UnicodeDecodeError):
            if (stamps / name).read_text(encoding="ascii") == expected:
                return jar.sha256
    actual = _sha256(path)
    if actual == jar.sha256 and stamps is not None:
        # Without a place for stamps each start hashes, which is slower but right.
        with suppress(EngineError), TargetFolder(stamps) as folder:
            if len(stale := folder.names("")) > _STAMPS:
                for old_stamp in stale:
                    folder.remove(old_stamp)
            folder.write(name, expected.encode("ascii"))
    return actual


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(
    jars: Sequence[Jar], folder: Path, java: Java, notify: Callable[[str], None], env: Mapping[str, str]
) -> None:
    try:
        if env.get("ENGINE_JARS"):
            folder.mkdir(parents=True, exist_ok=True)
        else:
            create_private(folder)
        _ivy.remove_leftovers(folder)
        # Inside the cache, so that the last step is a rename within one file system.
        with tempfile.TemporaryDirectory(prefix=_ivy.TEMPORARY, dir=folder) as temporary:
            notify(f"downloading {', '.join(jar.file_name for jar in jars)} into {folder}")
            out = _ivy.download([jar.coordinates for jar in jars], Path(temporary), java, env)
            for jar in jars:
                _adopt(jar, out / jar.file_name, folder)
    except OSError as error:
        raise SetupError(
            "jars-cache",
            f"the jar cache {folder} cannot be written: {error.strerror or error}",
            "Set ENGINE_JARS to a folder that can be written, or to one that holds the jars.",
        ) from error


def _adopt(jar: Jar, downloaded: Path, folder: Path) -> None:
    actual = _sha256(downloaded)
    if actual != jar.sha256:
        raise _wrong_hash(jar, downloaded, actual, "The repository served another file: check the mirror.")
    downloaded.replace(folder / jar.file_name)
