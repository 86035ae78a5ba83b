"""Postgres and Redshift: their functions, types and habits (postgresql.org/docs, docs.aws.amazon.com/redshift)."""

from __future__ import annotations

from typing import Final

from engine_import.dialects.syntax.call import Call
from engine_import.dialects.syntax.literals import quoted
from engine_import.dialects.syntax.warehouse import Rule, Warehouse
from engine_import.dialects.warehouses import text_rules, time_rules
from engine_import.dialects.warehouses.duckdb import first_known, with_nulls

_INITCAP = "a word begins after white space here, and after all but letters and digits there"
_WHOLE = "if({0} < 0, ceil({0}), floor({0}))"
_DAY = time_rules.extracted(sunday=time_rules.FROM_SUNDAY_0)


def _json_path(call: Call) -> str | None:
    parts = [argument.value for argument in call.arguments[1:]]
    if not parts or any(part is None for part in parts):
        return None
    path = "".join(f"[{part}]" if part.isdigit() else f"['{part}']" for part in parts if part is not None)
    return call.fill("get_json_object({0}, {p})", p=quoted(f"${path}"))


SHARED: Final[dict[str, Rule]] = {
    "extract": _DAY, "date_part": _DAY,
    "to_char/2": time_rules.formatted("date_format({v}, {p})", pattern=1, strftime=False),
    "to_date/2": time_rules.formatted("to_date({v}, {p})", pattern=1, strftime=False),
    "to_timestamp/2": time_rules.formatted("to_timestamp({v}, {p})", pattern=1, strftime=False),
    "strpos": "instr({*})", "log/1": "log10({0})", "trunc/1": _WHOLE, "random/0": "rand()",
    "array_to_string/2": "array_join({0}, {1})", "string_to_array/2": text_rules.split_by_text,
    "json_extract_path_text": _json_path, "substring": text_rules.from_position, "substr": text_rules.from_position,
}  # fmt: skip
_POSTGRES: Final[dict[str, Rule]] = {
    **SHARED,
    "to_timestamp/1": "timestamp_seconds({0})", "concat": "concat_ws('', {*})",
    "regexp_replace": text_rules.replaced(first_only=True), "string_agg": text_rules.joined_texts(","),
    "starts_with": "startswith({*})", "gen_random_uuid/0": "uuid()", "array_agg": with_nulls,
    "any_value": first_known, "cardinality/1": "array_size({0})", "clock_timestamp/0": "current_timestamp()",
    "regexp_like/2": "regexp_like({0}, {1})", "to_jsonb/1": "to_json({0})", "every": "bool_and({*})",
}  # fmt: skip
_REDSHIFT: Final[dict[str, Rule]] = {
    **SHARED,
    "datediff": time_rules.unit_first, "date_diff": time_rules.unit_first, "dateadd": time_rules.added,
    "date_add": time_rules.added,
    "getdate/0": "current_timestamp()", "sysdate/0": "current_timestamp()", "isnull/2": "coalesce({0}, {1})",
    "regexp_replace/3": text_rules.replaced(first_only=False),
    "regexp_substr/2": "coalesce(regexp_substr({0}, {1}), '')",
    "regexp_count/2": "regexp_count({0}, {1})", "strtol/2": "cast(conv({0}, {1}, 10) as bigint)",
    "dexp/1": "exp({0})", "split_to_array/2": text_rules.split_by_text,
    "convert_timezone/2": "from_utc_timestamp({1}, {0})",
}  # fmt: skip
_TYPES: Final = {
    "float": "double", "numeric": "decimal(38, 9)", "decimal": "decimal(38, 9)", "int2": "smallint",
    "smallint": "smallint", "int4": "int", "int8": "bigint", "jsonb": "string", "json": "string", "citext": "string",
    "timestamp": "timestamp", "timestamp without time zone": "timestamp", "bytea": "binary", "super": "variant",
    "serial": "int", "bigserial": "bigint",
}  # fmt: skip
_KEPT: Final = {"initcap": _INITCAP}
POSTGRES: Final = Warehouse(
    "postgres", _POSTGRES, _TYPES, kept=_KEPT, nulls="high", first_index=1, caret=True, whole_slash=True, tilde="part",
)  # fmt: skip
REDSHIFT: Final = Warehouse(
    "redshift",
    _REDSHIFT,
    {**_TYPES, "numeric": "decimal(18, 0)", "decimal": "decimal(18, 0)"},
    kept=_KEPT,
    escapes=True, nulls="high", first_index=0, caret=True, whole_slash=True, tilde="part",
)  # fmt: skip
