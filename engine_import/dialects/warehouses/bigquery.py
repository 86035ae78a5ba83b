"""BigQuery: GoogleSQL's functions, types and habits (cloud.google.com/bigquery/docs/reference/standard-sql)."""

from __future__ import annotations

from typing import Final

from engine_import.dialects.syntax.call import Call
from engine_import.dialects.syntax.warehouse import Noted, Rule, Warehouse
from engine_import.dialects.warehouses import text_rules, time_rules

_SCALARS = "returns NULL for an object or array there, and its JSON here"
_NO_SUNDAY = "a week of BigQuery begins on Sunday; Spark has weeks of ISO"


def _date_plus(call: Call) -> str | None:
    found = call.interval(1) if len(call) == 2 else None  # noqa: PLR2004 - date and interval
    return time_rules.date_plus(call, *found) if found else None


def _date_minus(call: Call) -> str | None:
    found = call.interval(1) if len(call) == 2 else None  # noqa: PLR2004 - date and interval
    return time_rules.date_plus(call, time_rules.negative(found[0]), found[1]) if found else None


def _time_plus(call: Call) -> str | None:
    found = call.interval(1) if len(call) == 2 else None  # noqa: PLR2004 - time and interval
    return call.fill("timestampadd({u}, {n}, {0})", u=found[1], n=found[0]) if found else None


def _time_minus(call: Call) -> str | None:
    found = call.interval(1) if len(call) == 2 else None  # noqa: PLR2004 - time and interval
    return call.fill("timestampadd({u}, {n}, {0})", u=found[1], n=time_rules.negative(found[0])) if found else None


def _difference(call: Call) -> str | Noted | None:
    """Translate date_diff(end, start, unit), which counts the bounds between them."""
    if len(call) != 3:  # noqa: PLR2004 - end, start, unit
        return None
    if call[2].unit == "WEEK":
        template = "cast(datediff(date_sub({0}, dayofweek({0}) - 1), date_sub({1}, dayofweek({1}) - 1)) / 7 as int)"
        return call.fill(template)
    return time_rules.boundaries(call, 1, 0, "WEEK" if _monday(call[2].text) else call[2].unit)


def _whole_difference(call: Call) -> str | None:
    """Translate timestamp_diff(end, start, unit), which counts whole units."""
    unit = call[2].unit if len(call) == 3 else ""  # noqa: PLR2004 - end, start, unit
    return call.fill("timestampdiff({u}, {1}, {0})", u=unit) if unit else None


def _monday(text: str) -> bool:
    return text.casefold().replace(" ", "") in ("isoweek", "week(monday)")


def _truncated(*, dates: bool) -> Rule:
    def rule(call: Call) -> str | None:
        if len(call) != 2:  # noqa: PLR2004 - time and unit
            return None
        unit = "WEEK" if _monday(call[1].text) else call[1].unit
        if unit == "WEEK" and not _monday(call[1].text):
            day = "date_sub({0}, dayofweek({0}) - 1)"
            return call.fill(day if dates else f"cast({day} as timestamp)")
        if not unit:
            return None
        template = f"date_trunc('{unit}', {{0}})"
        return call.fill(f"cast({template} as date)" if dates and unit in _OF_DATES else template)

    return rule


_OF_DATES = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")


def _quantile(call: Call) -> str | Noted | None:
    """Translate percentile_cont(x, p), which is a window function there."""
    return call.fill("percentile_cont({1}) within group (order by {0})") if len(call) == 2 else None  # noqa: PLR2004 - value and share


def _last_day(call: Call) -> str | None:
    return call.fill("last_day({0})") if len(call) == 2 and call[1].unit == "MONTH" else None  # noqa: PLR2004 - date and unit


def _dates(call: Call) -> str | None:
    step = call.interval(2) if len(call) == 3 else ("1", "DAY")  # noqa: PLR2004 - start, end, step
    if step is None or not step[0].lstrip("-").isdigit():
        return None
    return call.fill(
        "case when {0} <= {1} then sequence({0}, {1}, interval {n} {u}) else array() end", n=step[0], u=step[1]
    )


def _number_text(call: Call) -> str | None:
    """Translate format() if Java's format has the same directives."""
    pattern = call[0].value if len(call) > 1 else None
    if pattern is None or any(sign in pattern for sign in ("%t", "%T", "%'", "%p", "%P", "%i")):
        return None
    return call.fill("format_string({*})")


def _hexadecimal(call: Call) -> str | None:
    inner = call[0].nodes if len(call) == 1 else ()
    name = inner[0].word if len(inner) == 2 and inner[1].kind == "brackets" else ""  # noqa: PLR2004 - a name and its brackets
    if name in _HASHES and inner:
        return call.fill(_HASHES[name], x=call.write(inner[1].inside))
    return call.fill("lower(hex({0}))")


_HASHES = {"md5": "md5({x})", "sha1": "sha1({x})", "sha256": "sha2({x}, 256)", "sha512": "sha2({x}, 512)"}
_FUNCTIONS: Final[dict[str, Rule]] = {
    # Dates and times.
    "date_add": _date_plus, "date_sub": _date_minus, "datetime_add": _time_plus, "datetime_sub": _time_minus,
    "timestamp_add": _time_plus, "timestamp_sub": _time_minus, "date_diff": _difference, "datetime_diff": _difference,
    "timestamp_diff": _whole_difference, "date_trunc": _truncated(dates=True),
    "timestamp_trunc": _truncated(dates=False), "datetime_trunc": _truncated(dates=False),
    "extract": time_rules.extracted(sunday="", week=_NO_SUNDAY),
    "current_date/1": "cast(from_utc_timestamp(current_timestamp(), {0}) as date)",
    "current_datetime/0": "cast(current_timestamp() as timestamp_ntz)",
    "current_datetime/1": "cast(from_utc_timestamp(current_timestamp(), {0}) as timestamp_ntz)",
    "date/2": "cast(from_utc_timestamp({0}, {1}) as date)", "date/3": "make_date({0}, {1}, {2})",
    "datetime/1": "cast({0} as timestamp_ntz)", "datetime/2": "cast(from_utc_timestamp({0}, {1}) as timestamp_ntz)",
    "timestamp/2": "to_utc_timestamp({0}, {1})",
    "datetime/6": "cast(make_timestamp({0}, {1}, {2}, {3}, {4}, {5}) as timestamp_ntz)",
    "last_day": _last_day, "generate_date_array": _dates,
    "generate_array/3": "case when ({1} - {0}) * {2} >= 0 then sequence({0}, {1}, {2}) else array() end",
    "generate_array/2": "case when {0} <= {1} then sequence({0}, {1}) else array() end",
    "parse_date": time_rules.formatted("to_date({v}, {p})", pattern=0, strftime=True),
    "safe.parse_date": time_rules.formatted("cast(try_to_timestamp({v}, {p}) as date)", pattern=0, strftime=True),
    "parse_timestamp": time_rules.formatted("to_timestamp({v}, {p})", pattern=0, strftime=True),
    "safe.parse_timestamp": time_rules.formatted("try_to_timestamp({v}, {p})", pattern=0, strftime=True),
    "parse_datetime": time_rules.formatted("to_timestamp_ntz({v}, {p})", pattern=0, strftime=True),
    "safe.parse_datetime": time_rules.formatted(
        "cast(try_to_timestamp({v}, {p}) as timestamp_ntz)", pattern=0, strftime=True
    ),
    "format_date": time_rules.formatted("date_format({v}, {p})", pattern=0, strftime=True),
    "format_datetime": time_rules.formatted("date_format({v}, {p})", pattern=0, strftime=True),
    "format_timestamp": time_rules.formatted("date_format({v}, {p})", pattern=0, strftime=True),
    # Strings.
    "split": text_rules.split_by_text, "regexp_contains": "regexp_like({0}, {1})",
    "regexp_extract": text_rules.group_or_null,
    "regexp_extract_all": text_rules.all_groups, "regexp_replace": text_rules.replaced(first_only=False),
    "starts_with": "startswith({*})", "ends_with": "endswith({*})", "strpos": "instr({*})",
    "contains_substr": "contains(lower({0}), lower({1}))", "format": _number_text,
    "to_base64": "base64({*})", "from_base64": "unbase64({*})", "to_hex": _hexadecimal, "from_hex": "unhex({*})",
    "md5": "unhex(md5({0}))", "sha256": "unhex(sha2({0}, 256))", "sha512": "unhex(sha2({0}, 512))",
    "generate_uuid": "uuid({*})", "byte_length": "octet_length({*})",
    # Numbers and conditions.
    "safe_divide": "try_divide({*})", "safe_add": "try_add({*})", "safe_subtract": "try_subtract({*})",
    "safe_multiply": "try_multiply({*})", "div": "({0} div {1})", "log/2": "log({1}, {0})",
    "greatest": text_rules.of_all("greatest"), "least": text_rules.of_all("least"),
    "trunc/1": "if({0} < 0, ceil({0}), floor({0}))",
    # Aggregates.
    "countif": "count_if({*})", "logical_or": "bool_or({*})", "logical_and": "bool_and({*})",
    "array_agg": text_rules.ordered_array, "array_concat_agg/1": "flatten(collect_list({0}))",
    "string_agg": text_rules.joined_texts(","), "percentile_cont": _quantile,
    # Arrays and JSON.
    "array_length": "array_size({*})", "array_to_string/2": "array_join({0}, {1})", "array_concat": "concat({*})",
    "array_reverse": "reverse({*})", "to_json_string/1": "to_json({0})",
    "json_value": Noted("get_json_object({0}, {1})", _SCALARS),
    "json_extract_scalar": Noted("get_json_object({0}, {1})", _SCALARS),
    "json_query": "get_json_object({0}, {1})", "json_extract": "get_json_object({0}, {1})",
}  # fmt: skip
BIGQUERY: Final = Warehouse(
    "bigquery",
    _FUNCTIONS,
    {
        **dict.fromkeys(("int64", "int", "integer", "smallint", "bigint", "tinyint", "byteint"), "bigint"),
        "float64": "double", "numeric": "decimal(38, 9)", "decimal": "decimal(38, 9)", "bool": "boolean",
        "bignumeric": "decimal(38, 18)", "bigdecimal": "decimal(38, 18)", "bytes": "binary", "json": "string",
        "datetime": "timestamp_ntz",
    },
    kept={
        "initcap": "a word begins after white space here, and after any of its delimiters there",
        "instr": "with more than two arguments it is not translated",
        "approx_quantiles": "not translated: approx_percentile(x, 0.5)",
    },
    escapes=True,
)  # fmt: skip
