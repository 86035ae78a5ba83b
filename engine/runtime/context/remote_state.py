"""What a session needs so that Spark writes checkpoints to a bucket."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from engine.compile import Target
from engine.object_store.s3_settings import S3Settings, hadoop_conf

JARS = ("s3",)
# Without it Spark writes a file of a checkpoint under another name and renames it, which in a bucket is a copy: whoever
# reads meanwhile finds half of it, and a kill leaves both. This one writes an object that is there whole or not at all.
CHECKPOINT_FILES: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    ),
    # S3A sends a sum with each object, and the store compares it.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}


def state_jars(target: Target) -> tuple[str, ...]:
    """Return the sets of jars by which Spark reaches the state of a target."""
    return () if isinstance(target.state, Path) else JARS


def state_conf(target: Target) -> Mapping[str, str]:
    """Return the settings by which Spark reaches the state of a target, with secrets."""
    if isinstance(target.state, Path):
        return {}
    return hadoop_conf(target.s3() if target.s3 is not None else S3Settings())
