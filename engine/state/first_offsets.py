"""Where the sources of a checkpoint begin, as Spark fixed it before the first micro-batch.

Kafka, the clock and others note it in `sources/<n>/0`, once, whatever the options say later (measured, Spark 4.1.4).
Files are logged there, and tables are in `sources/<n>/offsets`: these find their beginning again.

A stream of a table stops at the last commit with rows for it, and cannot start once that has expired (measured, Iceberg
1.12.0): where everything up to a later snapshot was read, it is moved there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from engine.characters import whole_number
from engine.state import checkpoint as spark_checkpoint
from engine.state.checkpoint import digest_of, with_moved_digests
from engine.state.file_log import file_sources
from engine.state.model_state import ModelState, TableState
from engine.state.state_path import StatePath, content, names_below, remove_tree, store_of
from engine.state.taken_over import is_note

_MODEL_FILE, _FACTS = "model.json", "facts"


def has_beginnings(checkpoint: StatePath) -> bool:
    return spark_checkpoint.last_started(checkpoint) is not None or any(_noted(checkpoint))


def keep_beginnings(checkpoint: StatePath) -> None:
    """Remove what is in the folder of a checkpoint's generation but model.json, facts and where its sources begin.

    A kill on the way leaves the beginnings whole: a later call removes the rest.
    """
    generation = checkpoint.parent
    kept_paths = {path for note in _noted(checkpoint) for path in (note, note.with_name(f".{note.name}.crc"))}
    # Without its offsets and metadata a checkpoint has no query; they go first.
    for name in ("metadata", "offsets", "commits", "state"):
        _remove(checkpoint / name)
        _remove(checkpoint / f".{name}.crc")
    for path in sorted(generation.rglob("*"), reverse=True):
        parts = names_below(path, generation)
        if parts[0] in {_MODEL_FILE, _FACTS} or is_note(parts[0]) or path in kept_paths:
            continue
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        else:
            path.unlink()


def _noted(checkpoint: StatePath) -> Iterator[StatePath]:
    logs = {str(number) for number in file_sources(checkpoint)}
    folders = (checkpoint / "sources").glob("*")
    return (f / "0" for f in folders if whole_number(f.name) is not None and f.name not in logs and (f / "0").is_file())


def _remove(path: StatePath) -> None:
    if path.is_dir():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class MovedOffsets:
    path: StatePath
    batch: int
    old_content: bytes
    new_content: bytes

    def write(self, folder: TableState, state: ModelState) -> ModelState:
        """Move the offsets; return the saved state, which noted before that they are moved."""
        digests = (digest_of(self.old_content), digest_of(self.new_content))
        noted = replace(state, ends=with_moved_digests(state.ends, self.batch, digests))
        folder.save(noted)
        # Hadoop compares the file with the sum of its old content.
        self.path.with_name(f".{self.path.name}.crc").unlink(missing_ok=True)
        store_of(self.path.parent).put(self.path.name, self.new_content)
        return noted


def offsets_to_move(checkpoint: StatePath, snapshots: Collection[int], to: int, files: int = 0) -> MovedOffsets | None:
    """Return what becomes of sources at some snapshots; None: no source is. The last micro-batch is committed."""
    batch = spark_checkpoint.last_committed(checkpoint)
    if batch is None:
        return None
    path = checkpoint / "offsets" / str(batch)
    file_content = content(path)
    old_lines = file_content.decode().split("\n")
    new_lines = [*old_lines[:2], *(_moved(line, snapshots, to, files) for line in old_lines[2:])]
    return None if new_lines == old_lines else MovedOffsets(path, batch, file_content, "\n".join(new_lines).encode())


def _moved(line: str, snapshots: Collection[int], to: int, files: int) -> str:
    try:
        offset = json.loads(line)
    except ValueError:
        return line
    if not isinstance(offset, dict) or offset.get("snapshot_id") not in snapshots or offset["snapshot_id"] == to:
        return line
    return json.dumps({**offset, "snapshot_id": to, "position": files, "scan_all_files": False}, separators=(",", ":"))
