"""Names of columns that come from data, schemas and registries stay names in every text that Spark parses."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import yaml

from engine.compile.sql.schema_text import read_ddl
from engine.compile.types import spark_types
from engine.runtime.operations.inspect_source import _columns, declaration
from engine.sources.avro.avro_values import AvroColumn, quoted
from engine.sources.avro_schema.avro_columns import columns, ddl
from engine.sources.avro_schema.avro_types import AvroError
from engine.sources.avro_schema.parse_schema import parse

NAMES = (
    "a`b",
    "`",
    "``",
    "a` int, evil string, `x",
    "a b",
    "a:b`:",
    "x>",
    "a,b",
    "a--b",
    "a/*b",
    "'",
    '"',
    "ü",
    "Größe 1",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_a_schema_text_stays_one_name(name: str) -> None:
    (column,) = read_ddl(f"{quoted(name)} int")
    assert (column.name, column.type) == (name, "int")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_inside_a_struct_stays_one_name_when_its_text_is_read_again(name: str) -> None:
    inner = f"struct<{quoted(name)}: struct<{quoted(name)}: int, other: string>>"
    (column,) = read_ddl(f"c {inner}")
    ((outer, rest),) = spark_types.fields(spark_types.normal(str(column.type))) or ()
    assert outer == name
    assert spark_types.fields(rest) == ((name, "int"), ("other", "string"))
    assert read_ddl(f"c {column.type}") == (column,)


@pytest.mark.parametrize("name", NAMES)
def test_the_declaration_that_inspect_prints_reads_back_as_the_same_columns(name: str) -> None:
    spec = SimpleNamespace(format="json", settings={}, options={}, timezone=None, stream=None)
    source = SimpleNamespace(spec=spec, table="t", source="s")
    text = declaration(source, (AvroColumn(name, f"struct<{quoted(name)}: int>"), AvroColumn("other", "string")))
    said = yaml.safe_load(text)["sources"][0]["tables"][0]["schema"]
    first, second = read_ddl(said)
    assert (first.name, second.name) == (name, "other")
    assert spark_types.fields(spark_types.normal(str(first.type))) == ((name, "int"),)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_sampled_data_are_quoted_at_every_depth(name: str) -> None:
    from pyspark.sql.types import ArrayType, IntegerType, MapType, StringType, StructField, StructType

    inner = StructType([StructField(name, IntegerType())])
    nested = StructType([StructField(name, MapType(StringType(), ArrayType(inner)))])
    (column,) = _columns(StructType([StructField(name, nested)])) if not name.startswith("_") else ()
    (read,) = read_ddl(f"{quoted(column.name)} {column.type}")
    ((outer, rest),) = spark_types.fields(spark_types.normal(str(read.type))) or ()
    assert (read.name, outer) == (name, name)
    assert spark_types.fields(spark_types.element(spark_types.entry(rest)[1])) == ((name, "int"),)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_an_avro_schema_is_a_word_or_rejected(name: str) -> None:
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": name, "type": "int"}]})
    if name == "ü":
        assert ddl(parse(text)) == "`ü` int"
        return
    with pytest.raises(AvroError, match="is not a valid field name"):
        columns(parse(text))


@pytest.mark.spark
@pytest.mark.parametrize("name", [n for n in NAMES if n.strip()])
def test_spark_reads_the_text_as_the_same_names(lab, name: str) -> None:
    from pyspark.sql.types import _parse_datatype_string

    assert lab.session.spark is not None
    (field,) = _parse_datatype_string(f"{quoted(name)} struct<{quoted(name)}: int>").fields
    assert (field.name, [f.name for f in field.dataType.fields]) == (name, [name])
