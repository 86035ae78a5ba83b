"""What distinguishes a source in the checkpoint of a stream, from its declaration alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FILES, TABLE = "files", "table"
_TOPICS = ("topic", "topics", "topic_pattern", "assign")


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """`kind` is `files`, `table`, or the format of a source; `facts` are plain JSON."""

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def of_settings(format_: str, settings: Mapping[str, Any]) -> StreamIdentity:
    if "path" in settings:
        return StreamIdentity(FILES, {"path": normalized(str(settings["path"])), "format": format_})
    facts: dict[str, Any] = {}
    for key in _TOPICS:
        if key in settings:
            said = settings[key]
            facts = {"pattern": said} if key == "topic_pattern" else {"topics": _names(said)}
            if key == "assign":
                facts["assigned"] = sorted(f"{topic}-{number}" for topic, some in said.items() for number in some)
    return StreamIdentity(format_, facts)


def _names(said: object) -> list[str]:
    return [said] if isinstance(said, str) else sorted(str(name) for name in said)  # type: ignore[attr-defined]


def normalized(path: str) -> str:
    """A path or URI in one spelling, as Hadoop reads it: no `./`, no doubled or trailing slash."""
    scheme, colon, rest = path.partition(":/")
    if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        authority, slash, inside = rest.removeprefix("/").partition("/")
        if scheme == "file" or not rest.startswith("/"):
            return f"{scheme}:{posixpath.normpath('/' + rest.lstrip('/'))}"
        return f"{scheme}://{authority}{posixpath.normpath('/' + inside.lstrip('/')) if slash and inside else ''}"
    return posixpath.normpath(path)
