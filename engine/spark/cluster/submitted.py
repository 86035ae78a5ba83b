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
    """Whether spark-submit started this process."""
    return bool(env.get(SUBMITTED)) and "PYSPARK_GATEWAY_PORT" in env


def runtime_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session that its JVM does not have yet; secrets are among them only."""
    return {key: value for key, value in conf.items() if not key.startswith(_DECIDED)}


@dataclass(frozen=True, slots=True)
class SubmittedJvm:
    """The JVM that started this process, and ends when it has ended.

    Attributes:
        log: where messages point to; the cluster manager has what the JVM prints.
        pid: of the JVM.
    """

    log: Path
    pid: int = field(default_factory=os.getppid)
    missed: None = None

    @property
    def alive(self) -> bool:
        """Whether it is still this process's parent."""
        return os.getppid() == self.pid

    def stop(self, _: float = 0.0) -> None:
        """No-op: spark-submit ends with the exit code of this process."""
