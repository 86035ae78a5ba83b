"""Code in Spark's JVM that reads records: what Spark's own readers turn into other values.

`JsonRecords.java` reads JSON objects, `CsvFormat.java` files of CSV, `FolderValues.java` the columns in names of
folders. `TextValues.java` is the one place that says which text is a value of which type. `Lz4Codec.java`,
`SnappyCodec.java` and `BZip2Codec.java` read compressed files as all tools write them, and reject others.
`record-readers.jar` is what `scripts/java_jars.py` makes of them, for the driver and for executors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

SOURCES: Final = tuple(sorted(Path(__file__).parent.glob("*.java")))
JAR: Final = Path(__file__).with_name("record-readers.jar")
# Hadoop takes the last codec of a list for a suffix: those that a user adds come behind these.
CODECS: Final = ("spark.hadoop.io.compression.codecs", "headrace.Lz4Codec,headrace.SnappyCodec,headrace.BZip2Codec")
