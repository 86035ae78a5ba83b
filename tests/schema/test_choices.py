"""The choices of the schema are those of the code that reads them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from engine.compile.nodes.manifest import Severity
from engine.compile.nodes.materialization import Materialized
from engine.compile.nodes.model_settings import (
    Deletes,
    History,
    OnEmptyExtract,
    OnFail,
    OnNull,
    OnSchemaChange,
    OnUpstreamDelete,
    OutputMode,
    Overwrite,
    Publish,
    Refresh,
    StateProvider,
)
from engine.diagnostics.explanations import explanations
from engine.schema import ValueForm
from engine.schema.all_blocks import BLOCKS
from engine.schema.format_keys import FORMATS
from engine.schema.target_keys import OPENLINEAGE_TYPES
from engine.sources import KINDS, OnBadRecord, kind_of
from engine.sources.avro.reader_schema import Framing
from engine.sources.connection import _MECHANISMS
from engine.sources.values import VALUE_FORMATS, value_format

CHOICES: dict[str, Iterable[str]] = {
    "model.materialized": Materialized, "model.output_mode": OutputMode, "model.overwrite": Overwrite,
    "model.deletes": Deletes, "model.on_empty_extract": OnEmptyExtract, "model.publish": Publish, "model.on_schema_change": OnSchemaChange, "model.format_version": ("2", "3"),
    "model.refresh": Refresh, "model.history": ("true", "false", History.CHANGES),
    "expectation.on_fail": OnFail, "watermark.on_null": OnNull, "state_store.provider": StateProvider,
    "stream.on_upstream_delete": OnUpstreamDelete, "iceberg.on_upstream_delete": OnUpstreamDelete,
    "stream.on_bad_record": OnBadRecord, "source_table.on_bad_record": OnBadRecord, "reading.on_bad_record": OnBadRecord,
    "data_test.severity": Severity, "test_config.severity": Severity,
    "value.format": VALUE_FORMATS, "value.framing": Framing, "security.mechanism": _MECHANISMS,
    "openlineage.type": OPENLINEAGE_TYPES, "rows.format": ("dict", "csv", "sql"), "given.format": ("dict", "csv", "sql"),
    "expect.format": ("dict", "csv", "sql"), "source_file.version": ("2",), "unit_test_file.version": ("2",), "exposure_file.version": ("2",),
}  # fmt: skip
# Whoever reads them takes the choices from the schema itself.
TAKEN = {
    "model.acknowledge",
    "source_table.acknowledge",
    "catalog.type",
    "security.protocol",
    "files.on_changed_file",
    "files.full_extracts",
    "files.after_reading",
    "kafka.on_tombstone",
    "value.on_truncate",
    "age.period",
    "exposure.type",
    "exposure.maturity",
    "sink.changes",
    "sink.start",
}
ALL = {f"{block.name}.{key.name}": key.choices for block in BLOCKS.values() for key in block.keys if key.choices}


def test_every_key_with_choices_is_compared() -> None:
    assert {*CHOICES, *TAKEN} == set(ALL)


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_those_of_the_code(name: str) -> None:
    assert sorted(ALL[name]) == sorted(str(choice) for choice in CHOICES[name])


def test_every_warning_of_compile_about_one_node_can_be_acknowledged() -> None:
    found = {e.code for e in explanations().values() if "warning" in e.levels and "compile" in e.found}
    # Of the text of files, of the project, of targets; and the one about the key itself.
    found -= {"trojan-source", "no-models", "plain-http", "acknowledge-unused", "unread-file", "vars-unused"}
    assert {*ALL["model.acknowledge"], *ALL["source_table.acknowledge"]} == found


def test_formats_have_the_keys_of_their_kind() -> None:
    assert set(FORMATS) == set(KINDS)
    for name, block in FORMATS.items():
        assert block.forms == KINDS[name].KEYS
        assert name in KINDS[name].FORMATS
    reader = kind_of("spark.xml")
    assert reader is not None
    assert BLOCKS["spark_reader"].forms == reader.KEYS
    forms = [form for name in VALUE_FORMATS if (form := value_format(name)) is not None]
    assert {key for form in forms for key in form.KEYS} == BLOCKS["value"].names


def test_a_form_that_reads_other_keys_names_their_block() -> None:
    forms = {ValueForm.BLOCK, ValueForm.BLOCKS, ValueForm.BY_NAME, ValueForm.TESTS}
    for block in BLOCKS.values():
        for key in block.keys:
            assert bool(key.block) or not forms & {key.form, *key.also}, f"{block.name}.{key.name}"
