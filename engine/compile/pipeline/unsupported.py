"""Settings that this version compiles and cannot run yet; a build rejects them instead of ignoring them.

Which options of Iceberg's writer a MERGE reads from its session is in Iceberg's `SparkWriteConf` (1.12.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.compile.nodes.manifest import Model
from engine.compile.nodes.model_settings import Publish
from engine.errors import Diagnostic, Location

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


_HINT = "Remove it."


def unsupported_settings(model: Model) -> tuple[Diagnostic, ...]:
    """The settings in use that a build of this version cannot honour, each at its place."""
    return tuple(_finding(model, *setting) for setting in _unsupported_writes(model))


def _finding(model: Model, key: str, feature: str, hint: str = _HINT) -> Diagnostic:
    places = model.positions.settings
    place = places.get(key) or places.get(key.partition(".")[0]) or Location(model.file)
    message = f"{feature} is not supported yet"
    return Diagnostic("not-supported", message, hint, node=model.name, location=place)


def _unsupported_writes(model: Model) -> Iterator[tuple[str, str] | tuple[str, str, str]]:
    write = model.write
    for option, instead in unfit_options(write.write_options) if write.unique_key else ():
        # As a setting of the session or a property set for the commit it would count for other writers, or not at all.
        hint = f"Set it for the table, table_properties: {{{instead}: ..}}, " if instead else "Remove it, "
        hint += f"or use one that applies to MERGE: {', '.join(TAKEN)}, snapshot-property.<name>."
        yield "write_options", f"the option '{option}' of 'write_options' with a 'unique_key'", hint
    if write.publish is Publish.ON_TESTS_PASS and model.relation.sql in model.sql:
        # The query would read what readers see, not what waits.
        yield "publish", "publish: on_tests_pass of a query that reads {{ this }}"


def unfit_options(options: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The options that MERGE does not take, each with the table property for it; None: there is none."""
    for key in options:
        if key.lower() not in TAKEN and not key.lower().startswith(_SUMMARY):
            yield key, _PROPERTIES.get(key.lower())
