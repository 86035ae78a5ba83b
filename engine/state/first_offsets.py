"""Where the sources of a checkpoint begin, as Spark fixed it before the first micro-batch.

Kafka, the clock and others note it in `sources/<n>/0`, once: a query that starts over such a folder begins there
again, whatever its options say by then (measured, Spark 4.1.4). Files are noted there too, but as a log of what was
listed, and tables in `sources/<n>/offsets`: these two find their beginning again.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.characters import whole_number
from engine.state import checkpoint as spark_checkpoint
from engine.state.file_log import file_sources
from engine.state.state_path import StatePath, names_below, remove_tree
from engine.state.taken_over import is_note

_MODEL_FILE, _FACTS = "model.json", "facts"


def begun(checkpoint: StatePath) -> bool:
    return spark_checkpoint.last_started(checkpoint) is not None or any(_noted(checkpoint))


def keep_beginnings(checkpoint: StatePath) -> None:
    """Remove what is in the folder of a checkpoint's generation but model.json, facts and where its sources begin.

    A kill on the way leaves the beginnings whole: a later call removes the rest.
    """
    generation = checkpoint.parent
    kept = {path for note in _noted(checkpoint) for path in (note, note.with_name(f".{note.name}.crc"))}
    # Without its offsets and metadata a checkpoint has no query; they go first.
    for name in ("metadata", "offsets", "commits", "state"):
        _remove(checkpoint / name)
        _remove(checkpoint / f".{name}.crc")
    for path in sorted(generation.rglob("*"), reverse=True):
        parts = names_below(path, generation)
        if parts[0] in {_MODEL_FILE, _FACTS} or is_note(parts[0]) or path in kept:
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
