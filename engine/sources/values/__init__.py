"""What a record holds, apart from where it came from: JSON, Avro, text, bytes.

A format takes frames of `__raw` (binary) and `_metadata`, and gives the declared columns, `_metadata` and `__bad`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from engine.schema import ValueForm
from engine.sources import avro
from engine.sources.spec import Place, SourceSpec, SpecFault
from engine.sources.values import json_values, plain_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ValueFormat(Protocol):
    """A format of values: a module with these names. Its settings are those of `value:`.

    Attributes:
        KEYS: keys of `value:` that it has, with the form of each.
    """

    KEYS: Mapping[str, ValueForm]

    def faults(self, spec: SourceSpec, value: Mapping[str, Any], /) -> Iterable[SpecFault]:
        """What is wrong with its settings."""

    def columns(self, value: Mapping[str, Any], /) -> str | None:
        """The columns it brings, as DDL; empty: known when it is read; None: it needs a schema."""

    def jars(self) -> Sequence[str]:
        """The sets of locked jars it needs."""

    def decode(self, frame: DataFrame, spec: SourceSpec, value: Mapping[str, Any], place: Place, /) -> DataFrame:
        """Columns, `_metadata` and `__bad` from `__raw` and `_metadata`."""


# By the name in `value: {format: ...}`.
VALUE_FORMATS: dict[str, ValueFormat] = {
    "json": json_values,
    "string": plain_values,
    "bytes": plain_values,
    "avro": avro,
}

__all__ = ["VALUE_FORMATS", "ValueFormat"]
