"""Plain PySpark scripts of the work that `benchmarks.streams` measures, as one writes them who knows Spark.

    python -m benchmarks._by_hand WORK FOLDER JAR[,JAR..]

WORK is `session` (open one, end it), `append`, `window`, `upsert`, `batches` or `kafka` (the topic of
`benchmarks.kafka`, of the broker in BOOTSTRAP). FOLDER has the files in `landing/` and gets the tables in `hand/`. The
sources, the results and the batches are those of the models of the benchmarks; there is no check of records, no marker
in commits and no state beside Spark's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "id bigint, at timestamp, kind string, amount double"
SHUFFLES = "4"
RECORD = "id bigint, at timestamp, kind string, amount double, data struct<origin: string, delay: int>"


def main() -> None:
    work, folder, jars = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3]
    spark = _session(folder / "hand", jars)
    works = {"session": _nothing, "append": _append, "window": _window, "upsert": _upsert, "batches": _batches}
    (works | {"kafka": _kafka})[work](spark, folder)
    spark.stop()


def _session(lake: Path, jars: str) -> SparkSession:
    lake.mkdir(exist_ok=True)
    catalog = "spark.sql.catalog.lake"
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", SHUFFLES)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{catalog}.type", "jdbc")
        .config(f"{catalog}.uri", f"jdbc:sqlite:{lake}/catalog.db?journal_mode=WAL&busy_timeout=30000")
        .config(f"{catalog}.jdbc.schema-version", "V1")
        .config(f"{catalog}.warehouse", (lake / "warehouse").as_uri())
        .getOrCreate()
    )


def _nothing(spark: SparkSession, folder: Path) -> None:
    assert folder.is_dir()
    assert spark.range(1).count() == 1


def _events(spark: SparkSession, folder: Path, files_per_batch: int | None = None) -> DataFrame:
    spark.sql("create namespace if not exists lake.main")
    reader = spark.readStream.schema(SCHEMA)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.json(f"{folder}/landing")


def _run(rows: DataFrame, folder: Path, table: str) -> None:
    """Iceberg's native sink."""
    writer = rows.writeStream.option("checkpointLocation", f"{folder}/hand/checkpoints/{table}")
    query = writer.trigger(availableNow=True).toTable(f"lake.main.{table}")
    query.awaitTermination()


def _append(spark: SparkSession, folder: Path) -> None:
    spark.sql("create namespace if not exists lake.main")
    spark.sql(f"create table lake.main.passed_on ({SCHEMA}) using iceberg")
    _run(_events(spark, folder).where("kind <> 'lost'"), folder, "passed_on")


def _window(spark: SparkSession, folder: Path) -> None:
    spark.sql("create namespace if not exists lake.main")
    spark.sql("create table lake.main.hourly (hour timestamp, n bigint, amount double) using iceberg")
    _run(_hourly(_events(spark, folder)), folder, "hourly")


def _hourly(events: DataFrame) -> DataFrame:
    counted = events.withWatermark("at", "10 minutes").groupBy(f.window("at", "1 hour").alias("w"))
    return counted.agg(f.count("*").alias("n"), f.sum("amount").alias("amount")).select(
        f.col("w.start").alias("hour"), "n", "amount"
    )


def _upsert(spark: SparkSession, folder: Path) -> None:
    spark.sql("create namespace if not exists lake.main")
    spark.sql(
        f"create table lake.main.latest ({SCHEMA}) using iceberg "
        "tblproperties ('write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"
    )

    def merge(batch: Any, _: int) -> None:
        newest = f.row_number().over(_newest_first())
        batch.withColumn("n", newest).where("n = 1").drop("n").createOrReplaceTempView("new_rows")
        batch.sparkSession.sql(
            "merge into lake.main.latest t using new_rows s on t.id = s.id "
            "when matched and s.at >= t.at then update set * when not matched then insert *"
        )

    query = (
        _events(spark, folder)
        .writeStream.foreachBatch(merge)
        .option("checkpointLocation", f"{folder}/hand/checkpoints/latest")
        .trigger(availableNow=True)
    )
    query.start().awaitTermination()


def _newest_first() -> Any:
    from pyspark.sql import Window

    return Window.partitionBy("id").orderBy(f.col("at").desc())


def _batches(spark: SparkSession, folder: Path) -> None:
    """A file for each micro-batch: duplicates dropped, then counted by the hour."""
    spark.sql("create namespace if not exists lake.main")
    spark.sql("create table lake.main.hourly (hour timestamp, n bigint, amount double) using iceberg")
    events = _events(spark, folder, 1).withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["id"])
    counted = events.groupBy(f.window("at", "1 hour").alias("w"))
    rows = counted.agg(f.count("*").alias("n"), f.sum("amount").alias("amount"))
    _run(rows.select(f.col("w.start").alias("hour"), "n", "amount"), folder, "hourly")


def _kafka(spark: SparkSession, folder: Path) -> None:
    spark.sql("create namespace if not exists lake.main")
    checkpoint = f"{folder}/hand/checkpoints/events"
    pass_on(spark, os.environ["BOOTSTRAP"], "lake.main.events", 250_000, "true", checkpoint)


def pass_on(spark: SparkSession, address: str, table: str, batch: int, condition: str, checkpoint: str) -> None:
    """Parse, filter, append; no check of records, no marker, no state of its own."""
    spark.sql(
        f"create table {table} (id bigint, at timestamp, kind string, amount double, origin string, delay int) "
        "using iceberg partitioned by (days(at))"
    )
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", "events")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", batch)
        .load()
    )
    parsed = records.select(f.from_json(f.col("value").cast("string"), RECORD).alias("r")).select("r.*")
    rows = parsed.where(condition).selectExpr("id", "at", "kind", "amount", "data.origin", "data.delay")

    def write(frame: Any, _: int) -> None:
        frame.writeTo(table).append()

    query = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query.start().awaitTermination()


if __name__ == "__main__":
    main()
