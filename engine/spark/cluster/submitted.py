"""A driver that spark-submit started: its JVM is there before Python, and belongs to the cluster manager."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# Set by the script that spark-submit runs (engine/cli/commands/submitted_main.py).
SUBMITTED: Final = "ENGINE_SUBMITTED"
# What the JVM was started with, or the cluster manager decides.
_DECIDED: Final = ("spark.master", "spark.jars", "spark.driver.", "spark.submit.")


def is_submitted(env: Mapping[str, str] = os.environ) -> bool:
    return bool(env.get(SUBMITTED)) and "PYSPARK_GATEWAY_PORT" in env


def runtime_conf(conf: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in conf.items() if not key.startswith(_DECIDED)}


@dataclass(frozen=True, slots=True)
class SubmittedJvm:
    """The JVM that started this process, and ends when it has ended; the cluster manager has what it prints."""

    log: Path
    pid: int = field(default_factory=os.getppid)
    missed: None = None

    @property
    def alive(self) -> bool:
        return os.getppid() == self.pid

    def stop(self, _: float = 0.0) -> None:
        """Do nothing: spark-submit ends with the exit code of this process."""
