"""Points at which a build kills itself: at a micro-batch of a model, before and after each thing that is written."""

from __future__ import annotations

_KILL = """
import os, signal
from engine.lake import merge, write
from engine.runtime.writer import BatchWriter
_left = [{skip}]
def reached(model):
    if model != "{model}":
        return
    if _left[0] == 0:
        print('{{"event": "Killed"}}', flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    _left[0] -= 1
def _name(writer):
    return writer.relation.rsplit(".", 1)[1].strip("`")
"""
_BEFORE = """
_write = BatchWriter._write
def _first(self, frame, batch):
    reached(_name(self))
    return _write(self, frame, batch)
BatchWriter._write = _first
"""
_COMMIT = """
def _wrapped(settled):
    def _first(table, markers, *more):
        reached(markers["model"])
        return settled(table, markers, *more)
    return _first
write.settled, merge.settled = _wrapped(write.settled), _wrapped(merge.settled)
"""
_NOTE = """
_record = BatchWriter.record
def record(self, **changes):
    if "batch" in changes:
        reached(_name(self))
    _record(self, **changes)
BatchWriter.record = record
"""
_NOTED = """
_record = BatchWriter.record
def record(self, **changes):
    _record(self, **changes)
    if "batch" in changes:
        reached(_name(self))
BatchWriter.record = record
"""
POINTS = {
    "before the write": _BEFORE,
    "before the commit": _COMMIT,
    "after the commit": _NOTE,
    "after the note": _NOTED,
}


def script(point: str, model: str, skip: int) -> str:
    """Python that kills the process at a point of a model, after it was passed so many times."""
    return _KILL.format(model=model, skip=skip) + POINTS[point]
