"""Reading `partition_by:` and `sort_by:`: one SQL text or a list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.compile.config.window_config import split_arguments
from engine.compile.config.winning_values import MergedSettings
from engine.project.yaml_section import Section, is_name, quote_text
from engine.relations import Partition, SortColumn

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
