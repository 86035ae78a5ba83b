"""Moving a stream of tables past commits that bring it no rows, in Spark's checkpoint.

A stream stops at the last commit that had rows for it, and cannot start once that snapshot has expired (measured,
Iceberg 1.12.0). Where everything between two snapshots was read, the offset of the later one means the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from engine.state import checkpoint as spark_checkpoint
from engine.state.model_state import ModelState, TableState
from engine.state.recorded_offsets import digest_of, moved
from engine.state.state_path import StatePath, content, store_of


@dataclass(frozen=True, slots=True)
class MovedOffsets:
    path: StatePath
    batch: int
    before: bytes
    after: bytes

    def write(self, folder: TableState, state: ModelState) -> ModelState:
        """Move the offsets; return the saved state, which noted before that they are moved."""
        digests = (digest_of(self.before), digest_of(self.after))
        noted = replace(state, ends=moved(state.ends, self.batch, digests))
        folder.save(noted)
        # Hadoop compares the file with the sum of its old content.
        self.path.with_name(f".{self.path.name}.crc").unlink(missing_ok=True)
        store_of(self.path.parent).put(self.path.name, self.after)
        return noted


def offsets_to_move(checkpoint: StatePath, snapshots: Collection[int], to: int, files: int = 0) -> MovedOffsets | None:
    """Return what becomes of sources at some snapshots; None: no source is. The last micro-batch is committed."""
    batch = spark_checkpoint.last_committed(checkpoint)
    if batch is None:
        return None
    path = checkpoint / "offsets" / str(batch)
    written = content(path)
    before = written.decode().split("\n")
    after = [*before[:2], *(_moved(line, snapshots, to, files) for line in before[2:])]
    return None if after == before else MovedOffsets(path, batch, written, "\n".join(after).encode())


def _moved(line: str, snapshots: Collection[int], to: int, files: int) -> str:
    try:
        offset = json.loads(line)
    except ValueError:
        return line
    if not isinstance(offset, dict) or offset.get("snapshot_id") not in snapshots or offset["snapshot_id"] == to:
        return line
    return json.dumps({**offset, "snapshot_id": to, "position": files, "scan_all_files": False}, separators=(",", ":"))
