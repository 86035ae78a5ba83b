"""Java ends in the middle of a run: out of memory, or by somebody else's hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import Diagnostic
from engine.spark.exceptions import spark_exceptions
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What the JVM prints as its last line when it ends itself.
_OUT_OF_MEMORY = "Terminating due to java.lang.OutOfMemoryError"
_TAIL_BYTES = 4096


def java_ended(spark: SparkSession, log: Path) -> Diagnostic | None:
    """Say that the Java of a session is gone, with the reason that its log gives; None: it is there."""
    try:
        jvm_of(spark).java.lang.System.nanoTime()
    except spark_exceptions():
        pass
    else:
        return None
    if _OUT_OF_MEMORY in _tail(log):
        message = "the Java process ran out of memory"
        hint = (
            "Increase the driver's memory ('driver_memory: 4g' under 'spark' of the target), or reduce "
            f"micro-batches (max_files_per_trigger). The next build continues from here. See {log}."
        )
        return Diagnostic("java-ended", message, hint)
    hint = f"The operating system may have killed it for lack of memory. The next build continues from here. See {log}."
    return Diagnostic("java-ended", "the Java process ended during the run", hint)


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
