"""Options of Iceberg's writer that a MERGE takes: it has none of its own, and reads some from its session.

Which ones is Iceberg's `SparkWriteConf` (1.12.0): for the others there is a property of the table, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_SUMMARY = "snapshot-property."
TAKEN = (
    "advisory-partition-size",
    "compression-codec",
    "compression-level",
    "compression-strategy",
    "distribution-mode",
    "shred-variants",
    "variant-inference-buffer-size",
)
# What is a property of the table instead.
_PROPERTIES = {
    "target-file-size-bytes": "write.target-file-size-bytes",
    "target-delete-file-size-bytes": "write.delete.target-file-size-bytes",
    "write-format": "write.format.default",
    "delete-format": "write.delete.format.default",
    "delete-granularity": "write.delete.granularity",
    "fanout-enabled": "write.spark.fanout.enabled",
    "isolation-level": "write.merge.isolation-level",
}


def unfit(options: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The options that MERGE does not take, each with the table property for it; None: there is none."""
    for key in options:
        if key.lower() not in TAKEN and not key.lower().startswith(_SUMMARY):
            yield key, _PROPERTIES.get(key.lower())
