"""Spark's errors in one line, at the place in the user's file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from engine.compile import Model, Source
from engine.errors import Diagnostic, EngineError, Location
from engine.lake.write import plain_name
from engine.runtime.bad_records import from_text
from engine.runtime.unreadable import unreadable
from engine.secrets import scrub
from engine.sources import avro, socket
from engine.spark.executions import spark_exceptions

__all__ = ["diagnose", "spark_exceptions"]

_CLASS = re.compile(r"\[([A-Z0-9_.]+)\]\s*")
_NOISE = re.compile(r"\s*SQLSTATE: \w+\s*")
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_WRAPPERS = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")
_ON = "What is committed stays, and the next build goes on."
_SURROUNDINGS = (
    (
        "disk-full",
        ("No space left on device", "Disk quota exceeded"),
        "the disk is full: the lake, the state or Spark's own folder has no room",
        f"Make room (engine maintain removes old snapshots and files). {_ON}",
    ),
    (
        "catalog-busy",
        ("SQLITE_BUSY", "database is locked"),
        "another process holds the catalog, and did not let it go in time",
        f"Find who has it open, and build again. {_ON}",
    ),
    (
        "state-schema",
        (
            "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
            "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
            "STATE_STORE_SCHEMA_FILES_THRESHOLD_EXCEEDED",
            "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED",
            "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
            "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
        ),
        "the query keeps other columns or steps in state than the checkpoint has",
        "If an input gained a column, list the old ones instead of '*'; else undo it, or engine build -f -s <model>.",
    ),
    (
        "checkpoint-damaged",
        ("CANNOT_LOAD_STATE_STORE", "Incomplete log file"),
        "the checkpoint is damaged: Spark cannot read its state or its logs",
        "Restore the state folder from a backup, or rebuild the table: engine build -f -s <model>.",
    ),
)
# What asking an error for its place may raise beside exceptions of Spark.
_UNTOLD: tuple[type[Exception], ...] = (AssertionError, AttributeError, NotImplementedError, TypeError, ValueError)
_JAVA_CLASS = re.compile(r"^: ?(?:[\w.$]+(?:Exception|Error)): ")
_CAUSED = re.compile(r"^Caused by: (?:[\w.$]+(?:Exception|Error)): (.+)$", re.MULTILINE)


def diagnose(error: Exception, model: Model | Source) -> tuple[Diagnostic, ...]:
    """What to tell the user about an error that ended a model, or a test of a source."""
    if isinstance(error, EngineError):
        return tuple(d.at(Location(model.file), model.name) for d in error.diagnostics)
    text = plain_name(str(error))
    told = from_text(text) or avro.told_by_worker(text) or socket.told_by_worker(text)
    if told is not None:
        return tuple(d.at(Location(model.file), model.name) for d in told.diagnostics)
    if (around := surroundings(text)) is not None:
        around = replace(around, hint=around.hint.replace("<model>", model.name))
        return (around.at(Location(model.file), model.name),)
    place = _place(error, model)
    if (file := unreadable(error)) is not None:
        return (Diagnostic("source-read", scrub(file[0]), scrub(file[1]), node=model.name, location=place),)
    if "MALFORMED_RECORD" in text:
        hint = f"Spark says: {_deepest(text)} Correct or remove the record; the next build goes on with the same rows."
        message = "a record does not fit the schema it is read with"
        return (Diagnostic("source-read", message, scrub(hint), node=model.name, location=place),)
    message, hint = summary(text), ""
    if "streaming" in text and "watermark" in text:
        hint = "Group by a window over the column that carries the watermark; see the handbook on event time."
    return (Diagnostic("query-failed", scrub(message), hint, node=model.name, location=place),)


def surroundings(text: str) -> Diagnostic | None:
    """What is wrong around a query rather than in it: the disk, the catalog, the checkpoint."""
    for code, signs, message, hint in _SURROUNDINGS:
        if any(sign in text for sign in signs):
            return Diagnostic(code, message, f"{hint} Spark says: {scrub(_deepest(text))}")
    return None


def _place(error: Exception, model: Model | Source) -> Location:
    if not isinstance(model, Model):
        return model.location or Location(model.file)
    for start, fragment in _fragments(error):
        # SQL of an expectation or of a view is a context of its own: its places are not those of the query.
        if fragment and model.sql[start : start + len(fragment)] == fragment:
            return model.positions.locate(model.file, start)
    match = _POSITION.search(str(error))
    if match:
        lines = model.sql.split("\n")
        offset = sum(len(line) + 1 for line in lines[: int(match[1]) - 1]) + int(match[2])
        return model.positions.locate(model.file, offset)
    return Location(model.file)


def _fragments(error: Exception) -> Iterator[tuple[int, str]]:
    """The pieces of SQL that an error is about: where each begins in its own text, and the piece.

    A context of a DataFrame has neither, and raises when asked; one that Java cannot tell any more raises as well.
    """
    try:
        contexts: list[Any] = getattr(error, "getQueryContext", list)() or []
    except _UNTOLD + spark_exceptions():
        return
    for context in contexts:
        try:
            if context.contextType().name == "SQL":
                yield int(context.startIndex()), str(context.fragment())
        except _UNTOLD + spark_exceptions():
            continue


def summary(text: str) -> str:
    """The first sentence that says something: without class names, wrappers and plans."""
    head = text
    for end in ("=== Streaming Query ===", "\n\nJVM stacktrace", "== SQL"):
        head = head.partition(end)[0]
    head = re.sub(r"Query \[id = [^]]*\] terminated with exception: ", "", head)
    for wrapper in _WRAPPERS:
        head = head.replace(f"[{wrapper}] ", "")
    head = _NOISE.sub(" ", head)
    kind = _CLASS.search(head)
    lines = [line.strip() for line in _CLASS.sub("", head).splitlines() if line.strip()]
    if lines and lines[0].startswith("An error occurred while calling"):
        lines = [_JAVA_CLASS.sub("", line) for line in lines[1:]]
    first = lines[0] if lines else "Spark failed without a message"
    first = first if len(first) <= 400 else first[:400] + "..."  # noqa: PLR2004 - a screenful
    return f"{first} [{kind[1]}]" if kind else first


def _deepest(text: str) -> str:
    causes = _CAUSED.findall(text)
    if causes:
        return _NOISE.sub(" ", _CLASS.sub("", causes[-1])).strip()
    return summary(text)
