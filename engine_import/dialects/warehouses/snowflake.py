"""Snowflake: its functions, types and habits (docs.snowflake.com/en/sql-reference)."""

from __future__ import annotations

from typing import Final

from engine_import.dialects.syntax.call import Call
from engine_import.dialects.syntax.warehouse import Noted, Rule, Warehouse
from engine_import.dialects.warehouses import text_rules, time_rules

_INITCAP = "a word begins after white space here, and after any of its delimiters there"
_DAY = time_rules.extracted(sunday=time_rules.FROM_SUNDAY_0)


def _text(call: Call) -> str | Noted | None:
    if len(call) == 1:
        return call.fill("cast({0} as string)")
    return time_rules.formatted("date_format({v}, {p})", pattern=1, strftime=False)(call)


def _read(kind: str, *, tries: bool) -> Rule:
    def rule(call: Call) -> str | Noted | None:
        if len(call) == 1:
            return call.fill(f"{'try_cast' if tries else 'cast'}({{0}} as {kind})")
        function = (
            f"cast(try_to_timestamp({{v}}, {{p}}) as {kind})"
            if tries
            else f"cast(to_timestamp({{v}}, {{p}}) as {kind})"
        )
        return time_rules.formatted(function, pattern=1, strftime=False)(call)

    return rule


def _truncated(call: Call) -> str | None:
    unit = call[0].unit if len(call) == 2 else ""  # noqa: PLR2004 - unit and time
    return call.fill("date_trunc({u}, {1})", u=f"'{unit.lower()}'") if unit and call[0].value is None else None


def _whole_match(call: Call) -> str | None:
    """Translate regexp_like(text, pattern), which matches the whole text."""
    return call.fill("regexp_like({0}, concat('^(?:', {1}, ')$'))") if len(call) == 2 else None  # noqa: PLR2004 - text and pattern


_FUNCTIONS: Final[dict[str, Rule]] = {
    # Dates and times.
    "datediff": time_rules.unit_first, "timestampdiff": time_rules.unit_first, "timediff": time_rules.unit_first,
    "dateadd": time_rules.added, "timestampadd": time_rules.added, "timeadd": time_rules.added,
    "date_trunc": _truncated,
    "extract": _DAY, "date_part": _DAY, "dayofweek/1": time_rules.FROM_SUNDAY_0, "dayofweekiso/1": "(weekday({0}) + 1)",
    "week/1": "weekofyear({0})", "weekiso/1": "weekofyear({0})", "yearofweekiso/1": "extract(yearofweek from {0})",
    "to_char": _text, "to_varchar": _text, "to_date": _read("date", tries=False),
    "try_to_date": _read("date", tries=True), "to_timestamp": _read("timestamp", tries=False),
    "to_timestamp_ntz": _read("timestamp_ntz", tries=False), "to_timestamp_ltz": _read("timestamp", tries=False),
    "try_to_timestamp": _read("timestamp", tries=True), "try_to_timestamp_ntz": _read("timestamp_ntz", tries=True),
    "date_from_parts": "make_date({*})", "timestamp_from_parts": "make_timestamp({*})",
    "timestamp_ntz_from_parts": "make_timestamp_ntz({*})", "sysdate/0": "current_timestamp()",
    "getdate/0": "current_timestamp()", "convert_timezone/2": "from_utc_timestamp({1}, {0})",
    # Strings.
    "split": text_rules.split_by_text, "regexp_like": _whole_match, "rlike": _whole_match,
    "regexp_replace": text_rules.replaced(first_only=False), "charindex": "charindex({*})",
    "listagg/1": "listagg({0})", "editdistance": "levenshtein({*})", "to_json/1": "to_json({0})",
    # Numbers and conditions.
    "iff": "if({*})", "zeroifnull/1": "coalesce({0}, 0)", "booland_agg": "bool_and({*})", "boolor_agg": "bool_or({*})",
    "div0/2": "case when {1} = 0 and {0} is not null then 0 else {0} / {1} end",
    "div0null/2": "case when coalesce({1}, 0) = 0 and {0} is not null then 0 else {0} / {1} end",
    "greatest": text_rules.of_all("greatest"), "least": text_rules.of_all("least"),
    "greatest_ignore_nulls": "greatest({*})", "least_ignore_nulls": "least({*})", "square/1": "({0} * {0})",
    "to_boolean/1": "cast({0} as boolean)", "to_double/1": "cast({0} as double)",
    "try_to_boolean/1": "try_cast({0} as boolean)", "try_to_double/1": "try_cast({0} as double)",
    "to_number/1": "cast({0} as decimal(38, 0))", "try_to_number/1": "try_cast({0} as decimal(38, 0))",
    "to_decimal/1": "cast({0} as decimal(38, 0))", "try_to_decimal/1": "try_cast({0} as decimal(38, 0))",
    "to_number/3": "cast({0} as decimal({1}, {2}))", "try_to_number/3": "try_cast({0} as decimal({1}, {2}))",
    "bitand/2": "({0} & {1})", "bitor/2": "({0} | {1})", "bitxor/2": "({0} ^ {1})",
    "approximate_count_distinct": "approx_count_distinct({*})",
    # Arrays.
    "array_construct": "array({*})", "array_cat": "concat({*})", "array_to_string/2": "array_join({0}, {1})",
    "array_contains/2": "array_contains({1}, {0})", "array_unique_agg/1": "collect_set({0})",
    "array_slice/3": "slice({0}, {1} + 1, {2} - {1})", "uuid_string/0": "uuid()",
}  # fmt: skip
SNOWFLAKE: Final = Warehouse(
    "snowflake",
    _FUNCTIONS,
    {
        "int": "bigint", "integer": "bigint", "smallint": "bigint", "tinyint": "bigint", "byteint": "bigint",
        "bigint": "bigint", "float": "double", "float4": "double", "real": "double", "number": "decimal(38, 0)",
        "numeric": "decimal(38, 0)", "decimal": "decimal(38, 0)", "timestamp": "timestamp_ntz",
        "datetime": "timestamp_ntz",
        "timestamp_ltz": "timestamp", "timestamp_tz": "timestamp", "varchar": "string",
    },
    kept={
        "hash": "another number than Snowflake's", "initcap": _INITCAP,
        "trunc": "of a number it is not translated: floor() or ceil(); of a date its unit may differ",
        "regexp_substr": "with more than two arguments it is not translated",
        "object_construct": "not translated: named_struct('a', a)",
        "mode": "among values of the same number another one may be returned",
        "last_day": "with a unit it is not translated",
    },
    escapes=True, nulls="high", first_index=0, colon_paths=True,
)  # fmt: skip
