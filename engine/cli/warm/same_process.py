"""What a command and the warm process must have in common, so that the work is the same in either."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import engine

# What Python, Java and their libraries read when they start. Everything else is the command's own.
_AT_START = re.compile(
    r"(?:JAVA|JDK|_JAVA|SPARK|PYSPARK|HADOOP|AWS|PYTHON|LD|LC|KRB5|XDG|MALLOC|SSL|REQUESTS|CURL)_?.*|LANG|LANGUAGE"
    r"|TZ|HOME|PATH|USER|LOGNAME|TMPDIR|NO_COLOR|.*_PROXY",
    re.IGNORECASE,
)


def version() -> str:
    """Return what differs when another Python, another Headrace or an edited one would carry out the command."""
    package = Path(engine.__file__).parent
    newest = max(path.stat().st_mtime_ns for path in package.rglob("*.py"))
    return f"{sys.executable} {package} {engine.__version__} {newest}"


def fixed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that count when a process starts."""
    return {name: value for name, value in environment.items() if _AT_START.fullmatch(name)}


def difference(own: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the names of the variables, without values, by which a process would differ; empty: none."""
    mine, theirs = fixed(own), fixed(other)
    return ", ".join(sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)))


def environment() -> dict[str, str]:
    """Return the environment as JSON can have it."""
    return dict(os.environ)
