"""Options of Spark's readers and of Iceberg with their values, and the Spark settings that nobody can change.

Spark and Iceberg ignore unknown options (measured: `hedaer: true` reads CSV as if it were absent) and some wrong values
(`fanout-enabled: abc` is false). The lists are those of Spark 4.1 and Iceberg 1.12; a test compares them with the jars.
Letter case does not matter, as in Spark. With variable substitution Spark would replace `${env:X}` in every statement,
even in a value of a record, by a secret; the other pinned settings change how a text is parsed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from engine.errors import Diagnostic, near

BOOLEAN = "true or false"
INTEGER = "a whole number"
POSITIVE = "a whole number of at least 1"
NATURAL = "a whole number of at least 0"
FRACTION = "a number from 0 to 1"
CHARACTER = "one character"
TEXT = ""
# One of these, or one of the words of a tuple.
Form = str | tuple[str, ...]

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_REBASE = ("EXCEPTION", "CORRECTED", "LEGACY")
_FORMATS = ("parquet", "avro", "orc")


def _same_form(form: Form, names: str) -> dict[str, Form]:
    return dict.fromkeys(names.split(), form)


# Of every reader of files: which files, how many, what becomes of them.
FILES: Mapping[str, Form] = {
    **_same_form(BOOLEAN, "ignoreCorruptFiles ignoreInvalidPartitionPaths ignoreMissingFiles recursiveFileLookup"),
    **_same_form(BOOLEAN, "fileNameOnly latestFirst"),
    **_same_form(POSITIVE, "maxBytesPerTrigger maxFilesPerTrigger"),
    **_same_form(
        TEXT, "basePath modifiedAfter modifiedBefore pathGlobFilter path timeZone maxFileAge sourceArchiveDir"
    ),
    "cleanSource": ("archive", "delete", "off"),
    "maxCachedFiles": INTEGER,
    "discardCachedInputRatio": FRACTION,
}
JSON: Mapping[str, Form] = {
    **_same_form(BOOLEAN, "allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowSingleQuotes"),
    **_same_form(
        BOOLEAN, "allowNumericLeadingZeros allowUnquotedControlChars allowUnquotedFieldNames pretty multiLine"
    ),
    **_same_form(BOOLEAN, "dropFieldIfAllNull enableDateTimeParsingFallback ignoreNullFields inferTimestamp"),
    **_same_form(BOOLEAN, "prefersDecimal primitivesAsString useUnsafeRow writeNonAsciiCharacterAsCodePoint"),
    **_same_form(
        TEXT, "charset columnNameOfCorruptRecord compression dateFormat encoding lineSep locale mode timeZone"
    ),
    **_same_form(TEXT, "singleVariantColumn timestampFormat timestampNTZFormat"),
    "samplingRatio": FRACTION,
}
CSV: Mapping[str, Form] = {
    **_same_form(BOOLEAN, "columnPruning enableDateTimeParsingFallback enforceSchema escapeQuotes header inferSchema"),
    **_same_form(BOOLEAN, "ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace multiLine preferDate quoteAll"),
    **_same_form(INTEGER, "inputBufferSize maxCharsPerColumn maxColumns"),
    **_same_form(CHARACTER, "charToEscapeQuoteEscaping comment escape quote"),
    **_same_form(TEXT, "charset codec columnNameOfCorruptRecord compression dateFormat delimiter emptyValue encoding"),
    **_same_form(TEXT, "extension lineSep locale mode nanValue negativeInf nullValue positiveInf sep"),
    **_same_form(TEXT, "singleVariantColumn"),
    **_same_form(TEXT, "timeZone timestampFormat timestampNTZFormat"),
    "samplingRatio": FRACTION,
    "unescapedQuoteHandling": (
        "STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR",
    ),
}  # fmt: skip
XML: Mapping[str, Form] = {
    **_same_form(BOOLEAN, "ignoreNamespace ignoreSurroundingSpaces inferSchema multiLine preferDate prefersDecimal"),
    **_same_form(BOOLEAN, "excludeAttribute useLegacyXMLParser validateName"),
    **_same_form(TEXT, "arrayElementName attributePrefix charset columnNameOfCorruptRecord compression dateFormat"),
    **_same_form(
        TEXT, "declaration encoding indent locale mode nullValue rootTag rowTag rowValidationXSDPath timeZone"
    ),
    **_same_form(TEXT, "singleVariantColumn timestampFormat timestampNTZFormat valueTag wildcardColName"),
    "samplingRatio": FRACTION,
}
PARQUET: Mapping[str, Form] = {
    **_same_form(_REBASE, "datetimeRebaseMode int96RebaseMode"),
    **_same_form(TEXT, "compression parquet.compression"),
    "mergeSchema": BOOLEAN,
}
ORC: Mapping[str, Form] = {"mergeSchema": BOOLEAN, **_same_form(TEXT, "compression orc.compress")}
AVRO: Mapping[str, Form] = {
    **_same_form(BOOLEAN, "enableStableIdentifiersForUnionType ignoreExtension positionalFieldMatching"),
    **_same_form(TEXT, "avroSchema avroSchemaUrl compression mode recordName recordNamespace"),
    "stableIdentifierPrefixForUnionType": TEXT,
    "recursiveFieldMaxDepth": INTEGER,
    "datetimeRebaseMode": _REBASE,
}
PLAIN_TEXT: Mapping[str, Form] = {"wholetext": BOOLEAN, **_same_form(TEXT, "compression encoding lineSep")}
RATE: Mapping[str, Form] = {"numPartitions": POSITIVE, "rampUpTime": TEXT, "rowsPerSecond": POSITIVE}
RATE_MICRO_BATCH: Mapping[str, Form] = {
    **_same_form(POSITIVE, "numPartitions rowsPerBatch"),
    **_same_form(INTEGER, "advanceMillisPerBatch startTimestamp"),
}
KAFKA: Mapping[str, Form] = {
    **_same_form(BOOLEAN, "failOnDataLoss includeHeaders"),
    **_same_form(
        POSITIVE, "kafkaConsumer.pollTimeoutMs maxOffsetsPerTrigger maxRecordsPerPartition minOffsetsPerTrigger"
    ),
    **_same_form(POSITIVE, "minPartitions"),
    **_same_form(INTEGER, "fetchOffset.numRetries fetchOffset.retryIntervalMs"),
    **_same_form(TEXT, "assign endingOffsets endingOffsetsByTimestamp endingTimestamp groupIdPrefix maxTriggerDelay"),
    **_same_form(
        TEXT, "startingOffsets startingOffsetsByTimestamp startingOffsetsByTimestampStrategy startingTimestamp"
    ),
    **_same_form(TEXT, "subscribe subscribePattern topic"),
}
ICEBERG_READ: Mapping[str, Form] = {
    **_same_form(
        BOOLEAN, "aggregate-push-down-enabled async-micro-batch-planning-enabled locality vectorization-enabled"
    ),
    **_same_form(BOOLEAN, "streaming-skip-delete-snapshots streaming-skip-overwrite-snapshots"),
    **_same_form(POSITIVE, "async-queue-preload-file-limit async-queue-preload-row-limit batch-size file-open-cost"),
    **_same_form(
        POSITIVE, "lookback split-size streaming-max-files-per-micro-batch streaming-max-rows-per-micro-batch"
    ),
    **_same_form(POSITIVE, "streaming-snapshot-polling-interval-ms"),
    **_same_form(TEXT, "as-of-timestamp branch end-snapshot-id end-timestamp path snapshot-id start-snapshot-id tag"),
    **_same_form(TEXT, "start-timestamp stream-from-timestamp timestampAsOf versionAsOf"),
}
ICEBERG_WRITE: Mapping[str, Form] = {
    **_same_form(BOOLEAN, "check-nullability check-ordering fanout-enabled merge-schema mergeSchema shred-variants"),
    **_same_form(BOOLEAN, "use-merge-append-for-streaming use-table-distribution-and-ordering"),
    **_same_form(POSITIVE, "advisory-partition-size target-delete-file-size-bytes target-file-size-bytes"),
    **_same_form(POSITIVE, "variant-inference-buffer-size"),
    **_same_form(INTEGER, "output-sort-order-id output-spec-id"),
    **_same_form(_FORMATS, "delete-format write-format"),
    **_same_form(TEXT, "branch compression-codec compression-level overwrite-mode snapshot-property"),
    "validate-from-snapshot-id": TEXT,
    "compression-strategy": ("speed", "compression"),
    "delete-granularity": ("file", "partition"),
    "distribution-mode": ("none", "hash", "range"),
    "isolation-level": ("serializable", "snapshot"),
}
_ISOLATION = ("serializable", "snapshot")
_ROW_LEVEL = ("copy-on-write", "merge-on-read")
# Properties of a table (Iceberg's class TableProperties) whose values have a form; a property may have any other name.
ICEBERG_TABLE: Mapping[str, Form] = {
    **_same_form(BOOLEAN, "commit.manifest-merge.enabled gc.enabled read.orc.vectorization.enabled"),
    **_same_form(BOOLEAN, "read.parquet.vectorization.enabled read.split.adaptive-size.enabled"),
    **_same_form(BOOLEAN, "write.metadata.delete-after-commit.enabled write.object-storage.enabled"),
    **_same_form(BOOLEAN, "write.object-storage.partitioned-paths write.spark.accept-any-schema"),
    **_same_form(BOOLEAN, "write.spark.fanout.enabled"),
    **_same_form(POSITIVE, "history.expire.max-ref-age-ms history.expire.min-snapshots-to-keep"),
    **_same_form(POSITIVE, "read.orc.vectorization.batch-size read.parquet.vectorization.batch-size"),
    **_same_form(POSITIVE, "read.split.metadata-target-size read.split.planning-lookback read.split.target-size"),
    **_same_form(POSITIVE, "write.delete.target-file-size-bytes write.target-file-size-bytes"),
    **_same_form(POSITIVE, "write.parquet.row-group-size-bytes write.parquet.page-size-bytes"),
    **_same_form(
        POSITIVE, "commit.manifest.target-size-bytes write.parquet.dict-size-bytes write.parquet.page-row-limit"
    ),
    **_same_form(NATURAL, "history.expire.max-snapshot-age-ms read.split.open-file-cost"),
    **_same_form(NATURAL, "commit.retry.max-wait-ms commit.retry.min-wait-ms commit.retry.num-retries"),
    **_same_form(NATURAL, "commit.retry.total-timeout-ms write.metadata.previous-versions-max"),
    **_same_form(_FORMATS, "write.delete.format.default write.format.default"),
    **_same_form(_ISOLATION, "write.delete.isolation-level write.merge.isolation-level write.update.isolation-level"),
    **_same_form(_ROW_LEVEL, "write.delete.mode write.merge.mode write.update.mode"),
    "write.distribution-mode": ("none", "hash", "range"),
    "write.delete.granularity": ("file", "partition"),
}
# By the name of a format.
OF_FILES: Mapping[str, Mapping[str, Form]] = {
    "json": {**JSON, **FILES},
    "csv": {**CSV, **FILES},
    "xml": {**XML, **FILES},
    "parquet": {**PARQUET, **FILES},
    "orc": {**ORC, **FILES},
    "avro": {**AVRO, **FILES},
    "text": {**PLAIN_TEXT, **FILES},
}


def option_faults(
    options: Mapping[str, str], allowed_options: Mapping[str, Form], reader: str, *, hadoop: bool = False
) -> Iterator[tuple[str, Diagnostic]]:
    """Yield faults of options by name; `hadoop`: names with a dot go to Hadoop (`fs.s3a.endpoint`)."""
    by_name = {name.lower(): name for name in allowed_options}
    written = Counter(name.lower() for name in options)
    seen_names: set[str] = set()
    for name, value in options.items():
        lower = name.lower()
        if written[lower] > 1 and lower in seen_names:
            message = f"the option '{name}' is set twice, in other letters"
            yield name, Diagnostic("duplicate-option", message, "Remove one: letter case makes no difference.")
        seen_names.add(lower)
        if lower not in by_name:
            if not (hadoop and "." in name.strip(".")):
                message = f"{reader} has no option '{name}'"
                yield name, Diagnostic("unknown-option", message, _nearest(lower, by_name))
        elif expected := expected_form(value, allowed_options[by_name[lower]]):
            message = f"the option '{name}' must be {expected}, not '{value}'"
            yield name, Diagnostic("bad-value", message, f"Write {_example(allowed_options[by_name[lower]])}.")


def expected_form(value: str, form: Form) -> str:
    """Return what a value must be, in words, if it is something else; otherwise empty."""
    if isinstance(form, tuple):
        return "" if value.lower() in {word.lower() for word in form} else f"one of {', '.join(form)}"
    is_valid = {
        BOOLEAN: lambda: value.lower() in {"true", "false"},
        INTEGER: lambda: _INTEGER.fullmatch(value) is not None,
        POSITIVE: lambda: _INTEGER.fullmatch(value) is not None and int(value) > 0,
        NATURAL: lambda: _INTEGER.fullmatch(value) is not None and int(value) >= 0,
        FRACTION: lambda: _is_fraction(value),
        CHARACTER: lambda: len(value) <= 1,
    }
    return form if form in is_valid and not is_valid[form]() else ""


def property_fault(name: str, value: str) -> Diagnostic | None:
    """Return `bad-value` if a property of an Iceberg table has a wrong value; None for unknown properties."""
    form = ICEBERG_TABLE.get(name, TEXT)
    if not (expected := expected_form(value, form)):
        return None
    message = f"the table property '{name}' must be {expected}, not '{value}'"
    return Diagnostic("bad-value", message, f"Write {_example(form)}.")


def _is_fraction(value: str) -> bool:
    try:
        return 0 <= float(value) <= 1
    except ValueError:
        return False


def _example(form: Form) -> str:
    if isinstance(form, tuple):
        return form[0]
    return {BOOLEAN: "true or false", FRACTION: "0.1", CHARACTER: "one character in quotes"}.get(form, "a number: 1000")


def _nearest(lower: str, by_name: Mapping[str, str]) -> str:
    hint = near(lower, by_name)
    for name in sorted(by_name, key=len, reverse=True):
        hint = hint.replace(f"'{name}'", f"'{by_name[name]}'")
    return hint if hint.startswith("Did you mean") else ""


PINNED: Final[Mapping[str, str]] = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.parseQueryWithoutEof": "false",
}
_BY_LOWER: Final = {key.lower(): key for key in PINNED}


def pinned(key: str) -> tuple[str, str] | None:
    """Return name and value of a pinned setting, in whatever case it is written; None: it is free."""
    allowed_options = _BY_LOWER.get(key.lower())
    return (allowed_options, PINNED[allowed_options]) if allowed_options else None
