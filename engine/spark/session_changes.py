"""Whether a session that is open is still what it should be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from engine import local_paths
from engine.spark.session import SessionSettings

_MOST_NAMES: Final = 3
# Settings that name files which Java reads when it starts.
_FILES: Final = ("spark.jars", "spark.driver.extraClassPath", "spark.files", "spark.submit.pyFiles")

Stamps = Mapping[str, tuple[int, int, int]]


def why_restart(made: SessionSettings, wanted: SessionSettings, stamps: Stamps) -> str:
    """Return why another session is needed, without secret values; empty: the one that is open will do."""
    if made.master != wanted.master:
        return f"spark master is now {wanted.master}"
    changed = sorted(key for key in {*made.conf, *wanted.conf} if made.conf.get(key) != wanted.conf.get(key))
    if changed:
        return f"{_listed(changed)} changed"
    missing = [path.name for path in wanted.jar_paths if path not in made.jar_paths]
    if missing:
        return f"it needs {_listed(missing)}"
    if made.umask != wanted.umask:
        return "the permissions of the lake's folder changed"
    if made.java != wanted.java:
        return "Java is another one"
    replaced = sorted(name for name, stamp in file_stamps(wanted.conf).items() if stamps.get(name) != stamp)
    return f"{_listed(Path(name).name for name in replaced)} was replaced" if replaced else ""


def file_stamps(conf: Mapping[str, str]) -> Stamps:
    found = {}
    for key in _FILES:
        for part in conf.get(key, "").replace(":/", "\0/").replace(":", ",").replace("\0/", ":/").split(","):
            path = Path(local_paths.of_location(local_paths.decoded(part.strip())) or part.strip())
            try:
                stat = path.stat()
            except (OSError, ValueError):
                continue
            if part.strip() and path.is_file():
                found[str(path)] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return found


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    rest = len(listed) - _MOST_NAMES
    return ", ".join(listed[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
