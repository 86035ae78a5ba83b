"""The options of a job's output as keys of a model's header."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from engine_import.flare.read_job import JobPart

_TRANSFORMS = ("year", "month", "day", "hour")
_APPENDED = (
    "a build of a batch table replaces its rows: to append, list the input under streams (isStream: true), so that "
    "each row is read once"
)


def output_keys(options: JobPart, lost: Callable[[JobPart, str], None], *, streamed: bool) -> dict[str, Any]:
    """Return the keys of a header for `outputOptions` of a sink; `lost` gets what is not carried over."""
    keys: dict[str, Any] = {}
    iceberg = options.child("iceberg")
    properties = _properties(iceberg.child("properties"))
    dynamic = str(properties.pop("overwrite-mode", "")).casefold() == "dynamic"
    partitions = [text for part in iceberg.child("partitionSpec").items() if (text := _partition(part, lost))]
    mode = options.child("saveMode")
    chosen = mode.text().casefold() or "overwrite"
    if streamed and chosen == "overwrite" and mode.value is not None:
        lost(mode, "a stream appends; 'output_mode: complete' replaces all rows in each micro-batch, for an aggregate")
    elif not streamed and chosen == "append":
        lost(mode, _APPENDED)
    elif not streamed and dynamic and partitions:
        keys["overwrite"] = "partitions"
    if partitions:
        keys["partition_by"] = partitions
    if properties:
        keys["table_properties"] = properties
    extra = {key: part.value for key, part in options.child("extraOptions").entries()}
    if extra:
        keys["write_options"] = extra
    return keys


def _properties(part: JobPart) -> dict[str, Any]:
    return {key: value.text() or value.value for key, value in part.entries()}


def _partition(part: JobPart, lost: Callable[[JobPart, str], None]) -> str:
    kind, column, name = (part.child(key).text() for key in ("type", "column", "name"))
    count = part.child("numBuckets").text()
    if not re.fullmatch(r"\w+", column) or not re.fullmatch(r"\w*", name):
        lost(part, "the field has no plain column")
        return ""
    said = f" as {name}" if name and name != column else ""
    if kind == "identity":
        return f"{column}{said}"
    if kind in _TRANSFORMS:
        return f"{kind}({column}){said}"
    if kind == "bucket" and count.isdigit():
        return f"bucket({count}, {column}){said}"
    lost(part, f"partitioning by '{kind}' is not supported")
    return ""
