"""Reading how rows reach the table: keys, sequence, deletes, history, partitioning, options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import TypeVar

from engine.compile.config.condition_config import read_condition
from engine.compile.config.window_config import split_arguments
from engine.compile.config.winning_values import MergedSettings
from engine.compile.nodes.model_settings import (
    Deletes,
    History,
    OutputMode,
    Write,
)
from engine.project.yaml_section import Section, is_name, is_plain, quote_text
from engine.relations import Partition, SortColumn
from engine.spark_options import ICEBERG_WRITE, option_faults, property_fault
from engine.times import duration_seconds

_CALL = re.compile(r"(?P<transform>\w++)\s*+\(\s*+(?P<arguments>[^()]*+)\)")
_AS = re.compile(r"(?P<field>.+?)(?<!\s)\s++as\s++`?(?P<name>[^\s`]++)`?", re.IGNORECASE | re.DOTALL)
_SORT = re.compile(
    r"`?(?P<column>\w+)`?(?:\s+(?P<order>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?", re.IGNORECASE
)
_ARGUMENTS = {"year": 1, "month": 1, "day": 1, "hour": 1, "identity": 1, "bucket": 2, "truncate": 2}
_TIMES = {"year", "month", "day", "hour"}
_PARTITION_FORMS = "Write a column, year/month/day/hour(column), bucket(16, column) or truncate(10, column)."
_SORT_FORMS = "Write a column, such as 'origin' or 'window_start desc nulls last'."


def read_partitions(settings: MergedSettings) -> tuple[Partition, ...]:
    """Read `partition_by:`; each field may have a name: `day(ts) as day`."""
    section = settings.get("partition_by")
    partitions: list[Partition] = []
    for item, text in _texts(section):
        partition = _partition(item, text)
        if partition is not None:
            settings.name("partition_by", partition.column, item)
            _check_clash(item, partition, partitions)
            partitions.append(partition)
    return tuple(partitions)


def read_sort(settings: MergedSettings) -> tuple[SortColumn, ...]:
    """Read `sort_by:`, columns with `desc` and `nulls first` as in ORDER BY."""
    section = settings.get("sort_by")
    columns: dict[str, SortColumn] = {}
    for item, text in _texts(section):
        match = _SORT.fullmatch(text)
        if match is None:
            item.report("bad-value", f"{quote_text(text)} is not a column to sort by", _SORT_FORMS)
            continue
        column = match["column"]
        if column.lower() in columns:
            item.report("duplicate-name", f"'sort_by' names '{column}' twice", "Keep one of them.")
        settings.name("sort_by", column, item)
        nulls = match["nulls"].lower() == "first" if match["nulls"] else None
        columns.setdefault(column.lower(), SortColumn(column, (match["order"] or "").lower() == "desc", nulls))
    return tuple(columns.values())


def _texts(section: Section | None) -> Iterator[tuple[Section, str]]:
    for item in section.items() if section else ():
        for text in split_arguments(item.text()):
            yield item, text


def _partition(item: Section, text: str) -> Partition | None:
    alias_match = _AS.fullmatch(text)
    name = alias_match["name"] if alias_match else None
    if name is not None and not is_name(name):
        item.report("bad-name", f"'{name}' is not a valid name", "Use lower-case letters, digits and underscores.")
        name = None
    return _field(item, alias_match["field"] if alias_match else text, name)


def _field(item: Section, text: str, name: str | None) -> Partition | None:
    if re.fullmatch(r"`?\w+`?", text):
        return Partition("identity", text.strip("`"), name=name)
    match = _CALL.fullmatch(text)
    if match:
        transform = match["transform"].lower().removesuffix("s")
        arguments = [a.strip().strip("`") for a in match["arguments"].split(",")]
        if _ARGUMENTS.get(transform) == len(arguments) and re.fullmatch(r"\w+", arguments[-1]):
            return _transformed(item, transform, arguments, name)
    item.report("bad-value", f"{quote_text(text)} is not a partition field", _PARTITION_FORMS)
    return None


def _transformed(item: Section, transform: str, arguments: list[str], name: str | None) -> Partition | None:
    if len(arguments) == 1:
        return Partition(transform, arguments[0], name=name)
    number, column = arguments
    if not re.fullmatch("[0-9]{1,9}", number) or int(number) < 1:
        item.report("bad-value", f"'{number}' is not a number", f"Write {transform}(16, {column}).")
        return None
    return Partition(transform, column, int(number), name)


def _check_clash(item: Section, partition: Partition, partitions: list[Partition]) -> None:
    """Iceberg takes one field a meaning, one transform of time a column, and each name once."""
    for other in partitions:
        if _meaning(partition) == _meaning(other):
            both_times = partition.transform in _TIMES and partition.transform != other.transform
            way = "by two units of time" if both_times else "in the same way"
            message = f"'{partition.column}' is partitioned by twice, {way}"
            item.report("partition-clash", message, "Keep the finer one.")
            return
        if partition.field_name.lower() == other.field_name.lower():
            message = f"two partition fields are called '{partition.field_name}'"
            item.report("partition-clash", message, "Name one of them: bucket(16, id) as id_part.")
            return


def _meaning(partition: Partition) -> tuple[str, str, int | None]:
    transform = "time" if partition.transform in _TIMES else partition.transform
    return transform, partition.column.lower(), partition.number


_Word = TypeVar("_Word", bound=StrEnum)
_DEFAULT = Write()
# What the writer sets itself; anything else goes to Spark as it is.
_OWN_OPTIONS = ("branch", "overwrite-mode", "validate-from-snapshot-id")
_SUMMARY = "snapshot-property."
_OWN_SUMMARY = f"{_SUMMARY}engine."
# The columns of these keys are in the table.
_KEPT = {"unique_key", "sequence_by", "partition_by", "sort_by"}


def read_write(settings: MergedSettings) -> Write:
    """Read the write settings as written; what follows from the query is added later."""
    history = _history(settings)
    check_all = _checks_all(settings) or (history is History.CHANGES and not settings.says("check"))
    deletes = Deletes.CLOSE if history is History.CHANGES else _DEFAULT.deletes
    return Write(
        output_mode=_output_mode(settings),
        partition_by=read_partitions(settings),
        table_properties=_properties(settings.get("table_properties")),
        unique_key=_unique_key(settings),
        sequence_by=settings.columns("sequence_by"),
        delete_when=read_condition(settings, "delete_when", settings.get("delete_when")),
        history=history,
        check=() if check_all else settings.columns("check"),
        check_all=check_all,
        deletes=_word_setting(settings, "deletes", deletes),
        on_empty_extract=_word_setting(settings, "on_empty_extract", _DEFAULT.on_empty_extract),
        sort_by=read_sort(settings),
        exclude=_exclude(settings),
        deletes_remembered=_deletes_remembered(settings.get("deletes_remembered")),
        overwrite=_word_setting(settings, "overwrite", _DEFAULT.overwrite),
        refresh=_word_setting(settings, "refresh", _DEFAULT.refresh),
        write_options=_write_options(settings.get("write_options")),
        format_version=int(settings.word("format_version", "2", "3") or 0) or None,
        on_schema_change=_word_setting(settings, "on_schema_change", _DEFAULT.on_schema_change),
        publish=_word_setting(settings, "publish", _DEFAULT.publish),
    )


def _word_setting(settings: MergedSettings, key: str, default: _Word) -> _Word:
    """The word of a setting, of the kind of its default."""
    kind = type(default)
    word = settings.word(key, *kind) if key in settings.keys else ""
    return kind(word) if word else default


def _output_mode(settings: MergedSettings) -> OutputMode | None:
    value = settings.word("output_mode", *OutputMode)
    return OutputMode(value) if value else None


def _unique_key(settings: MergedSettings) -> tuple[str, ...]:
    section = settings.get("unique_key")
    if section is not None and section.value == []:
        hint = "List the columns that identify a row, or remove it."
        section.report("bad-value", "'unique_key' names no column", hint)
    return settings.columns("unique_key")


def _history(settings: MergedSettings) -> History:
    section = settings.get("history")
    if section is not None and isinstance(section.value, str) and section.value.lower() not in {"true", "false"}:
        word = section.choice("true", "false", History.CHANGES)
        return History.CHANGES if word == History.CHANGES else History.NONE
    return History.VERSIONS if settings.boolean("history") else History.NONE


def _checks_all(settings: MergedSettings) -> bool:
    """Whether `check` is the word `all`; a list `[all]` is a column of that name."""
    section = settings.get("check")
    return section is not None and section.value == "all"


def _exclude(settings: MergedSettings) -> tuple[str, ...]:
    """The columns that are kept out; what identifies rows or orders files has to be in the table."""
    needed = {name.column.lower(): name.key for name in reversed(settings.named_columns) if name.key in _KEPT}
    places = settings.column_places("exclude")
    for column, item in places:
        key = needed.get(column.lower())
        if key is not None:
            message = f"'exclude' drops '{column}', which '{key}' {settings.where(key)} needs"
            item.report("setting-conflict", message, "Remove it from one of them.")
    return tuple(column for column, _ in places)


def _deletes_remembered(section: Section | None) -> str:
    text = section.duration() if section else ""
    if section and text and not duration_seconds(text):
        hint = "Write 1 day or more, or remove it (default: 7 days)."
        section.report("bad-value", "'deletes_remembered' must be greater than zero", hint)
    return text or _DEFAULT.deletes_remembered


def _properties(section: Section | None) -> dict[str, str]:
    properties = {}
    for key, part in section.mapping() if section else ():
        properties[key] = part.option()
        if is_plain(part.value) and (fault := property_fault(key, properties[key])) is not None:
            part.report(fault.code, fault.message, fault.hint)
    return properties


def _write_options(section: Section | None) -> dict[str, str]:
    options, parts = {}, {}
    for key, part in section.mapping() if section else ():
        if key.lower() in _OWN_OPTIONS or key.lower().startswith(_OWN_SUMMARY):
            part.report("bad-value", f"the option '{key}' is set by Headrace", "Remove it.", at_key=True)
        else:
            options[key], parts[key] = part.option(), part
    valid_options = {key: value for key, value in options.items() if _is_checked(key, parts[key])}
    for name, fault in option_faults(valid_options, ICEBERG_WRITE, "Iceberg's writer"):
        at_key = fault.code != "bad-value"
        hint = fault.hint or "Remove it; properties of the table are written under 'table_properties:'."
        parts[name].report(fault.code, fault.message, hint, at_key=at_key)
    return options


def _is_checked(key: str, part: Section) -> bool:
    """Snapshot properties have any name; a value that is not a string, or failed to render, is already reported."""
    return not key.lower().startswith(_SUMMARY) and is_plain(part.value)
