"""What a record holds, apart from where it came from: JSON, changes of Debezium, Avro, text, bytes.

A format takes frames of `__raw` (binary) and `_metadata`, and gives the declared columns, `_metadata` and `__bad`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from engine.schema import ValueForm
from engine.sources.spec import Place, SourceSpec, SpecFault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ValueFormat(Protocol):
    """A module with these names; its settings are those of `value:`, of which KEYS are its own."""

    KEYS: Mapping[str, ValueForm]

    def faults(self, spec: SourceSpec, value: Mapping[str, Any], /) -> Iterable[SpecFault]: ...

    def columns(self, value: Mapping[str, Any], /) -> str | None:
        """The columns it brings, as DDL; empty: known when it is read; None: it needs a schema."""

    def jars(self) -> Sequence[str]:
        """The sets of locked jars it needs."""

    def decode(self, frame: DataFrame, spec: SourceSpec, value: Mapping[str, Any], place: Place, /) -> DataFrame:
        """Columns, `_metadata` and `__bad` from `__raw` and `_metadata`."""


# The module of a format, by the name in `value: {format: ...}`.
VALUE_FORMATS = {
    "json": "engine.sources.values.json_values",
    "debezium": "engine.sources.values.debezium_values",
    "string": "engine.sources.values.plain_values",
    "bytes": "engine.sources.values.plain_values",
    "avro": "engine.sources.avro.avro_values",
}

__all__ = ["VALUE_FORMATS", "ValueFormat", "value_format"]


def value_format(name: object) -> ValueFormat | None:
    """The format of a name, imported when it is asked for: Avro's takes 40 ms. None: there is none."""
    module = VALUE_FORMATS.get(name) if isinstance(name, str) else None
    if module is None:
        return None
    imported: ValueFormat = import_module(module)
    return imported
