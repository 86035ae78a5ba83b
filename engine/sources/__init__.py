"""Sources: one module a kind. A kind knows its keys, its columns, how it is read, and where it is now."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata

from engine.schema import ValueForm
from engine.sources import iceberg, kafka, rate, spark_reader
from engine.sources.credentials import masked
from engine.sources.files import file_source
from engine.sources.socket import socket_source
from engine.sources.spec import BAD, ORIGIN, Kind, OnBadRecord, Place, Resumption, SourceSpec, SpecFault

# Other packages bring kinds as entry points of this group: name = format, value = the module.
ENTRY_POINTS = "headrace.sources"

_OWN: list[Kind] = [file_source, iceberg, kafka, rate, socket_source]


class _Kinds(dict[str, Kind]):
    """The kinds by format; those of other packages, and Spark's own readers, are found when they are asked for."""

    def __missing__(self, format_: str) -> Kind:
        if format_.startswith(spark_reader.PREFIX):
            return spark_reader
        for point in metadata.entry_points(group=ENTRY_POINTS, name=format_):
            return self.setdefault(format_, point.load())
        raise KeyError(format_)


# format -> the module that reads it
KINDS = _Kinds({name: kind for kind in _OWN for name in kind.FORMATS})

__all__ = [
    "BAD",
    "KINDS",
    "ORIGIN",
    "Kind",
    "OnBadRecord",
    "Place",
    "Resumption",
    "SourceSpec",
    "SpecFault",
    "ValueForm",
    "kind_of",
    "knows_columns",
    "limited",
    "location",
]


def kind_of(format_: str) -> Kind | None:
    """The kind that reads a format; None if there is none."""
    try:
        return KINDS[format_]
    except KeyError:
        return None


def knows_columns(spec: SourceSpec) -> bool:
    """Whether all columns are known before the source is read: they are declared, or the same for all of its kind."""
    kind = kind_of(spec.format)
    return bool(spec.schema) or kind is None or kind.columns(spec) != ""


def limited(spec: SourceSpec, max_files: int | None) -> SourceSpec:
    """The source with a model's own number of files in a micro-batch."""
    return replace(spec, settings={**spec.settings, "max_files_per_trigger": max_files}) if max_files else spec


def location(spec: SourceSpec) -> str:
    """Where a source is, for people, with possible credentials masked; empty if its format is unknown."""
    kind = kind_of(spec.format)
    return masked(kind.location(spec), "location") if kind else ""
