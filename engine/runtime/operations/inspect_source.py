"""`engine source inspect`: the declaration of a source with the columns that it has now."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from engine.compile import Manifest, Source, Target
from engine.errors import Diagnostic, RunError, SetupError
from engine.lake.catalog import catalog_settings
from engine.runtime.build import spark_session
from engine.runtime.context.run_context import CORE
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary
from engine.sources import KINDS, source_traits
from engine.sources.avro import avro_values
from engine.sources.credentials import masked_options, shown_setting
from engine.sources.spec import BAD, Place, SourceSpec
from engine.sources.values import debezium_sample
from engine.sources.values.declared_value import value_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType


_WIDTH = 110


class _Lines(str):
    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, indentless=False)


_Dumper.add_representer(_Lines, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, "|"))


def unreadable_settings(source: Source, manifest: Manifest) -> tuple[Diagnostic, ...]:
    spec_faults = KINDS[source.spec.format].faults(source.spec)
    faults = {fault.message for fault in spec_faults if fault.path[0] != "schema" and fault.path != ("value", "key")}
    return tuple(error for error in manifest.errors if error.node == source.name and error.message in faults)


def inspect(source: Source, target: Target, root: Path, target_dir: Path) -> str:
    """The declaration of a source as YAML, with the columns that a registry or a sample shows.

    Raises EngineError: it cannot be reached, or has nothing that shows its columns.
    """
    columns = _known_columns(source.spec, target.place(root))
    return declaration(source, columns) if columns is not None else _sampled(source, target, root, target_dir)


def _known_columns(spec: SourceSpec, place: Place) -> tuple[avro_values.AvroColumn, ...] | None:
    """The columns that can be had without looking at records, and without Java; None if they cannot.

    Raises:
        SetupError: a registry cannot be asked, or has no such schema; there is no such table.
    """
    columns_now = source_traits(spec.format).columns_now
    columns = columns_now(spec, place) if columns_now is not None else None
    return tuple(avro_values.AvroColumn(*column) for column in columns) if columns is not None else None


def _sample_columns(session: SparkSession, spec: SourceSpec, place: Place) -> StructType:
    """The columns of a sample of records.

    Raises:
        SetupError: `sample-empty`, there are none.
        RunError: `source-unreadable`, a record of JSON is an array.
    """
    read_sample = source_traits(spec.format).sampled
    kind = KINDS[spec.format]
    schema = (
        read_sample(session, spec, place) if read_sample else kind.read_batch(session, spec, place).drop(BAD).schema
    )
    if not schema.fields:
        message = f"the source '{spec.name}' has no records to infer columns from"
        raise SetupError("sample-empty", message, "Land or send records, and run the command again.")
    return schema


def _sampled(source: Source, target: Target, root: Path, target_dir: Path) -> str:
    spec, place = source.spec, target.place(root)
    KINDS[spec.format].check(spec, place)
    catalog_settings.prepare(target.catalog)
    with spark_session(target, target_dir, sets=(*CORE, *KINDS[spec.format].jars(spec)), brief=True) as spark:
        try:
            traits = source_traits(spec.format)
            if (feed := traits.change_feed(spec)) is not None and feed.shows_declaration:
                return _of_changes(source, traits.change_records(spark, spec, place))
            return declaration(source, _columns(_sample_columns(spark, spec, place)))
        except spark_exceptions() as error:
            message = f"'{source.name}' cannot be read: {summary(str(error))}"
            hint = f"Check 'format', 'path' and 'options' of the source in {source.file}."
            raise RunError("source-unreadable", message, hint) from error


def _of_changes(source: Source, records: list[tuple[bytes | None, bytes | None]]) -> str:
    """The declaration of a source of change records; comments say what its connector may lose."""
    sample = debezium_sample.sample_of(records)
    if sample is None:
        message = f"the source '{source.name}' has no change of a row to infer columns from"
        raise SetupError("sample-empty", message, "Land or send records, and run the command again.")
    value = {**value_of(source.spec), "key": list(sample.key)}
    spec = replace(source.spec, settings={**source.spec.settings, "value": value})
    columns = tuple(avro_values.AvroColumn(name, type_) for name, type_ in sample.columns)
    notes = "".join(f"# {line}\n" for note in sample.notes for line in textwrap.wrap(note, _WIDTH))
    return notes + declaration(replace(source, spec=spec), columns)


def _columns(schema: StructType) -> tuple[avro_values.AvroColumn, ...]:
    fields = [field for field in schema.fields if not field.name.startswith("_")]
    return tuple(avro_values.AvroColumn(f.name, _type(f.dataType)) for f in fields)


def _type(type_: DataType) -> str:
    """A type as DDL; the names inside come from the data, and Spark's own text does not quote them."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, StructType):
        return f"struct<{', '.join(f'{avro_values.quoted(f.name)}: {_type(f.dataType)}' for f in type_.fields)}>"
    if isinstance(type_, ArrayType):
        return f"array<{_type(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"map<{_type(type_.keyType)}, {_type(type_.valueType)}>"
    return type_.simpleString().replace(",", ", ")


def declaration(source: Source, columns: tuple[avro_values.AvroColumn, ...]) -> str:
    spec = source.spec
    table: dict[str, Any] = {"name": source.table, "format": spec.format}
    kind = KINDS[spec.format]
    table |= {key: _plain_value(shown_setting(spec.settings[key], key)) for key in kind.KEYS if key in spec.settings}
    table |= {"options": masked_options(spec.options)} if spec.options else {}
    table |= {key: value for key, value in (("timezone", spec.timezone), ("stream", spec.stream)) if value is not None}
    table["schema"] = _Lines(
        ",\n".join(f"{avro_values.quoted(column.name)} {column.type}" for column in columns) + "\n"
    )
    if docs := {column.name: column.doc for column in columns if column.doc}:
        table["columns"] = docs
    tree = {"sources": [{"name": source.source, "tables": [table]}]}
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def _plain_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: inner for key, inner in value.items() if key != avro_values.SCHEMA_TEXT}
    return list(value) if isinstance(value, tuple) else value
