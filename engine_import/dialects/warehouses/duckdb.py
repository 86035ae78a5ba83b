"""DuckDB: its functions, types and habits (duckdb.org/docs); those here were compared with Spark row by row."""

from __future__ import annotations

from typing import Final

from engine_import.dialects.syntax.call import Call
from engine_import.dialects.syntax.warehouse import Noted, Rule, Warehouse
from engine_import.dialects.warehouses import text_rules, time_rules

_NULLS_IN_ARRAY = "NULLs are elements there, and last in an order; here they are left out, and first"
_WHOLE = "if({0} < 0, ceil({0}), floor({0}))"


def with_nulls(call: Call) -> str | Noted | None:
    """Translate array_agg() where NULLs are elements; Spark's leaves them out."""
    ordered = text_rules.ordered_array(call)
    if ordered is None and (len(call) != 1 or any(node.word == "order" for node in call[0].nodes)):
        return None
    if ordered is None and call[0].nodes[0].word != "distinct":
        return call.fill("transform(collect_list(struct({0} as v_)), e -> e.v_)")
    return Noted(ordered or call.fill("collect_set({v})", v=call.write(call[0].nodes[1:])), _NULLS_IN_ARRAY)


def first_known(call: Call) -> str | None:
    """Translate any_value(), which is never NULL where there is a value."""
    return call.fill("any_value({0}, true)") if len(call) == 1 else None


DATES: Final[dict[str, Rule]] = {
    "date_diff": time_rules.unit_first, "datediff": time_rules.unit_first, "date_sub/3": time_rules.whole_units,
    "datesub": time_rules.whole_units,
    "extract": time_rules.extracted(sunday=time_rules.FROM_SUNDAY_0, second="second({0})"),
    "date_part": time_rules.extracted(sunday=time_rules.FROM_SUNDAY_0, second="second({0})"),
    "datepart": time_rules.extracted(sunday=time_rules.FROM_SUNDAY_0, second="second({0})"),
    "dayofweek/1": time_rules.FROM_SUNDAY_0, "weekday/1": time_rules.FROM_SUNDAY_0, "isodow/1": "(weekday({0}) + 1)",
    "week/1": "weekofyear({0})", "dayname/1": "date_format({0}, 'EEEE')", "monthname/1": "date_format({0}, 'MMMM')",
    "epoch/1": "(unix_micros(cast({0} as timestamp)) / 1000000)", "today/0": "current_date()",
    "strftime": time_rules.formatted("date_format({v}, {p})", pattern=1, strftime=True),
    "strptime": time_rules.formatted("to_timestamp({v}, {p})", pattern=1, strftime=True),
    "try_strptime": time_rules.formatted("try_to_timestamp({v}, {p})", pattern=1, strftime=True),
}  # fmt: skip
_FUNCTIONS: Final[dict[str, Rule]] = {
    **DATES,
    # Strings.
    "split": text_rules.split_by_text, "str_split": text_rules.split_by_text, "string_split": text_rules.split_by_text,
    "string_to_array": text_rules.split_by_text, "regexp_matches/2": "regexp_like({0}, {1})",
    "regexp_full_match/2": "regexp_like({0}, concat('^(?:', {1}, ')$'))",
    "regexp_extract/2": "regexp_extract({0}, {1}, 0)", "regexp_replace": text_rules.replaced(first_only=True),
    "regexp_extract_all/2": "regexp_extract_all({0}, {1}, 0)",
    "starts_with": "startswith({*})", "ends_with": "endswith({*})", "suffix": "endswith({*})",
    "prefix": "startswith({*})", "strpos": "instr({*})", "strlen": "octet_length({*})",
    "concat": "concat_ws('', {*})", "string_agg": text_rules.joined_texts(","),
    "group_concat": text_rules.joined_texts(","),
    "listagg": text_rules.joined_texts(","), "gen_random_uuid/0": "uuid()",
    # Numbers and conditions.
    "log/1": "log10({0})", "trunc/1": _WHOLE, "random/0": "rand()", "any_value": first_known,
    "arg_max/2": "max_by({0}, {1})", "arg_min/2": "min_by({0}, {1})", "quantile_cont/2": "percentile({0}, {1})",
    "array_agg": with_nulls, "list": with_nulls,
    # Arrays.
    "list_value": "array({*})", "list_contains": "array_contains({*})", "list_has": "array_contains({*})",
    "array_has": "array_contains({*})", "array_length/1": "array_size({0})",
    "array_to_string/2": "array_join({0}, {1})",
    "list_distinct": "array_distinct({*})", "list_concat": "concat({*})", "array_concat": "concat({*})",
    "list_transform": "transform({*})", "list_filter": "filter({*})", "list_reverse": "reverse({*})",
    "generate_series/2": "case when {0} <= {1} then sequence({0}, {1}) else array() end",
    "substring": text_rules.from_position, "substr": text_rules.from_position,
    "json_extract_string/2": "get_json_object({0}, {1})",
}  # fmt: skip
DUCKDB: Final = Warehouse(
    "duckdb",
    _FUNCTIONS,
    {
        "decimal": "decimal(18, 3)", "numeric": "decimal(18, 3)", "varchar": "string", "float": "float",
        "real": "float", "timestamp": "timestamp", "datetime": "timestamp", "hugeint": "decimal(38, 0)",
        "utinyint": "smallint", "usmallint": "int", "uinteger": "bigint", "ubigint": "decimal(20, 0)",
        "tinyint": "tinyint", "smallint": "smallint",
    },
    kept={
        "hash": "another number than DuckDB's",
        "mode": "among values of the same number another one may be returned",
    },
    nulls="last", first_index=1, caret=True, tilde="whole", rounds="bround",
)  # fmt: skip
