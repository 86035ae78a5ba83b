"""What to tell about a file that Spark cannot read: which one, why, and how to continue."""

from __future__ import annotations

import re

from engine import local_paths

_FILE = re.compile(r"while reading file\s++((?:(?!while reading file).)+?)\.\s")
_MISMATCH = re.compile(
    r"Parquet column \[((?:(?!Parquet column \[).)+?)\]. Expected Spark type ([^\s,]++(?:,[^\s,]++)*), "
    r"actual Parquet type (\S+?)\."
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
    """Message and hint for Spark's error; None if it is not an error of a file."""
    text = str(error)
    found = _FILE.search(text) if "FAILED_READ_FILE" in text else None
    if found is None:
        return None
    # Only Java's trace has the causes, where Spark does not print it.
    text = f"{text}\n{getattr(error, '_stackTrace', None) or ''}"
    where = local_paths.decoded(found[1])
    path = local_paths.of_location(where) or where
    hint = (
        "Replace it by a complete file, or by an empty one to continue without its rows; the next build reads it again."
    )
    if "CSV header" in text:
        hint = (
            "CSV columns are read by position: list them in the schema in the order of the file's header. Or "
            "correct the file: "
        ) + hint
    elif mismatch := _MISMATCH.search(text):
        stored = _PHYSICAL.get(mismatch[3], "another type")
        message = f"{path}: the column '{mismatch[1]}' is {stored} in the file and declared as {mismatch[2]}"
        return message, f"Correct the source's schema. Or replace the file: {hint}"
    return f"{path} cannot be read: {_reason(text)}", hint


def _reason(text: str) -> str:
    causes = _CAUSES.findall(text)
    if not causes or _SILENT.search(text):
        return "it is damaged or truncated"
    return " ".join(_HEADER.sub("", causes[-1]).split()).rstrip(".")
