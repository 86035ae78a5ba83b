"""Spark's errors in one line, at the place in the user's file: deep queries, ended Java, unreadable files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine import local_paths
from engine.compile import DataTest, Model, Source
from engine.compile.sql.dialect import parse_tokens, tokenize
from engine.compile.sql.parse import first_offset
from engine.errors import Diagnostic, EngineError, Location
from engine.lake.clients.catalog_errors import is_denial, is_outage
from engine.lake.table_writer import plain_name
from engine.node_ids import rest_of
from engine.object_store.java_errors import is_bucket_missing, is_store_denial, is_store_outage
from engine.runtime.quality.bad_records import from_text
from engine.runtime.spark_support.error_places import (
    READERS,
    ErrorSpot,
    called,
    deepest,
    explained,
    place_in_model,
    place_in_test,
    summary,
)
from engine.secrets.scrubber import scrub
from engine.sources import KINDS, source_traits
from engine.sources.avro import avro_values
from engine.spark.exceptions import spark_exceptions
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Paths and columns are bounded: a lazy group without a bound keeps a place for each character of a long text.
_FILE = re.compile(r"while reading file\s++(.{1,2000}?)\.\s")
_MISMATCH = re.compile(
    r"Parquet column \[(.{1,2000}?)\]\. Expected Spark type ([^\s,]++(?:,[^\s,]++)*), actual Parquet type ([^\s.]++)\."
)
_CAUSES = re.compile(
    r"^[^\S\n]*+Caused by: [\w.$]++: (.++(?:\n++(?![^\S\n]*+(?:at |\.\.\. |Caused by: )).*+)*)", re.MULTILINE
)
# Java's words for what is nothing but an end before its time.
_SILENT = re.compile(r"^[^\S\n]*+Caused by: java\.lang\.NullPointerException", re.MULTILINE)
# What Parquet stores, as the types that are stored so.
_PHYSICAL = {
    "BINARY": "string, binary or decimal",
    "FIXED_LEN_BYTE_ARRAY": "decimal or binary",
    "BOOLEAN": "boolean",
    "DOUBLE": "double",
    "FLOAT": "float",
    "INT32": "int, date or decimal",
    "INT64": "bigint, timestamp or decimal",
    "INT96": "timestamp",
}
_HEADER = re.compile(r"CSV file: \S+")


def unreadable(error: Exception) -> tuple[str, str] | None:
    text = str(error)
    file_match = _FILE.search(text) if "FAILED_READ_FILE" in text else None
    if file_match is None:
        return None
    # Only Java's trace has the causes, where Spark does not print it.
    text = f"{text}\n{getattr(error, '_stackTrace', None) or ''}"
    where = local_paths.decoded(file_match[1])
    path = local_paths.path_of_location(where) or where
    hint = (
        "Replace it by a complete file, or by an empty one to continue without its rows; the next build reads it again."
    )
    if "CSV header" in text:
        hint = (
            "CSV columns are read by position: list them in the schema in the order of the file's header. Or "
            "correct the file: "
        ) + hint
    elif mismatch := _MISMATCH.search(text):
        stored_type = _PHYSICAL.get(mismatch[3], "another type")
        message = f"{path}: the column '{mismatch[1]}' is {stored_type} in the file and declared as {mismatch[2]}"
        return message, f"Correct the source's schema. Or replace the file: {hint}"
    return f"{path} cannot be read: {_reason(text)}", hint


def _reason(text: str) -> str:
    causes = _CAUSES.findall(text)
    if not causes or _SILENT.search(text):
        return "it is damaged or truncated"
    return " ".join(_HEADER.sub("", causes[-1]).split()).rstrip(".")


CODE = "query-too-deep"
_SIGNS = ("StackOverflowError", "FAILED_TO_PARSE_TOO_COMPLEX")
_HINT = (
    "Make a part of it a separate model; write many values of one column as IN (..), many terms of a sum as "
    "aggregate(array(a, b), 0D, (x, y) -> x + y). Or increase the stack of Java's threads: spark: {conf: "
    "{spark.driver.extraJavaOptions: -Xss32m}}."
)


def too_deep(error: Exception, node: Model | Source) -> Diagnostic | None:
    # The error of a stream has its cause in Java's trace only.
    text = f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
    if not any(sign in text for sign in _SIGNS):
        return None
    message = "the query is too deep for the stack of Java's threads, mostly here"
    place = _deepest(node) if isinstance(node, Model) else None
    return Diagnostic(CODE, message, _HINT, node=node.name, location=place)


def _deepest(model: Model) -> Location:
    try:
        tree = parse_tokens(tokenize(model.sql), model.sql)[0]
    except (SqlglotError, RecursionError):
        return Location(model.file)
    if tree is None:
        return Location(model.file)
    depths: dict[int, int] = {}
    deepest = tree
    for node in tree.walk():
        depths[id(node)] = depths.get(id(node.parent), 0) + 1 if node.parent is not None else 0
        deepest = node if depths[id(node)] > depths[id(deepest)] else deepest
    while deepest.parent is not None and not isinstance(deepest.parent, (exp.Query, exp.Where, exp.Having)):
        deepest = deepest.parent
    return model.positions.locate(model.file, first_offset(deepest))


__all__ = ["diagnose", "diagnose_test", "spark_exceptions", "summary"]

_ON = "Committed rows stay, and the next build continues."
_ENVIRONMENT_FAULTS = (
    (
        "disk-full",
        ("No space left on device", "Disk quota exceeded"),
        "the disk is full: no space left for the warehouse, the state or Spark's temporary files",
        f"Free some space (engine maintain removes old snapshots and files). {_ON}",
    ),
    (
        "catalog-busy",
        ("SQLITE_BUSY", "database is locked"),
        "another process holds a lock on the catalog",
        f"Find the process that has it open, and build again. {_ON}",
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
        "the query's state has other columns or steps than the checkpoint",
        (
            "If an input gained a column, list the old columns instead of '*'; otherwise undo the edit, or run engine "
            "build -f -s <model>."
        ),
    ),
    (
        "state-unwritable",
        ("CONCURRENT_STREAM_LOG_UPDATE", "queries are concurrently using", "was written by another run"),
        "another run wrote to the same checkpoint",
        f"Build again. {_ON}",
    ),
    (
        "state-unwritable",
        ("the checkpoint file ",),
        "a file of the checkpoint cannot be written",
        f"Correct the cause in the message, and build again. {_ON}",
    ),
    (
        "checkpoint-damaged",
        ("has another content than it was written with", "CANNOT_LOAD_STATE_STORE", "Incomplete log file"),
        "the checkpoint is damaged: Spark cannot read its state or logs",
        "Restore the state folder from a backup, or rebuild the table: engine build -f -s <model>.",
    ),
)


_AWAY = f"Start the server, and build again. {_ON}"
_RIGHTS = (
    "Check the login of the target's catalog and the rights of that user. A token that has expired is renewed only "
    f"where 'credential' is set. {_ON}"
)


_STORE_AWAY = f"Check the network and 'endpoint' in 's3:' of the target, and build again. {_ON}"
_BUCKET = f"Create it, or correct its name, and 'endpoint' and 'region' in 's3:' of the target. {_ON}"
_STORE_RIGHTS = (
    "Renew the login in 's3:' of the target (access_key_id, secret_access_key, session_token), and check that it may "
    f"list, read, write and delete there. {_ON}"
)

_STORE = (
    ("s3-denied", is_store_denial, "the object store denies access", _STORE_RIGHTS),
    ("s3-missing", is_bucket_missing, "a bucket of the object store is missing", _BUCKET),
    ("s3-unreachable", is_store_outage, "the object store does not respond", _STORE_AWAY),
)


def _of_server(code: str, message: str, hint: str, text: str) -> Diagnostic:
    return Diagnostic(code, message, f"{hint} Its message: {scrub(deepest(text))}")


def _told_by_worker(text: str) -> EngineError | None:
    answers = (source_traits(format_).told_by_worker(text) for format_ in KINDS)
    return next((error for error in answers if error is not None), None)


def diagnose(error: Exception, model: Model | Source) -> tuple[Diagnostic, ...]:
    if isinstance(error, EngineError):
        return tuple(d.at(Location(model.file), model.name) for d in error.diagnostics)
    text = plain_name(str(error))
    known_error = from_text(text) or avro_values.told_by_worker(text) or _told_by_worker(text)
    if known_error is not None:
        return tuple(d.at(Location(model.file), model.name) for d in known_error.diagnostics)
    if (environment_fault := environment_fault_in(text)) is not None:
        environment_fault = replace(environment_fault, hint=environment_fault.hint.replace("<model>", model.name))
    if (environment_fault := environment_fault or too_deep(error, model)) is not None:
        return (environment_fault.at(Location(model.file), model.name),)
    trace = f"{text}\n{getattr(error, '_stackTrace', None) or ''}"
    if isinstance(model, Model):
        spot = place_in_model(error, trace, model)
    else:
        spot = ErrorSpot(model.location or Location(model.file))
    if (file := unreadable(error)) is not None:
        return (Diagnostic("source-unreadable", scrub(file[0]), scrub(file[1]), node=model.name, location=spot.place),)
    if "MALFORMED_RECORD" in text:
        return (_malformed(text, spot, model),)
    message, hint = explained(text, trace, spot.fragment)
    if "streaming" in text and "watermark" in text:
        hint = "Group by a window over the column that has the watermark; see docs/event-time.md."
    message, hint = (scrub(_with_input_names(part, model)) for part in (message, hint))
    return (Diagnostic("query-failed", message, hint, node=model.name, location=spot.place),)


def diagnose_test(error: Exception, test: DataTest, model: Model) -> Diagnostic:
    text = plain_name(str(error))
    if (environment_fault := environment_fault_in(text)) is not None:
        return replace(environment_fault, hint=environment_fault.hint.replace("<model>", model.name)).at(
            test.location, rest_of(test.id)
        )
    trace = f"{text}\n{getattr(error, '_stackTrace', None) or ''}"
    spot = place_in_test(error, trace, test)
    message, hint = (scrub(_with_input_names(part, model)) for part in explained(text, trace, spot.fragment))
    return Diagnostic("query-failed", message, hint, node=rest_of(test.id), location=spot.place)


def _malformed(text: str, spot: ErrorSpot, model: Model | Source) -> Diagnostic:
    cause = deepest(text)
    if isinstance(model, Model) and READERS & called(model.sql):
        message = f"the query parses a malformed string: {cause}"
        hint = (
            "Use try_parse_json() instead of parse_json(); from_json() and from_csv() return NULL with mode PERMISSIVE."
        )
        return Diagnostic("query-failed", scrub(message), hint, node=model.name, location=spot.place)
    hint = f"Correct or remove the record; the next build reads the same rows. Spark's message: {cause}"
    message = "a record does not match its schema"
    return Diagnostic("source-unreadable", message, scrub(hint), node=model.name, location=spot.place)


def _with_input_names(text: str, model: Model | Source) -> str:
    for item in model.inputs if isinstance(model, Model) else ():
        for name in (item.view, item.view.strip("`")):
            text = text.replace(name, item.name)
    return text


def environment_fault_in(text: str) -> Diagnostic | None:
    for code, holds, message, hint in _STORE:
        if holds(text):
            return _of_server(code, message, hint, text)
    of_catalog = "org.apache.iceberg" in text or "PSQLException" in text
    if of_catalog and is_denial(text):
        return _of_server("catalog-denied", "the catalog denies access", _RIGHTS, text)
    if of_catalog and is_outage(text):
        return _of_server("catalog-unreachable", "the catalog's server does not respond", _AWAY, text)
    for code, signs, message, hint in _ENVIRONMENT_FAULTS:
        if any(sign in text for sign in signs):
            return Diagnostic(code, message, f"{hint} Spark's message: {scrub(deepest(text))}")
    return None


# What the JVM prints as its last line when it ends itself.
_OUT_OF_MEMORY = "Terminating due to java.lang.OutOfMemoryError"
_TAIL_BYTES = 4096


def java_ended(spark: SparkSession, log: Path) -> Diagnostic | None:
    """Say that the Java of a session is gone, with the reason that its log gives; None: it is there."""
    try:
        jvm_of(spark).java.lang.System.nanoTime()
    except spark_exceptions():
        pass
    else:
        return None
    if _OUT_OF_MEMORY in _tail(log):
        message = "the Java process ran out of memory"
        hint = (
            "Increase the driver's memory ('driver_memory: 4g' under 'spark' of the target), or reduce "
            f"micro-batches (max_files_per_trigger). The next build continues from here. See {log}."
        )
        return Diagnostic("java-ended", message, hint)
    hint = f"The operating system may have killed it for lack of memory. The next build continues from here. See {log}."
    return Diagnostic("java-ended", "the Java process ended during the run", hint)


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
