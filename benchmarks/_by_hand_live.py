"""The work of `benchmarks.live` by hand: a query a table with a processing-time trigger, all in one driver.

python -m benchmarks._by_hand_live FOLDER JAR[,JAR..] [SECONDS]
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks._by_hand import _session

SCHEMA = "id bigint, kind string"


def main() -> None:
    folder, jars = Path(sys.argv[1]).resolve(), sys.argv[2]
    seconds = sys.argv[3] if len(sys.argv) > 3 else "1"
    spark = _session(folder / "hand", jars)
    spark.sql("create namespace if not exists lake.main")
    for source in sorted((folder / "landing").iterdir()):
        table = f"lake.main.t_{source.name}"
        spark.sql(f"create table {table} ({SCHEMA}) using iceberg")
        # Each query has its share of the cores.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", source.name)
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 50)
        rows = reader.json(str(source)).where("kind <> 'lost'")
        writer = rows.writeStream.option("checkpointLocation", f"{folder}/hand/checkpoints/{source.name}")
        writer.trigger(processingTime=f"{seconds} seconds").toTable(table)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
