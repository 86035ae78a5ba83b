"""The local file system of Spark's JVM: Hadoop's, without a process of `chmod` for each file and folder.

`LocalFiles.java` is the source, `local-files.jar` what `scripts/local_files_jar.py` makes of it. Compiled code is in
the package because Spark brings no compiler of Java; a test compiles the source where there is one and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("LocalFiles.java")
JAR: Final = Path(__file__).with_name("local-files.jar")
# For sessions in one JVM: executors of a cluster do not have the jar.
SETTINGS: Final[Mapping[str, str]] = {"spark.hadoop.fs.file.impl": "headrace.LocalFiles"}
