"""Calls and operators by the type that they give; `{type}` stands for an argument of that type.

`number` is any type of numbers, `any` any type at all, `time` a date or timestamp.
"""

from __future__ import annotations

GROUPS = {
    "number": ("int", "bigint", "double", "decimal(10,2)", "float", "smallint"),
    "whole": ("int", "bigint"),
    "time": ("date", "timestamp", "timestamp_ntz"),
    "plain": ("int", "bigint", "double", "decimal(10,2)", "string", "boolean", "date", "timestamp"),
}

_EXPRESSIONS = """
string
    upper({string})
    lower({string})
    trim({string})
    concat({string}, {plain})
    {string} || {plain}
    substr({string}, {int}, {int})
    substring({string}, 2)
    replace({string}, 'a', 'b')
    regexp_replace({string}, '[0-9]+', '')
    regexp_extract({string}, '([a-z]+)', 1)
    date_format({time}, 'yyyy-MM-dd')
    cast({plain} as string)
    {plain}::string
    concat_ws(',', {array<string>})
    array_join({array<string>}, ',')
    coalesce({string}, {string})
    nvl({string}, 'none')
    lpad({string}, 5, '0')
    split_part({string}, ',', 1)
    left({string}, 3)
    reverse({string})
    initcap({string})
    translate({string}, 'ab', 'cd')
    to_json({struct<name:string,price:double>})
    get_json_object({string}, '$.a')
    md5({binary})
    hex({whole})
    base64({binary})
    decode({binary}, 'utf-8')
    {array<string>}[{int}]
    element_at({array<string>}, 1)
    {struct<name:string,price:double>}.name
    map_keys({map<string,int>})[0]
    dayname({date})
    format_string('%s', {any})
    typeof({any})
    from_unixtime({bigint})
    repeat({string}, {int})
    greatest({string}, {string})
    nullif({string}, '')
    current_user()
    sha2({string}, 256)
    format_number({double}, 2)
    elt(1, {string}, {string})
    soundex({string})
    string({plain})
    to_char({decimal(10,2)}, '999.99')
    chr({int})
    {array<struct<a:int,b:string>>}[0].b
    url_encode({string})
    mask({string})
    ltrim({string})
    overlay({string} placing 'x' from 2)
    uuid()
    quote({string})
int
    length({string})
    year({time})
    month({time})
    day({time})
    hour({timestamp})
    minute({timestamp})
    dayofweek({date})
    weekofyear({date})
    quarter({date})
    datediff({date}, {date})
    size({array<string>})
    cardinality({map<string,int>})
    cast({plain} as int)
    {int} + {int}
    {int} - {int}
    {int} * {int}
    {int} % {int}
    - {int}
    abs({int})
    coalesce({int}, 0)
    {map<string,int>}['a']
    element_at({map<string,int>}, 'a')
    {array<int>}[0]
    array_max({array<int>})
    instr({string}, 'a')
    locate('a', {string})
    position('a' in {string})
    levenshtein({string}, {string})
    ascii({string})
    extract(year from {time})
    date_part('month', {timestamp})
    aggregate({array<int>}, 0, (acc, x) -> acc + x)
    array_size({array<string>})
    pmod({int}, 7)
    {int} & {int}
    {int} | 1
    ~{int}
    bit_count({int})
    hash({plain}, {plain})
    nvl2({string}, {int}, {int})
    if({boolean}, {int}, {int})
    greatest({int}, {int})
    int({string})
    try_cast({string} as int)
    find_in_set({string}, 'a,b')
    {array<struct<a:int,b:string>>}[0].a
    sign({int})
    shiftleft({int}, 2)
    unix_date({date})
    regexp_count({string}, 'a')
    char_length({string})
    date_diff({date}, {date})
    mod({int}, {int})
    nullif({int}, 0)
bigint
    {bigint} + {whole}
    {bigint} - {whole}
    {bigint} * {whole}
    {whole} div {whole}
    cast({plain} as bigint)
    unix_timestamp({timestamp})
    unix_seconds({timestamp})
    unix_millis({timestamp})
    xxhash64({plain})
    ceil({double})
    floor({double})
    crc32({binary})
    array_position({array<string>}, {string})
    timestampdiff(hour, {timestamp}, {timestamp})
    to_unix_timestamp({timestamp})
    monotonically_increasing_id()
    coalesce({bigint}, {int})
    factorial({int})
double
    {double} + {number}
    {double} * {number}
    {double} / {number}
    {number} / {int}
    {double} - {number}
    cast({plain} as double)
    sqrt({number})
    ln({number})
    exp({double})
    power({number}, 2)
    round({double}, 1)
    pi()
    rand()
    log10({number})
    abs({double})
    months_between({time}, {time})
    {struct<name:string,price:double>}.price
    coalesce({double}, {number})
    nanvl({double}, {double})
    sin({double})
    atan2({double}, {double})
    log(2, {number})
    hypot({number}, {number})
    cbrt({number})
    degrees({number})
    try_divide({double}, {int})
    width_bucket({double}, 0, 10, 5)
decimal(10,2)
    {decimal(10,2)} + {decimal(10,2)}
    {decimal(10,2)} * {int}
    {decimal(10,2)} - 1.5
    {decimal(10,2)} / {int}
    cast({number} as decimal(10,2))
    round({decimal(10,2)}, 1)
    coalesce({decimal(10,2)}, 0)
    greatest({decimal(10,2)}, {decimal(10,2)})
    bround({decimal(10,2)}, 0)
    to_number({string}, '999.99')
boolean
    {plain} = {plain}
    {number} = {number}
    {number} > {number}
    {number} <= {number}
    {string} = {string}
    {string} <> 'x'
    {string} like 'a%'
    {string} ilike '%b'
    {string} rlike 'a.*'
    {string} not like '%x'
    {time} > {time}
    {date} >= date'2024-01-01'
    {timestamp} < '2024-01-01'
    {timestamp} between {timestamp} and {timestamp}
    {int} between 1 and {int}
    {string} in ('a', 'b')
    {int} in (1, 2, {int})
    {plain} is null
    {any} is not null
    {boolean} and {boolean}
    {boolean} or {boolean}
    not {boolean}
    ({boolean} or not {boolean})
    array_contains({array<string>}, {string})
    exists({array<int>}, x -> x > {int})
    forall({array<string>}, x -> x is not null)
    startswith({string}, 'a')
    contains({string}, {string})
    isnan({double})
    isnull({any})
    isnotnull({any})
    map_contains_key({map<string,int>}, 'a')
    cast({string} as boolean)
    {boolean} is true
    {boolean} is not false
    {plain} <=> {plain}
    arrays_overlap({array<string>}, {array<string>})
    {array<string>} = {array<string>}
    {struct<name:string,price:double>} = {struct<name:string,price:double>}
    regexp_like({string}, 'a')
    {string} is distinct from {string}
    equal_null({int}, {int})
    {interval day to second} > interval 1 day
    {int} <> {bigint}
    {string} not in ('x', {string})
    {string} like any ('a%', 'b%')
    luhn_check({string})
    ({int}, {string}) = (1, 'a')
    {binary} = {binary}
date
    to_date({string})
    cast({timestamp} as date)
    date({timestamp})
    date_add({date}, {int})
    date_sub({date}, 1)
    {date} + 1
    {date} - {int}
    {date} + interval 1 month
    add_months({date}, {int})
    last_day({date})
    next_day({date}, 'MON')
    trunc({date}, 'month')
    current_date()
    current_date
    coalesce({date}, {date})
    make_date({int}, 1, 1)
    to_date({string}, 'yyyy-MM-dd')
    greatest({date}, {date})
    date_from_unix_date({int})
timestamp
    to_timestamp({string})
    cast({date} as timestamp)
    cast({string} as timestamp)
    date_trunc('hour', {timestamp})
    {timestamp} + interval 1 hour
    {timestamp} - {interval day to second}
    {timestamp} + interval '1' day
    current_timestamp()
    now()
    timestamp_seconds({bigint})
    timestamp_millis({bigint})
    coalesce({timestamp}, {timestamp})
    from_utc_timestamp({timestamp}, 'UTC')
    timestampadd(hour, {int}, {timestamp})
    dateadd(day, 1, {timestamp})
    greatest({timestamp}, {timestamp})
    make_timestamp({int}, 1, 1, 0, 0, 0)
    to_timestamp({string}, 'yyyy')
    {interval day to second} + {timestamp}
timestamp_ntz
    cast({timestamp} as timestamp_ntz)
    to_timestamp_ntz({string})
    {timestamp_ntz} + interval 1 hour
    localtimestamp()
    timestamp_ntz'2024-01-01'
binary
    cast({string} as binary)
    encode({string}, 'utf-8')
    unhex({string})
    unbase64({string})
    to_binary({string})
    x'1F'
    concat({binary}, {binary})
    substr({binary}, 1, 2)
array<string>
    split({string}, ',')
    array({string}, {string})
    array_distinct({array<string>})
    sort_array({array<string>})
    transform({array<string>}, x -> upper(x))
    filter({array<string>}, x -> x <> {string})
    array_union({array<string>}, {array<string>})
    array_except({array<string>}, {array<string>})
    map_keys({map<string,int>})
    slice({array<string>}, 1, 2)
    concat({array<string>}, {array<string>})
    {array<string>} || array('x')
    array_remove({array<string>}, {string})
    array_append({array<string>}, {string})
    array_compact({array<string>})
    regexp_extract_all({string}, '([a-z])', 1)
    coalesce({array<string>}, array())
    array_repeat({string}, 2)
    {array<struct<a:int,b:string>>}.b
    reverse({array<string>})
    transform({array<int>}, (x, i) -> concat(x, i))
    sentences({string})[0]
    flatten(array({array<string>}))
    cast({array<int>} as array<string>)
array<int>
    array({int}, {int})
    sequence(1, {int})
    map_values({map<string,int>})
    transform({array<int>}, x -> x + {int})
    filter({array<int>}, x -> x > {int})
    array_sort({array<int>})
    sort_array({array<int>}, false)
    zip_with({array<int>}, {array<int>}, (x, y) -> x + y)
    {array<struct<a:int,b:string>>}.a
    array_intersect({array<int>}, {array<int>})
    array_insert({array<int>}, 1, {int})
    shuffle({array<int>})
map<string,int>
    map({string}, {int})
    map('a', 1, 'b', {int})
    map_filter({map<string,int>}, (k, v) -> v > {int})
    transform_values({map<string,int>}, (k, v) -> v + 1)
    map_concat({map<string,int>}, {map<string,int>})
    map_from_arrays({array<string>}, {array<int>})
    transform_keys({map<string,int>}, (k, v) -> upper(k))
    map_from_entries(map_entries({map<string,int>}))
    from_json({string}, 'map<string,int>')
struct<name:string,price:double>
    struct({string} as name, {double} as price)
    named_struct('name', {string}, 'price', {double})
    from_json({string}, 'name string, price double')
array<struct<a:int,b:string>>
    array(struct({int} as a, {string} as b))
    transform({array<int>}, x -> struct(x as a, {string} as b))
    from_json({string}, 'array<struct<a:int,b:string>>')
    filter({array<struct<a:int,b:string>>}, x -> x.a > {int})
smallint
    cast({int} as smallint)
    {smallint} + {smallint}
    smallint(3)
float
    cast({number} as float)
    {float} * {int}
    {float} + {float}
decimal(20,4)
    cast({number} as decimal(20,4))
    coalesce({decimal(20,4)}, {decimal(10,2)})
interval day to second
    {timestamp} - {timestamp}
    interval 1 hour
    interval '1 02:03:04' day to second
    make_dt_interval({int}, 1)
    {interval day to second} * {int}
    {interval day to second} + interval 2 minutes
    {interval day to second} / 2
    abs({interval day to second})
interval year to month
    interval 1 month
    interval '1-2' year to month
    make_ym_interval({int}, 1)
    {interval year to month} * 2
"""

_AGGREGATES = """
bigint
    count(*)
    count({any})
    count(distinct {plain})
    count(distinct {string}, {int})
    sum({whole})
    count_if({boolean})
    approx_count_distinct({plain})
    count(*) filter (where {boolean})
    regr_count({double}, {double})
double
    avg({number})
    sum({double})
    stddev({number})
    corr({number}, {number})
    median({number})
    percentile_cont(0.5) within group (order by {number})
    percentile({number}, 0.5)
    var_pop({number})
    skewness({double})
    covar_samp({double}, {double})
decimal(20,4)
    sum({decimal(10,2)})
    avg({decimal(10,2)})
string
    max({string})
    min({string})
    first({string})
    any_value({string})
    max_by({string}, {number})
    listagg({string}, ',')
    mode({string})
    last({string}, true)
    string_agg({string}, ', ') within group (order by {string})
int
    max({int})
    min({int})
    first({int})
    min_by({int}, {timestamp})
    percentile_approx({int}, 0.5)
    bit_or({int})
    grouping({string})
timestamp
    max({timestamp})
    min({timestamp})
date
    max({date})
    min({date})
boolean
    bool_or({boolean})
    every({boolean})
    max({boolean})
array<string>
    collect_list({string})
    collect_set({string})
    array_agg({string})
array<int>
    collect_list({int})
    collect_set({int})
struct<name:string,price:double>
    max({struct<name:string,price:double>})
    first({struct<name:string,price:double>})
"""

_OVER = """
bigint
    count(*) over ({by})
    sum({whole}) over ({sorted})
    sum({whole}) over ({sorted} rows between 2 preceding and current row)
    sum({int}) over ({sorted} range between unbounded preceding and current row)
double
    avg({number}) over ({by})
    percent_rank() over ({sorted})
    cume_dist() over ({sorted})
int
    row_number() over ({sorted})
    rank() over ({sorted})
    dense_rank() over ({sorted})
    lag({int}) over ({sorted})
    lead({int}, 1, 0) over ({sorted})
    ntile(4) over ({sorted})
    first_value({int}) over ({sorted})
    max({int}) over ({by})
string
    lag({string}) over ({sorted})
    last_value({string}) over ({sorted})
    nth_value({string}, 2) over ({sorted})
    max({string}) over ({by})
    first({string}) ignore nulls over ({sorted})
timestamp
    lag({timestamp}) over ({sorted})
    max({timestamp}) over ({by})
date
    lead({date}) over ({sorted})
array<string>
    collect_list({string}) over ({sorted})
"""

_LITERALS = """
string
    'a'
    'it'
    '2024-01-01'
    '1'
    null
int
    1
    7
    -3
    null
bigint
    5000000000
    1L
double
    1.5e0
    2.0D
decimal(10,2)
    1.25
    0.5
boolean
    true
    false
date
    date'2024-01-01'
timestamp
    timestamp'2024-01-01 00:00:00'
timestamp_ntz
    timestamp_ntz'2024-01-01 00:00:00'
array<string>
    array('a', 'b')
array<int>
    array(1, 2)
map<string,int>
    map('a', 1)
struct<name:string,price:double>
    named_struct('name', 'x', 'price', 1.0D)
binary
    x'00'
smallint
    1S
float
    1.5F
decimal(20,4)
    1.0001BD
interval day to second
    interval '1 0:0:0' day to second
interval year to month
    interval '1' month
array<struct<a:int,b:string>>
    array(named_struct('a', 1, 'b', 'x'))
"""


def _read(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    kind = ""
    for line in text.strip().splitlines():
        if line.startswith(" "):
            found[kind].append(line.strip())
        else:
            kind = line
            found[kind] = []
    return {kind: tuple(forms) for kind, forms in found.items()}


EXPRESSIONS, AGGREGATES, OVER, LITERALS = (_read(text) for text in (_EXPRESSIONS, _AGGREGATES, _OVER, _LITERALS))
