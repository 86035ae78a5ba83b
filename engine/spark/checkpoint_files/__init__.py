"""Code in Spark's JVM that writes and reads checkpoints: files that are created once, and compared when they are read.

`CheckpointFiles.java` takes the place of Spark's own managers of a checkpoint's files, on disks and in buckets;
`StateObjects.java` is Hadoop's S3A for what RocksDB reads and writes without them. Both share `SummedFile.java`: an
object with the sum of its content. `checkpoint-files.jar` is what `scripts/java_jars.py` makes of them, for the driver
and for executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOURCES: Final = tuple(sorted(Path(__file__).parent.glob("*.java")))
JAR: Final = Path(__file__).with_name("checkpoint-files.jar")
# Sums are compared already: Hadoop's beside each file of a local disk, and those that objects of a bucket carry.
SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.streaming.checkpointFileManagerClass": "headrace.CheckpointFiles",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
# Where the state is in a bucket.
OBJECT_SETTINGS: Final[Mapping[str, str]] = {"spark.hadoop.fs.s3a.impl": "headrace.StateObjects"}
