"""Code in Spark's JVM: its local file system, what finds the extensions of a session, and a rule of its optimiser.

`LocalFiles.java` is Hadoop's file system without a process of `chmod` for each file and folder, `SessionLoader.java` a
class loader that leaves out an extension that takes half a second, `StreamJoins.java` the rule by which joins of
streams give the rows of SQL. `local-files.jar` is what `scripts/java_jars.py` makes of them. Compiled code is in
the package because Spark brings no compiler of Java; a test compiles the sources where there is one and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_CLASSES: Final = ("LocalFiles", "SessionLoader", "StreamJoins")
SOURCES: Final = tuple(Path(__file__).with_name(f"{name}.java") for name in _CLASSES)
JAR: Final = Path(__file__).with_name("local-files.jar")
# For sessions in one JVM: executors of a cluster do not have the jar.
SETTINGS: Final[Mapping[str, str]] = {"spark.hadoop.fs.file.impl": "headrace.LocalFiles"}
