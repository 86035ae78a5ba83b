"""What type Spark's functions return, by the names that users write; unknown if it hangs on values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from engine.compile.types import spark_types
from engine.compile.types.widening import INTEGERS, arithmetic, digits, is_numeric, wider_type, widest_type

Types = Sequence[str | None]
Rule = Callable[[Types], str | None]

_FIXED = """
string: array_join base64 bin btrim char chr collation concat_ws conv current_catalog current_database current_schema
    current_timezone current_user date_format dayname format_number format_string from_unixtime
    get_json_object hex initcap input_file_name java_method lcase listagg lower ltrim make_valid_utf8 mask md5
    monthname parse_url printf quote randstr reflect regexp_extract regexp_replace regexp_substr repeat
    replace right rtrim schema_of_csv schema_of_json schema_of_variant schema_of_variant_agg
    schema_of_xml session_user sha sha1 sha2 soundex space split_part string string_agg
    substring_index to_char to_csv to_json to_varchar to_xml translate trim try_parse_url try_reflect try_url_decode
    try_validate_utf8 typeof ucase upper url_decode url_encode user uuid validate_utf8 version xpath_string
int: array_size ascii bit_length cardinality char_length character_length date_diff datediff day
    dayofmonth dayofweek dayofyear dense_rank find_in_set hash hour instr json_array_length len
    length levenshtein locate minute month ntile octet_length position quarter rank regexp_count
    regexp_instr row_number second size spark_partition_id strpos unix_date weekday weekofyear xpath_int year
bigint: approx_count_distinct array_position bitmap_bit_position bitmap_bucket_number bitmap_count
    count count_if crc32 factorial grouping_id hll_sketch_estimate input_file_block_length
    input_file_block_start kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
    monotonically_increasing_id regr_count theta_sketch_estimate time_diff timestampdiff to_unix_timestamp
    unix_micros unix_millis unix_seconds unix_timestamp width_bucket xpath_long xxhash64
smallint: xpath_short
tinyint: bit_get getbit grouping
double: acos acosh asin asinh atan atan2 atanh cbrt corr cos cosh cot covar_pop covar_samp csc cume_dist
    degrees e exp expm1 hypot kurtosis ln log log10 log1p log2 months_between nanvl percent_rank pi pow
    power radians rand randn random regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
    regr_syy rint sec sign signum sin sinh skewness sqrt std stddev stddev_pop stddev_samp tan tanh var_pop
    var_samp variance xpath_double xpath_number
float: xpath_float
boolean: any array_contains arrays_overlap bool_and bool_or contains endswith equal_null every exists forall
    ilike is_valid_utf8 is_variant_null isnan isnotnull isnull like luhn_check map_contains_key regexp
    regexp_like rlike some startswith xpath_boolean
date: add_months curdate current_date date_add date_from_unix_date date_sub dateadd last_day make_date
    next_day to_date trunc try_to_date
timestamp: current_timestamp date_trunc from_utc_timestamp make_timestamp make_timestamp_ltz now timestamp_micros
    timestamp_millis timestamp_seconds to_timestamp to_timestamp_ltz to_utc_timestamp window_time
    try_make_timestamp try_make_timestamp_ltz try_to_timestamp
timestamp_ntz: convert_timezone localtimestamp make_timestamp_ntz to_timestamp_ntz try_make_timestamp_ntz
binary: aes_encrypt binary bitmap_and_agg bitmap_construct_agg bitmap_or_agg encode hll_sketch_agg hll_union
    hll_union_agg to_avro to_binary try_aes_decrypt aes_decrypt try_to_binary unbase64 unhex theta_sketch_agg
    theta_union theta_union_agg theta_difference theta_intersection theta_intersection_agg
time(6): make_time to_time try_to_time
variant: parse_json to_variant_object try_parse_json
void: assert_true raise_error
array<string>: json_object_keys regexp_extract_all split xpath
array<array<string>>: sentences
map<string,string>: str_to_map
interval day to second: make_dt_interval
interval year to month: make_ym_interval
interval: make_interval try_make_interval
"""


def _fixed_types() -> Iterator[tuple[str, str]]:
    for line in _FIXED.replace("\n    ", " ").strip().splitlines():
        type_, _, names = line.partition(": ")
        yield from ((name, type_) for name in names.split())


# Functions that give one type whatever they are given.
FIXED = frozenset(name for name, _ in _fixed_types())


def _always(type_: str) -> Rule:
    return lambda _: type_


def _two(types: Types) -> tuple[str | None, str | None]:
    first, second, *_ = [*types, None, None]
    return first, second


def _first(types: Types) -> str | None:
    return types[0] if types else None


def _number(types: Types) -> str | None:
    """The type of the argument; a text is read as a number."""
    return "double" if _first(types) in {"string", "void"} else _first(types)


def _sum(types: Types) -> str | None:
    type_ = _first(types)
    if type_ is None:
        return None
    if type_ in INTEGERS:
        return "bigint"
    if type_.startswith("decimal"):
        precision, scale = digits(type_)
        return f"decimal({min(precision + 10, 38)},{scale})"
    return type_ if type_.startswith("interval") else "double"


def _avg(types: Types) -> str | None:
    type_ = _first(types)
    if type_ is None:
        return None
    if type_.startswith("decimal"):
        precision, scale = digits(type_)
        return f"decimal({min(precision + 4, 38)},{min(scale + 4, 38)})"
    return _middle(types)


def _middle(types: Types) -> str | None:
    type_ = _first(types)
    if type_ is None or not type_.startswith("interval"):
        return None if type_ is None else "double"
    months = type_.split()[1] in {"year", "month"}
    return "interval year to month" if months else "interval day to second"


def _whole(types: Types) -> str | None:
    type_ = _first(types)
    if type_ is None:
        return None
    if type_.startswith("decimal"):
        precision, scale = digits(type_)
        return f"decimal({precision - scale + 1},0)" if scale else type_
    return "bigint"


def _flat(types: Types) -> str | None:
    return spark_types.element(_first(types))


def _item(types: Types) -> str | None:
    return spark_types.element(_first(types)) or spark_types.entry(_first(types))[1]


def _concat(types: Types) -> str | None:
    if None in types or not types:
        return None
    if all(type_ and type_.startswith("array<") for type_ in types):
        return widest_type(types)
    return "binary" if set(types) == {"binary"} else "string"


def _map(types: Types) -> str | None:
    return spark_types.map_of(widest_type(types[::2]), widest_type(types[1::2]))


def _entries(types: Types) -> str | None:
    key, value = spark_types.entry(_first(types))
    return spark_types.array(spark_types.struct([("key", key), ("value", value)]))


def _from_entries(types: Types) -> str | None:
    pair = spark_types.fields(spark_types.element(_first(types))) or ()
    return spark_types.map_of(*_two([type_ for _, type_ in pair]))


def _with_element(types: Types) -> str | None:
    inner, new = spark_types.element(_first(types)), types[-1] if types else None
    if inner != "double" and new == "float" and inner is not None and is_numeric(inner):
        return spark_types.array("float")
    return spark_types.array(wider_type(inner, new))


def _same_array(types: Types) -> str | None:
    return "array<void>" if _first(types) == "void" else _first(types)


def _padded_type(types: Types) -> str | None:
    return "binary" if set(types[::2]) == {"binary"} else "string" if _first(types) else None


def _sequence(types: Types) -> str | None:
    start = widest_type(types[:2])
    return spark_types.array(start if start != "string" else None)


def _pair(sign: str) -> Rule:
    return lambda types: arithmetic(sign, *_two(types))


def _shifted_type(types: Types) -> str | None:
    return "bigint" if _first(types) == "bigint" else "int" if _first(types) else None


def _reverse(types: Types) -> str | None:
    type_ = _first(types)
    return type_ if type_ is None or type_.startswith("array<") else "string"


def _percentile(types: Types) -> str | None:
    many = len(types) > 1 and str(types[1]).startswith("array<")
    middle = _middle(types)
    return spark_types.array(middle) if many else middle


def _approximate(types: Types) -> str | None:
    many = len(types) > 1 and str(types[1]).startswith("array<")
    return spark_types.array(_number(types)) if many else _number(types)


def _piece(types: Types) -> str | None:
    type_ = _first(types)
    return type_ if type_ is None or type_ == "binary" else "string"


def _null_or_zero(types: Types) -> str | None:
    return wider_type(_first(types), "int")


def _bits_of_all(types: Types) -> str | None:
    """bit_and() and its like, which read NULL as a whole number."""
    return "int" if _first(types) == "void" else _first(types)


def _bits(types: Types) -> str | None:
    type_ = _first(types)
    return type_ if type_ is None or is_numeric(type_) else None


_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            "any_value",
            "approx_top",
            "array_except",
            "array_intersect",
            "array_remove",
            "array_sort",
            "filter",
            "first",
            "first_value",
            "histogram",
            "lag",
            "last",
            "last_value",
            "lead",
            "map_filter",
            "max",
            "max_by",
            "min",
            "min_by",
            "mode",
            "nth_value",
            "nullif",
            "nullifzero",
            "time_trunc",
        ),
        _first,
    ),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), _bits_of_all),
    **dict.fromkeys(("array_compact", "array_distinct", "shuffle", "slice", "sort_array"), _same_array),
    **dict.fromkeys(("lpad", "rpad"), _padded_type),
    **dict.fromkeys(("abs", "negative", "positive"), _number),
    **dict.fromkeys(("coalesce", "ifnull", "nvl", "greatest", "least"), widest_type),
    **dict.fromkeys(("sum", "try_sum"), _sum),
    **dict.fromkeys(("avg", "mean", "try_avg"), _avg),
    **dict.fromkeys(("ceil", "ceiling", "floor"), _whole),
    **dict.fromkeys(("mod", "try_mod", "pmod"), _pair("%")),
    **dict.fromkeys(("array_max", "array_min", "flatten", "explode", "explode_outer"), _flat),
    **dict.fromkeys(("element_at", "try_element_at", "get"), _item),
    **dict.fromkeys(("collect_list", "collect_set", "array_agg"), lambda types: spark_types.array(_first(types))),
    **dict.fromkeys(("array_append", "array_prepend", "array_insert"), _with_element),
    **dict.fromkeys(("shiftleft", "shiftright", "shiftrightunsigned"), _shifted_type),
    **dict.fromkeys(("array_union", "map_concat"), widest_type),
    **dict.fromkeys(("approx_percentile", "percentile_approx"), _approximate),
    **dict.fromkeys(("left", "overlay", "substr", "substring"), _piece),
    "array": lambda types: spark_types.array(widest_type(types)),
    "array_repeat": lambda types: spark_types.array(_first(types)),
    "bit_count": lambda _: "int",
    "bitnot": _bits,
    "concat": _concat,
    "elt": lambda types: _concat(types[1:]),
    "current_time": lambda types: None if types else "time(6)",
    "map": _map,
    "map_entries": _entries,
    "map_from_arrays": lambda types: spark_types.map_of(*map(spark_types.element, _two(types))),
    "map_from_entries": _from_entries,
    "map_keys": lambda types: spark_types.array(spark_types.entry(_first(types))[0]),
    "map_values": lambda types: spark_types.array(spark_types.entry(_first(types))[1]),
    "median": _middle,
    "nvl2": lambda types: wider_type(*_two(types[1:])),
    "percentile": _percentile,
    "percentile_cont": _percentile,
    "percentile_disc": _percentile,
    "reverse": _reverse,
    "sequence": _sequence,
    "try_add": _pair("+"),
    "try_divide": _pair("/"),
    "try_multiply": _pair("*"),
    "try_subtract": _pair("-"),
    "zeroifnull": _null_or_zero,
}
# Casts that are written as calls: int('1').
_RULES.update(
    (name, _always(name)) for name in ("bigint", "boolean", "date", "double", "float", "int", "smallint", "tinyint")
)
_RULES["timestamp"], _RULES["decimal"] = _always("timestamp"), _always("decimal(10,0)")
_RULES.update((name, _always(type_)) for name, type_ in _fixed_types())


def has_result_type(name: str) -> bool:
    return name in _RULES


def return_type(name: str, types: Types) -> str | None:
    rule = _RULES.get(name)
    return rule(types) if rule is not None else None


def rounded_type(name: str, type_: str | None, places: int | None) -> str | None:
    """The type of round(x, places) and its like; `places` is None if it is not a number."""
    if type_ is not None and name in {"ceil", "ceiling", "floor"}:
        type_ = _AS_DECIMAL.get(type_, type_)
    if type_ is None or not type_.startswith("decimal"):
        return _number([type_])
    if places is None:
        return None
    precision, scale = digits(type_)
    whole = precision - scale + 1
    if places < 0:
        return f"decimal({min(max(whole, 1 - places), 38)},0)"
    decimals = min(scale, places)
    return f"decimal({min(whole + decimals, 38)},{decimals})"


_AS_DECIMAL = {
    "double": "decimal(30,15)", "float": "decimal(14,7)", "string": "decimal(30,15)",
    **{name: f"decimal({size},0)" for name, size in INTEGERS.items()},
}  # fmt: skip
