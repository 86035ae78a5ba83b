"""Moving a stream of tables past commits that bring it no rows, in Spark's checkpoint.

A stream stops at the last commit that had rows for it, and cannot start once that snapshot has expired (measured,
Iceberg 1.12.0). Where everything between two snapshots was read, the offset of the later one means the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from engine.state import checkpoint as spark_checkpoint
from engine.state.state_path import StatePath, content, store_of


def move_offsets(checkpoint: StatePath, snapshots: Collection[int], to: int, files: int = 0) -> bool:
    """Move the sources that are at some snapshots of a table to another one; return whether any was.

    Args:
        checkpoint: of a query that does not run; its last micro-batch is committed.
        snapshots: of the table.
        to: a snapshot that the query has read all rows of.
        files: how many data files that snapshot added; they were read, too.
    """
    batch = spark_checkpoint.last_committed(checkpoint)
    if batch is None:
        return False
    path = checkpoint / "offsets" / str(batch)
    before = content(path).decode().split("\n")
    after = [*before[:2], *(_moved(line, snapshots, to, files) for line in before[2:])]
    if after == before:
        return False
    # Hadoop compares the file with the sum of its old content.
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    store_of(path.parent).put(path.name, "\n".join(after).encode())
    return True


def _moved(line: str, snapshots: Collection[int], to: int, files: int) -> str:
    try:
        offset = json.loads(line)
    except ValueError:
        return line
    if not isinstance(offset, dict) or offset.get("snapshot_id") not in snapshots or offset["snapshot_id"] == to:
        return line
    return json.dumps({**offset, "snapshot_id": to, "position": files, "scan_all_files": False}, separators=(",", ":"))
