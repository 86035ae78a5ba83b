"""Whether two types, with those inside them, meet in a comparison, CASE or UNION, and which types functions take.

Rules are those of Spark's analyser (ANSI mode, Spark's default). A function that is not here, or an argument beyond
those listed, is not checked. A test asks Spark for each entry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from engine.compile.types import spark_types
from engine.compile.types.widening import digits

_SMALL = ("tinyint", "smallint", "int")
_FAMILIES = {
    **dict.fromkeys(_SMALL, "small"), "bigint": "bigint", "float": "float", "double": "float", "string": "string",
    "boolean": "boolean", "date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz",
    "binary": "binary", "variant": "variant",
}  # fmt: skip
NUMBERS = frozenset({"small", "bigint", "decimal", "float"})
TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
INTERVALS = frozenset({"days", "months"})
NESTED = frozenset({"array", "map", "struct"})
_UNORDERED = re.compile(r"(?:^|[<:,])(?:map<|variant\b)")
_UNHASHED = re.compile(r"(?:^|[<:,])map<")


@lru_cache(maxsize=4096)
def family(type_: str | None) -> str:
    """What a type counts as where types are checked; empty if it is not known, or not checked."""
    if type_ is None:
        return ""
    type_family = _FAMILIES.get(type_)
    if type_family is not None:
        return type_family
    head = re.split(r"[<(]", type_, maxsplit=1)[0]
    if head in NESTED or head == "decimal":
        return head
    if type_.startswith("interval "):
        return "months" if type_.split()[1] in {"year", "month"} else "days"
    return ""


def is_ordered(type_: str) -> bool:
    """Whether Spark can sort and compare values of a type."""
    return not _UNORDERED.search(type_)


def is_groupable(type_: str) -> bool:
    """Whether Spark can tell equal values of a type apart from others in DISTINCT and its like."""
    return not _UNHASHED.search(type_)


@dataclass(frozen=True, slots=True)
class Wanted:
    families: frozenset[str]
    words: str


def _accepts(words: str, *families: str) -> Wanted:
    return Wanted(frozenset(families), words)


_EVERY = frozenset({*_FAMILIES.values(), *NESTED, "decimal", *INTERVALS})
WANTED = {
    "text": Wanted(_EVERY - NESTED, "text"),
    "string": _accepts("text", "string"),
    "bytes": _accepts("text or bytes", "string", "binary"),
    "number": _accepts("a number", "string", *NUMBERS),
    "quantity": _accepts("a number or interval", "string", *NUMBERS, *INTERVALS),
    # Spark adds up timestamps, too.
    "total": _accepts("a number or interval", "string", "timestamp", *NUMBERS, *INTERVALS),
    "whole": _accepts("a whole number", "small", "bigint"),
    "bits": _accepts("a whole number or condition", "small", "bigint", "boolean"),
    "exact": _accepts("a number", *NUMBERS),
    "date": _accepts("a date", "date"),
    "part": _accepts("a date, timestamp or interval", "string", *TIMES, *INTERVALS),
    "shown": _accepts("a number, date or text", "string", *NUMBERS, *TIMES),
    "placed": _accepts("a number, time or interval", "string", *NUMBERS, *TIMES, *INTERVALS),
    "days": _accepts("a whole number that is no BIGINT", "small", "string"),
    "time": _accepts("a date or timestamp", "string", *TIMES),
    "point": _accepts("a timestamp", "timestamp"),
    "truth": _accepts("a condition", "boolean", "string"),
    "array": _accepts("an array", "array"),
    "many": _accepts("an array or map", "array", "map"),
    "map": _accepts("a map", "map"),
    "single": Wanted(_EVERY - NESTED - {"variant"}, "a single value"),
    "raw": _accepts("bytes", "binary"),
    "nested": _accepts("a struct, array or map", "variant", *NESTED),
}
# `-` is not checked; `!` takes no NULL without a type; `sorted` is what can be sorted, `hashed` what has no map in it.
_TAKES = """
text: upper lower ucase lcase initcap trim ltrim rtrim btrim length len char_length character_length octet_length
    quote sentences to_binary to_number to_timestamp overlay string_agg bit_length ascii unbase64 hex unhex split
    regexp_extract regexp_replace regexp_count regexp_extract_all conv encode luhn_check to_date to_timestamp_ntz
    to_timestamp_ltz try_to_date url_encode url_decode listagg
text text: like find_in_set locate position startswith endswith contains levenshtein regexp_like rlike regexp_substr
    regexp_instr instr
text text text: replace translate
- text text text: elt
text number: left right repeat substr lpad rpad
text number number: substring
text text number: split_part substring_index
string: from_csv from_json from_xml soundex json_array_length json_object_keys parse_url parse_json mask str_to_map
string string: get_json_object
single!: approx_top_k approx_top_k_accumulate
raw!: bitmap_or_agg bitmap_and_agg
bytes: base64 decode md5 sha sha1 sha2 crc32
number: chr char space bin sqrt cbrt exp ln log1p expm1 sin cos tan asin acos atan sinh cosh tanh degrees radians ceil
    ceiling floor round bround rint factorial isnan from_unixtime date_from_unix_date stddev stddev_pop stddev_samp
    std variance var_pop var_samp skewness kurtosis width_bucket
number number: log log10 log2 make_dt_interval make_ym_interval pow power hypot atan2 nanvl corr covar_pop covar_samp
    regr_slope regr_r2 regr_count shiftleft shiftright
number number number: make_date
number number number number number number: make_timestamp
exact: format_number timestamp_seconds
placed: percentile_approx approx_percentile
bits: bit_count
date: unix_date
shown: to_char to_varchar
- part: date_part datepart extract
quantity: abs sign signum negative positive median percentile percentile_cont percentile_disc
total: sum try_sum avg mean try_avg
whole: ~ bit_and bit_or bit_xor timestamp_millis timestamp_micros
time: window year quarter month day dayofmonth dayofweek dayofyear weekday weekofyear hour minute second dayname
    monthname last_day next_day date_format unix_timestamp to_unix_timestamp from_utc_timestamp to_utc_timestamp
    date_sub date_trunc
time number: add_months
time days: date_add dateadd
- time: trunc
time time: timestampdiff timestampadd datediff date_diff months_between
point: unix_seconds unix_millis unix_micros
truth: count_if bool_and bool_or every some any
array: array_size array_distinct array_max array_min sort_array array_compact shuffle array_join
array number number: slice
array array: map_from_arrays
array! array!: array_except array_intersect array_union arrays_overlap zip_with
array!: get inline inline_outer array_append array_contains array_insert array_position array_prepend array_remove
    array_sort transform filter exists forall aggregate reduce
many!: explode explode_outer posexplode posexplode_outer element_at try_element_at
map!: map_contains_key map_filter map_zip_with transform_keys transform_values
many: size cardinality
map: map_keys map_values map_entries
map! map!: map_concat
nested: to_json
sorted: min max
hashed: collect_set
- sorted: max_by min_by
"""


def _entries() -> dict[str, tuple[str, ...]]:
    accepted: dict[str, tuple[str, ...]] = {}
    for line in _TAKES.replace("\n    ", " ").strip().splitlines():
        words, _, names = line.partition(": ")
        accepted.update(dict.fromkeys(names.split(), tuple(words.split())))
    return accepted


TAKES = _entries()


Where = Literal["compared", "joined", "united"]
_TEXT_AND = NUMBERS | TIMES | {"boolean", "binary", "string"}


def are_comparable(left_family: str, right_family: str) -> bool:
    if "string" in {left_family, right_family}:
        return {left_family, right_family} <= _TEXT_AND
    return left_family == right_family or {left_family, right_family} <= NUMBERS or {left_family, right_family} <= TIMES


@lru_cache(maxsize=4096)
def have_common_type(left_type: str | None, right_type: str | None, where: Where) -> bool:
    """Whether two types have a common one; what is not known does."""
    ours, theirs = family(left_type), family(right_type)
    if not ours or not theirs or left_type == right_type:
        return True
    if ours != theirs or ours not in {"array", "map", "struct"}:
        return are_comparable(ours, theirs) or (where != "compared" and {ours, theirs} == {"string", "variant"})
    return _same_shape(left_type, right_type) or _insides_meet(left_type, right_type, where)


def _insides_meet(left_type: str | None, right_type: str | None, where: Where) -> bool:
    a, b = spark_types.element(left_type), spark_types.element(right_type)
    if a is not None or b is not None:
        return _parts_meet(a, b, where)
    (key, value), (other, its) = spark_types.entry(left_type), spark_types.entry(right_type)
    if key is not None or other is not None:
        keys = _parts_meet(key, other, where) and ("string" in {key, other}) == (key == other == "string")
        return keys and _parts_meet(value, its, where)
    ours, theirs = spark_types.fields(left_type) or (), spark_types.fields(right_type) or ()
    if len(ours) != len(theirs):
        return False
    same_names = where == "united" or [n.lower() for n, _ in ours] == [n.lower() for n, _ in theirs]
    return same_names and all(_parts_meet(x, y, where) for (_, x), (_, y) in zip(ours, theirs, strict=True))


def _parts_meet(left_type: str | None, right_type: str | None, where: Where) -> bool:
    """The same for a type inside another: a comparison reads no text there as a number, and no decimal as a double."""
    ours, theirs = family(left_type), family(right_type)
    if where == "compared" and ours and theirs and ours != theirs:
        if "decimal" in {ours, theirs}:
            return ours != "float" and theirs != "float" and _wide_enough(left_type, right_type)
        return "string" not in {ours, theirs} and are_comparable(ours, theirs)
    return have_common_type(left_type, right_type, where)


def _wide_enough(left_type: str | None, right_type: str | None) -> bool:
    number, decimal = (right_type, left_type) if family(left_type) == "decimal" else (left_type, right_type)
    if family(number) not in {"small", "bigint"} or decimal is None or number is None:
        return False
    precision, scale = digits(decimal)
    return precision - scale >= digits(number)[0]


def _same_shape(left_type: str | None, right_type: str | None) -> bool:
    """Whether two types differ in the names of fields only."""
    if left_type == right_type or left_type is None or right_type is None:
        return left_type == right_type
    a, b = spark_types.element(left_type), spark_types.element(right_type)
    if a is not None and b is not None:
        return _same_shape(a, b)
    if spark_types.entry(left_type)[0] is not None and spark_types.entry(right_type)[0] is not None:
        return all(
            _same_shape(x, y) for x, y in zip(spark_types.entry(left_type), spark_types.entry(right_type), strict=True)
        )
    ours, theirs = spark_types.fields(left_type), spark_types.fields(right_type)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return False
    return all(_same_shape(x, y) for (_, x), (_, y) in zip(ours, theirs, strict=True))
