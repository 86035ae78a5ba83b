"""SQL of warehouses, and what it becomes."""

from __future__ import annotations

# Adapter, text, text in Spark's dialect.
PAIRS = [
    # Casts and types.
    ("bigquery", "SAFE_CAST({{ trim('x') }} AS INTEGER)", "TRY_CAST({{ trim('x') }} AS BIGINT)"),
    ("bigquery", "cast(a as float64)", "cast(a as double)"),
    ("bigquery", "cast(a / b as int64)", "cast(round(a / b) as bigint)"),
    ("bigquery", "cast(a as array<struct<x int64, y string>>)", "cast(a as array<struct<x bigint, y string>>)"),
    ("bigquery", "cast(a as numeric)", "cast(a as decimal(38, 9))"),
    ("postgres", "a::text, b::numeric(10,2), c::timestamp with time zone", "a::string, b::decimal(10, 2), c::timestamp"),
    ("postgres", "a.b::float8[]", "a.b::array<double>"),
    ("postgres", "(a / 2.0)::int", "round((a / 2.0))::int"),
    ("duckdb", "(a / b)::int", "bround((a / b))::int"),
    ("snowflake", "a::number, b::float, c::int", "a::decimal(38, 0), b::double, c::bigint"),
    ("bigquery", "cast(a as {{ kind }})", "cast(a as {{ kind }})"),
    ("bigquery", "DATETIME '2024-01-01 10:00:00'", "CAST('2024-01-01 10:00:00' AS TIMESTAMP_NTZ)"),
    (
        "bigquery",
        "cast(a as {% if b %}int64{% else %}string{% endif %})",
        "cast(a as {% if b %}int64{% else %}string{% endif %})",
    ),
    # Commas.
    ("bigquery", "select a,\n  b, -- last\nfrom t", "select a,\n  b -- last\nfrom t"),
    ("bigquery", "with a as (select 1,), b as (select 2), select 3", "with a as (select 1), b as (select 2) select 3"),
    ("bigquery", "select f(a, b), [1, 2,], from t", "select f(a, b), array(1, 2) from t"),
    (
        "bigquery",
        "select a, {% for c in cs %} {{ c }}, {% endfor %} from t",
        'select a, {% for c in cs %} {{ c }}{{ "," if not loop.last }} {% endfor %} from t',
    ),
    # Strings, names, comments.
    ("bigquery", "'''it's''', r'\\d', \"x\" # why", "'it\\'s', r'\\d', \"x\" -- why"),
    ("postgres", "'a\\d', E'a\\n', $$it's$$, \"a b\"", "'a\\\\d', 'a\\n', 'it\\'s', `a b`"),
    ("snowflake", "'a\\\\d', $$x\\y$$, \"A\"", "'a\\\\d', 'x\\\\y', `A`"),
    ("postgres", "'{{ var(\"a\\n\") }}\\d'", "'{{ var(\"a\\n\") }}\\\\d'"),
    # Arrays and structs.
    ("bigquery", "a[offset(0)], b.c[safe_offset(1)], d[ordinal(1)]", "a[0], get(b.c, 1), element_at(d, 1)"),
    ("bigquery", "split(a, '_')[SAFE_OFFSET(0)]", "get(split(a, '_'), 0)"),
    ("postgres", "a[1], array['x', 'y']", "try_element_at(a, 1), array('x', 'y')"),
    ("snowflake", "a[0], a['k']", "get(a, 0), a['k']"),
    ("duckdb", "{'a': 1, 'b': x}", "named_struct('a', 1, 'b', x)"),
    (
        "bigquery",
        "ARRAY<STRUCT<a STRING, b INT64>>[('x', 1)]",
        "CAST(ARRAY(('x', 1)) AS ARRAY<STRUCT<a STRING, b BIGINT>>)",
    ),
    # UNNEST.
    (
        "bigquery",
        "select e.x from t cross join unnest(t.a) as e with offset as o",
        "select e.x from t cross join lateral posexplode(t.a) as e(o, e)",
    ),
    ("bigquery", "select e from t, unnest(t.a) e", "select e from t, lateral explode(t.a) as e(e)"),
    (
        "bigquery",
        "SELECT e FROM t LEFT JOIN UNNEST(t.a) AS e WHERE e > 1",
        "SELECT e FROM t LEFT JOIN LATERAL EXPLODE(t.a) AS e(e) ON TRUE WHERE e > 1",
    ),
    ("bigquery", "select e from unnest([1, 2]) as e", "select e from explode(array(1, 2)) as e(e)"),
    ("bigquery", "a.b in unnest(c) and d not in unnest(e)", "array_contains(c, a.b) and not array_contains(e, d)"),
    ("postgres", "select unnest(a) as x from t", "select explode(a) as x from t"),
    # QUALIFY.
    (
        "bigquery",
        "select a, b from t where c qualify row_number() over (partition by a order by b) = 1",
        "select * except (qualify_) from (select a, b, row_number() over (partition by a order by b) = 1 as qualify_ from t where c ) where qualify_",
    ),
    (
        "snowflake",
        "select a, rank() over (order by b) as r from t qualify r = 1",
        "select * from (select a, rank() over (order by b nulls last) as r from t ) where r = 1",
    ),
    (
        "bigquery",
        "select k, count(*) as n from t group by 1 qualify rank() over (order by n) = 1",
        "select * except (qualify_) from (select k, count(*) as n, rank() over (order by count(*)) = 1 as qualify_ from t group by 1 ) where qualify_",
    ),
    (
        "bigquery",
        "select a from t qualify count(*) over (partition by a) > 1 union all select a from u",
        "select * except (qualify_) from (select a, count(*) over (partition by a) > 1 as qualify_ from t ) where qualify_ union all select a from u",
    ),
    (
        "bigquery",
        "{% if a %}select a from t qualify rank() over (order by a) = 1{% endif %}",
        "{% if a %}select * except (qualify_) from (select a, rank() over (order by a) = 1 as qualify_ from t ) where qualify_{% endif %}",
    ),
    # NULLs in an order.
    (
        "postgres",
        "rank() over (partition by a order by b, c desc, d nulls first)",
        "rank() over (partition by a order by b nulls last, c desc nulls first, d nulls first)",
    ),
    ("duckdb", "sum(a) over (order by b desc, c)", "sum(a) over (order by b desc, c nulls last)"),
    ("redshift", "select a from t order by a limit 1", "select a from t order by a nulls last limit 1"),
    ("postgres", "select a from t order by a", "select a from t order by a"),
    # Operators.
    ("postgres", "a ^ 2, -b ^ (c + 1), x !~ 'y', x ~* 'z'", "power(a, 2), power(-b, (c + 1)), x not rlike 'y', x rlike concat('(?i)', 'z')"),
    ("bigquery", "a ^ b", "a ^ b"),
    ("duckdb", "a // b, c ~ 'x'", "a div b, c rlike concat('^(?:', 'x', ')$')"),
    ("snowflake", "x:a.b[0]::string, t.y:c", "variant_get(x, '$.a.b[0]', 'string'), variant_get(t.y, '$.c')"),
    ("snowflake", "select * exclude a, t.* exclude (b, c) from t", "select * except (a), t.* except (b, c) from t"),
    # Dates and times.
    ("bigquery", "date_add(a, interval 3 day), date_sub(a, interval n month)", "date_add(a, 3), add_months(a, -n)"),
    ("bigquery", "date_sub(a, interval 2 week)", "date_add(a, -14)"),
    ("bigquery", "date_diff(a, b, day), date_diff(a, b, month)", "datediff(a, b), timestampdiff(MONTH, date_trunc('MONTH', b), date_trunc('MONTH', a))"),
    ("bigquery", "timestamp_diff(a, b, second), timestamp_add(a, interval 1 hour)", "timestampdiff(SECOND, b, a), timestampadd(HOUR, 1, a)"),
    ("bigquery", "date_trunc(a, month), date_trunc(a, week)", "cast(date_trunc('MONTH', a) as date), date_sub(a, dayofweek(a) - 1)"),
    ("bigquery", "current_date('Europe/Berlin')", "cast(from_utc_timestamp(current_timestamp(), 'Europe/Berlin') as date)"),
    ("bigquery", "extract(date from a), extract(year from b)", "cast(a as date), extract(year from b)"),
    ("bigquery", "parse_date('%m/%d/%Y', a), parse_date('%Y%m%d', a)", "to_date(a, 'M/d/yyyy'), to_date(a, 'yyyyMMdd')"),
    ("bigquery", "format_date('%Y-%m', a)", "date_format(a, 'yyyy-MM')"),
    ("bigquery", "safe.parse_date('%F', a)", "cast(try_to_timestamp(a, 'yyyy-MM-dd') as date)"),
    ("bigquery", "generate_date_array(a, b)", "case when a <= b then sequence(a, b, interval 1 DAY) else array() end"),
    ("snowflake", "datediff('month', a, b), dateadd(day, -1, c)", "timestampdiff(MONTH, date_trunc('MONTH', a), date_trunc('MONTH', b)), timestampadd(DAY, -1, c)"),
    ("redshift", "datediff(day, a, b)", "datediff(b, a)"),
    ("postgres", "date_part('dow', a), extract(epoch from b)", "(dayofweek(a) - 1), (unix_micros(cast(b as timestamp)) / 1000000)"),
    ("postgres", "to_char(a, 'YYYY-MM-DD HH24:MI:SS')", "date_format(a, 'yyyy-MM-dd HH:mm:ss')"),
    ("duckdb", "strftime(a, '%d.%m.%Y'), dayname(a)", "date_format(a, 'dd.MM.yyyy'), date_format(a, 'EEEE')"),
    # Functions.
    ("bigquery", "countif(a), logical_or(b), safe_divide(a, b)", "count_if(a), bool_or(b), try_divide(a, b)"),
    ("bigquery", "greatest(a, b)", "case when a is not null and b is not null then greatest(a, b) end"),
    ("bigquery", "to_hex(md5(a)), array_length(b)", "md5(a), array_size(b)"),
    ("bigquery", "split(a, '|'), split(a), split(a, b)", "split(a, '\\\\|'), split(a, ','), split(a, concat('\\\\Q', b, '\\\\E'))"),
    ("bigquery", "regexp_extract(a, r'x(\\d)')", "if(regexp_like(a, r'x(\\d)'), regexp_extract(a, r'x(\\d)', 1), null)"),
    ("bigquery", "regexp_extract(a, 'x+'), regexp_contains(a, b)", "regexp_substr(a, 'x+'), regexp_like(a, b)"),
    ("bigquery", "regexp_replace(a, '(x)', r'\\1y')", "regexp_replace(a, '(x)', '$1y')"),
    ("bigquery", "string_agg(a, ';' order by b)", "listagg(a, ';') within group (order by b)"),
    ("bigquery", "array_agg(distinct a ignore nulls order by a desc)", "sort_array(collect_set(a), false)"),
    (
        "bigquery",
        "array_agg(a order by b desc limit 1)[offset(0)]",
        "slice(transform(sort_array(collect_list(struct(b, a as v_)), false), e -> e.v_), 1, 1)[0]",
    ),
    ("bigquery", "first_value(a ignore nulls) over (order by b)", "first_value(a) ignore nulls over (order by b)"),
    ("bigquery", "percentile_cont(a, 0.5) over (partition by b)", "percentile_cont(0.5) within group (order by a) over (partition by b)"),
    ("bigquery", "SELECT IF(a, COUNTIF(\n  b\n), 0)", "SELECT IF(a, COUNT_IF(\n  b\n), 0)"),
    ("bigquery", "div(\n  a, -- why\n  b)", "(a div b) /* why */"),
    ("postgres", "concat(a, b), log(a)", "concat_ws('', a, b), log10(a)"),
    ("snowflake", "iff(a, b, c), zeroifnull(d)", "if(a, b, c), coalesce(d, 0)"),
    ("snowflake", "regexp_like(a, 'x')", "regexp_like(a, concat('^(?:', 'x', ')$'))"),
    ("bigquery", "t.split, t.date_trunc", "t.split, t.date_trunc"),
    # Jinja: in macros, loops and branches.
    (
        "bigquery",
        "{% macro m(a) %}SAFE_CAST({{ a }} AS INT64){% endmacro %}",
        "{% macro m(a) %}TRY_CAST({{ a }} AS BIGINT){% endmacro %}",
    ),
    ("bigquery", "select {% if a %} countif(b) {% else %} 0 {% endif %} from t", "select {% if a %} count_if(b) {% else %} 0 {% endif %} from t"),
    ("bigquery", "date_diff({{ a(')') }}, prefix_{{ b }}, {{ unit }})", "date_diff({{ a(')') }}, prefix_{{ b }}, {{ unit }})"),
    ("bigquery", "date_diff({{ a(')') }}, prefix_{{ b }}, day)", "datediff({{ a(')') }}, prefix_{{ b }})"),
]  # fmt: skip
# The same in each of the warehouses and Spark.
UNCHANGED = [
    "select a, count(*) as n from {{ ref('t') }} where b = 'x' group by a",
    "{% set x = ['a', 'b'] %}\nselect {{ x | join(', ') }}, coalesce(a, 0), upper(b) -- it's\nfrom t /* \" */",
    "select case when a > 1 then 'x' else 'y' end as k, sum(b) over (partition by c) from t left join u using (d)",
    "select a from t where b in (1, 2) and c between 1 and 2 and d like 'x%' union all select 1 order by 1",
    "select cast(a as string), cast(b as date) from t",
]
# Adapter, text, line of the note, words of it.
NOTED = [
    ("postgres", "select a,\n  b / c\nfrom t", 2, "a division of two integers"),
    ("postgres", "select regexp_replace(a, 'x', 'y')", 1, "the first match only"),
    ("postgres", "select\n\na::varchar(3)", 3, "cuts a longer text"),
    ("bigquery", "select\n  json_value(a, '$.b')", 2, "NULL for an object"),
    ("bigquery", "select extract(week from a)", 1, "begins on Sunday"),
    ("bigquery", "select\nparse_date('%U', a)", 2, "no counterpart"),
    ("bigquery", "select a,\n{% if b %} c, {% endif %} from t", 2, "a block of Jinja"),
    ("bigquery", "select div(a\n, {% if b %} c {% else %} d {% endif %})", 1, "blocks of Jinja"),
    (
        "bigquery",
        "select a from t {% if b %} qualify row_number() over (order by a) = 1 {% endif %}",
        1,
        "QUALIFY is not translated",
    ),
    ("bigquery", "qualify row_number() over (order by a) = 1", 1, "QUALIFY is not translated"),
    (
        "bigquery",
        "{% if a %}select a from t\n{% else %}qualify rank() over (order by a) = 1{% endif %}",
        2,
        "QUALIFY is not translated",
    ),
    ("bigquery", "select\nsafe.ln(a)", 2, "SAFE.ln() is not translated"),
    ("bigquery", "select initcap(a)", 1, "a word begins after white space here"),
    ("duckdb", "select list(a order by b)", 1, "NULLs are elements"),
    ("duckdb", "select a[1:2]", 1, "a slice"),
    ("duckdb", "select hash(a)", 1, "another number"),
    ("duckdb", "select substr(a, -2)", 1, "a position below 1"),
    ("postgres", "select a[i]", 1, "the first element"),
    ("bigquery", "select b'x'", 1, "no string of the kind"),
    ("bigquery", "select (a {% if b %} ) {% endif %}\n(", 1, "do not match"),
]
