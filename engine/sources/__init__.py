"""Sources: one module a kind, which knows its keys, its columns, how it is read, and where it is now (`Kind`).

All else it answers in its `TRAITS` (`SourceTraits`): nobody outside asks what a format is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import replace
from importlib import import_module

from engine.schema import ValueForm
from engine.sources.credentials import masked
from engine.sources.spec import BAD, ORIGIN, SPARK_READER, Kind, OnBadRecord, Place, Resumption, SourceSpec, SpecFault
from engine.sources.traits import UNKNOWN, FileTraits, SourceTraits, TableTraits

# Other packages bring kinds as entry points of this group: name = format, value = the module.
ENTRY_POINTS = "headrace.sources"

_FILES = "engine.sources.files.file_source"
# format -> the module that reads it, in the order of messages: the one list of them
BUILT_IN = {
    **dict.fromkeys(("json", "csv", "parquet", "avro", "orc", "text"), _FILES),
    "iceberg": "engine.sources.iceberg",
    "kafka": "engine.sources.kafka.topics",
    "rate": "engine.sources.rate",
    "socket": "engine.sources.socket",
}


class _Kinds(MutableMapping[str, Kind]):
    """Kinds by format, imported on request; those of other packages and Spark's readers are found, but not listed."""

    def __init__(self, modules: dict[str, str]) -> None:
        self._kinds: dict[str, str | Kind] = dict(modules)

    def __getitem__(self, format_: str) -> Kind:
        if format_.startswith(SPARK_READER):
            return _module(f"{__name__}.spark_reader")
        kind = self._kinds.get(format_)
        if kind is None:
            kind = self._kinds[format_] = _of_other_package(format_)
        elif isinstance(kind, str):
            kind = self._kinds[format_] = _module(kind)
        return kind

    def __setitem__(self, format_: str, kind: Kind) -> None:
        self._kinds[format_] = kind

    def __delitem__(self, format_: str) -> None:
        del self._kinds[format_]

    def __contains__(self, format_: object) -> bool:
        return format_ in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


def _module(name: str) -> Kind:
    kind: Kind = import_module(name)
    return kind


def _of_other_package(format_: str) -> Kind:
    from importlib import metadata

    for point in metadata.entry_points(group=ENTRY_POINTS, name=format_):
        kind: Kind = point.load()
        return kind
    raise KeyError(format_)


# format -> the module that reads it
KINDS = _Kinds(BUILT_IN)

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
    "file_traits",
    "kind_of",
    "knows_columns",
    "limited",
    "location",
    "source_traits",
    "table_traits",
]


def kind_of(format_: str) -> Kind | None:
    """The kind that reads a format; None if there is none."""
    try:
        return KINDS[format_]
    except KeyError:
        return None


def source_traits(format_: str) -> SourceTraits:
    traits_by_format: Mapping[str, SourceTraits] = getattr(kind_of(format_), "TRAITS", {}) if format_ else {}
    return traits_by_format.get(SPARK_READER if format_.startswith(SPARK_READER) else format_, UNKNOWN)


def table_traits(spec: SourceSpec) -> TableTraits:
    """How a source that is a table is read; raise TypeError if it is none."""
    if (table := source_traits(spec.format).table) is None:
        raise TypeError(spec.format)
    return table


def file_traits(spec: SourceSpec) -> FileTraits:
    """How the files of a source are read; raise TypeError if it has none."""
    if (files := source_traits(spec.format).files) is None:
        raise TypeError(spec.format)
    return files


def knows_columns(spec: SourceSpec) -> bool:
    kind = kind_of(spec.format)
    return bool(spec.schema) or kind is None or kind.columns(spec) != ""


def limited(spec: SourceSpec, max_files: int | None) -> SourceSpec:
    return replace(spec, settings={**spec.settings, "max_files_per_trigger": max_files}) if max_files else spec


def location(spec: SourceSpec) -> str:
    """Where a source is, for people, with possible credentials masked; empty if its format is unknown."""
    kind = kind_of(spec.format)
    return masked(kind.location(spec), "location") if kind else ""
