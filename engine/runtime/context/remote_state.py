"""What a session needs so that Spark writes checkpoints to a bucket."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.compile import Target
from engine.object_store.s3_settings import S3Settings, hadoop_conf
from engine.spark.checkpoint_files import OBJECT_SETTINGS

JARS = ("s3",)


def state_jars(target: Target) -> tuple[str, ...]:
    return () if isinstance(target.state, Path) else JARS


def state_conf(target: Target) -> Mapping[str, str]:
    if isinstance(target.state, Path):
        return {}
    return {**hadoop_conf(target.s3() if target.s3 is not None else S3Settings()), **OBJECT_SETTINGS}
