"""The work of `benchmarks.live` by hand: a query a table with a processing-time trigger, all in one driver.

python -m benchmarks._by_hand_live FOLDER JAR[,JAR..] [SECONDS]
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql.functions import col, from_json

from benchmarks._by_hand import _session

SCHEMA = "id bigint, kind string"
# A model that reads the table of the first one (`benchmarks.live`).
SECOND = "t_second"


def main() -> None:
    folder, jars = Path(sys.argv[1]).resolve(), sys.argv[2]
    seconds = sys.argv[3] if len(sys.argv) > 3 else "1"
    spark = _session(folder / "hand", jars)
    spark.sql("create namespace if not exists lake.main")
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 50)
    inputs = {path.name: reader.json(str(path)) for path in sorted((folder / "landing").iterdir())}
    if (folder / "topics").exists():
        address, *names = (folder / "topics").read_text().splitlines()
        topics = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
        topics = topics.option("startingOffsets", "earliest")
        for name in names:
            values = (
                topics.option("subscribe", name)
                .load()
                .select(from_json(col("value").cast("string"), SCHEMA).alias("v"))
            )
            inputs[name] = values.select("v.*")
    for name, rows in inputs.items():
        table = f"lake.main.t_{name}"
        spark.sql(f"create table {table} ({SCHEMA}) using iceberg")
        # Each query has its share of the cores.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        writer = rows.where("kind <> 'lost'").writeStream
        writer = writer.option("checkpointLocation", f"{folder}/hand/checkpoints/{name}")
        writer.trigger(processingTime=f"{seconds} seconds").toTable(table)
    if (folder / "models" / f"{SECOND}.sql").exists():
        first, second = "lake.main.t_s0", f"lake.main.{SECOND}"
        spark.sql(f"create table {second} ({SCHEMA}) using iceberg")
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", SECOND)
        writer = spark.readStream.format("iceberg").load(first).writeStream
        writer = writer.option("checkpointLocation", f"{folder}/hand/checkpoints/{SECOND}")
        writer.trigger(processingTime=f"{seconds} seconds").toTable(second)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
