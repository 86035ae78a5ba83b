"""The lists of options are those that Spark and Iceberg have."""

from __future__ import annotations

from typing import Any

import pytest

from engine import spark_options
from tests.lab import LabSession

pytestmark = pytest.mark.spark

REGISTERED = {
    "JSON": "catalyst.json.JSONOptions",
    "CSV": "catalyst.csv.CSVOptions",
    "XML": "catalyst.xml.XmlOptions",
    "PARQUET": "execution.datasources.parquet.ParquetOptions",
    "ORC": "execution.datasources.orc.OrcOptions",
    "PLAIN_TEXT": "execution.datasources.text.TextOptions",
    "AVRO": "avro.AvroOptions",
}
# What Kafka's provider has beside options: texts, and one for its own tests.
_OF_KAFKA = ("_OPTION_KEY", "_KEY", "MIN_PARTITIONS_OPTION_KEY", "TRIGGER", "DELAY", "NUM_RETRY", "INTERVAL_MS",
             "TIMEOUT", "PREFIX", "INCLUDE_HEADERS", "ASSIGN", "SUBSCRIBE", "SUBSCRIBE_PATTERN")  # fmt: skip


def lower(names: Any) -> set[str]:
    return {str(name).lower() for name in names}


def companion(spark: Any, name: str) -> Any:
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    return loader.loadClass(f"org.apache.spark.sql.{name}$").getField("MODULE$").get(None)


def registered(spark: Any, name: str) -> set[str]:
    names = companion(spark, name).getAllOptions().toSeq()
    return lower(names.apply(i) for i in range(names.size()))


def constants(spark: Any, name: str) -> dict[str, str]:
    """The texts that a Scala object has as values, by the name of each."""
    owner = companion(spark, name)
    nothing = spark.sparkContext._gateway.new_array(spark._jvm.Object, 0)
    found = {}
    for method in owner.getClass().getDeclaredMethods():
        if method.getParameterCount() == 0 and method.getReturnType().getName() == "java.lang.String":
            method.setAccessible(True)
            found[method.getName().rpartition("$")[2]] = method.invoke(owner, nothing)
    return found


def fields(spark: Any, name: str) -> set[str]:
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    found = loader.loadClass(f"org.apache.iceberg.spark.{name}").getFields()
    return lower(field.get(None) for field in found if not field.getName().endswith("_DEFAULT"))


def test_the_lists_are_those_of_the_jars(lab_session: LabSession) -> None:
    spark = lab_session.spark
    for ours, theirs in REGISTERED.items():
        assert lower(getattr(spark_options, ours)) == registered(spark, theirs), ours
    assert lower(spark_options.RATE) == lower(
        text
        for name, text in constants(spark, "execution.streaming.sources.RateStreamProvider").items()
        if name.isupper()
    )
    kafka = {
        text.lower()
        for name, text in constants(spark, "kafka010.KafkaSourceProvider").items()
        if name.endswith(_OF_KAFKA) and not name.startswith("DEFAULT_")
    }
    assert lower(spark_options.KAFKA) == kafka
    assert lower(spark_options.ICEBERG_READ) == fields(spark, "SparkReadOptions")
    assert lower(spark_options.ICEBERG_WRITE) == fields(spark, "SparkWriteOptions")
    of_folders = registered(spark, "execution.datasources.FileIndexOptions")
    of_files = lower(constants(spark, "catalyst.FileSourceOptions").values())
    of_streams = {"maxfilespertrigger", "maxbytespertrigger", "maxfileage", "latestfirst", "filenameonly", "cleansource",
                  "sourcearchivedir", "maxcachedfiles", "discardcachedinputratio", "path"}  # fmt: skip
    assert lower(spark_options.FILES) == of_folders | {"ignorecorruptfiles", "ignoremissingfiles"} | of_streams
    assert {"ignorecorruptfiles", "ignoremissingfiles"} <= of_files
