{#- Macros and tests by the names of dbt_utils, for Spark: an import writes this file where one of them is used. -#}

{%- macro _literal(value) -%} '{{ value | string | replace("\\", "\\\\") | replace("'", "\\'") }}' {%- endmacro %}
{%- macro _relation(name) -%} {{ name if name.startswith('`') else ref(name) }} {%- endmacro %}
{%- macro _listed(columns) -%} {% for column in columns %}{{ column }}, {% endfor %} {%- endmacro %}
{%- macro _grouped(columns) -%} {{ 'group by ' ~ (columns | join(', ')) if columns }} {%- endmacro %}

{#- The same keys as those of dbt_utils. -#}
{%- macro generate_surrogate_key(field_list) -%}
md5(concat_ws('-', {% for field in field_list -%}
coalesce(cast({{ field }} as string), '_dbt_utils_surrogate_key_null_'){{ ', ' if not loop.last }}
{%- endfor %}))
{%- endmacro %}

{%- macro surrogate_key(field_list) -%}
md5(concat_ws('-', {% for field in field_list -%}
coalesce(cast({{ field }} as string), ''){{ ', ' if not loop.last }}
{%- endfor %}))
{%- endmacro %}

{%- macro group_by(n) -%}
group by {% for number in range(1, n + 1) %}{{ number }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro %}

{#- All columns except some, which must exist; names are found when the query is compiled. Renamed ones come last. -#}
{%- macro star(from, relation_alias=false, except=[], prefix='', suffix='', quote_identifiers=true,
               unquote_aliases=false, rename={}) -%}
{%- if prefix or suffix -%}
{{ exceptions.raise_compiler_error("star() with prefix or suffix needs the names of columns: write the columns out") }}
{%- endif -%}
{%- set table = relation_alias ~ '.' if relation_alias else '' -%}
{%- set left_out = (except if except is not string else [except]) | list + (rename | list) -%}
{{ table }}*{% if left_out %} except ({{ left_out | join(', ') }}){% endif %}
{%- for name in rename %}, {{ table }}{{ name }} as {{ rename[name] }}{% endfor %}
{%- endmacro %}

{%- macro safe_divide(numerator, denominator) -%}
({{ numerator }}) / nullif(({{ denominator }}), 0)
{%- endmacro %}

{%- macro safe_add(field_list) -%}
{% for field in field_list %}coalesce({{ field }}, 0){{ ' + ' if not loop.last }}{% endfor %}
{%- endmacro %}

{%- macro safe_subtract(field_list) -%}
{% for field in field_list %}coalesce({{ field }}, 0){{ ' - ' if not loop.last }}{% endfor %}
{%- endmacro %}

{#- One row for each unit from the first date up to, and without, the last. -#}
{%- macro date_spine(datepart, start_date, end_date) -%}
select date_{{ datepart }}
from (
    select explode(sequence(
        cast({{ start_date }} as timestamp), cast({{ end_date }} as timestamp), interval 1 {{ datepart }}
    )) as date_{{ datepart }}
)
where date_{{ datepart }} < cast({{ end_date }} as timestamp)
{%- endmacro %}

{%- macro pivot(column, values, alias=true, agg='sum', cmp='=', prefix='', suffix='', then_value=1, else_value=0,
                quote_identifiers=true, distinct=false) -%}
{% for value in values %}
{{ agg }}({{ 'distinct ' if distinct }}case when {{ column }} {{ cmp }} {{ _literal(value) }} then {{ then_value }} else {{ else_value }} end)
{%- if alias %} as `{{ prefix ~ value ~ suffix if quote_identifiers else slugify(prefix ~ value ~ suffix) }}`{% endif %}{{ ', ' if not loop.last }}
{% endfor %}
{%- endmacro %}

{#- Small letters, digits and underscores; one before a digit at the beginning. -#}
{%- macro slugify(string) -%}
{%- set kept = [] -%}
{%- for letter in (string or '') | lower -%}
{%- if letter in ' -' -%}
{%- if not (loop.previtem is defined and loop.previtem in ' -') -%}{%- do kept.append('_') -%}{%- endif -%}
{%- elif letter in 'abcdefghijklmnopqrstuvwxyz0123456789_' -%}{%- do kept.append(letter) -%}
{%- endif -%}
{%- endfor -%}
{{ '_' if kept and kept[0] in '0123456789' }}{{ kept | join }}
{%- endmacro %}

{#- One row of each group; `order_by` says which. -#}
{%- macro deduplicate(relation, partition_by, order_by) -%}
select * except (_row_number)
from (
    select *, row_number() over (partition by {{ partition_by }} order by {{ order_by }}) as _row_number
    from {{ relation }}
)
where _row_number = 1
{%- endmacro %}

{%- macro generate_series(upper_bound) -%}
select explode(sequence(1, {{ upper_bound }})) as generated_number
{%- endmacro %}

{%- macro degrees_to_radians(degrees) -%} radians({{ degrees }}) {%- endmacro %}

{#- The distance of two places on the earth, on a sphere of the radius that dbt_utils has. -#}
{%- macro haversine_distance(lat1, lon1, lat2, lon2, unit='mi') -%}
{%- if unit not in ('mi', 'km') -%}
{{ exceptions.raise_compiler_error("haversine_distance: the unit is 'mi' or 'km', not '" ~ unit ~ "'") }}
{%- endif -%}
{{ 3961 * 2 * (1.60934 if unit == 'km' else 1) }} * asin(sqrt(
    power(sin(radians(({{ lat2 }}) - ({{ lat1 }})) / 2), 2)
    + cos(radians({{ lat1 }})) * cos(radians({{ lat2 }})) * power(sin(radians(({{ lon2 }}) - ({{ lon1 }})) / 2), 2)
))
{%- endmacro %}

{%- macro width_bucket(expr, min_value, max_value, num_buckets) -%}
width_bucket({{ expr }}, {{ min_value }}, {{ max_value }}, {{ num_buckets }})
{%- endmacro %}

{%- macro get_url_host(field) -%}
regexp_extract({{ field }}, '^(?:android-app://|https?://)?([^/?]*)', 1)
{%- endmacro %}

{%- macro get_url_path(field) -%}
regexp_extract({{ field }}, '^(?:https?://)?[^/?]*/?([^?]*)', 1)
{%- endmacro %}

{#- The text from the first `name=` up to the next &. -#}
{%- macro get_url_parameter(field, url_parameter) -%}
nullif(split_part(split_part({{ field }}, {{ _literal(url_parameter ~ '=') }}, 2), '&', 1), '')
{%- endmacro %}

{%- macro log_info(message) -%} {%- do log(message, info=true) -%} {%- endmacro %}

{%- macro test_unique_combination_of_columns(model, combination_of_columns, quote_columns=false) %}
select {{ combination_of_columns | join(', ') }}, count(*) as n_records
from {{ model }}
group by {{ combination_of_columns | join(', ') }}
having count(*) > 1
{%- endmacro %}

{%- macro test_expression_is_true(model, expression, column_name=none) %}
select * from {{ model }} where not ({{ column_name ~ ' ' if column_name else '' }}{{ expression }})
{%- endmacro %}

{%- macro test_accepted_range(model, column_name, min_value=none, max_value=none, inclusive=true) %}
select * from {{ model }}
where {{ column_name }} is not null and not (true
{%- if min_value is not none %} and {{ column_name }} >{{ '=' if inclusive }} {{ min_value }}{% endif %}
{%- if max_value is not none %} and {{ column_name }} <{{ '=' if inclusive }} {{ max_value }}{% endif %})
{%- endmacro %}

{%- macro test_not_accepted_values(model, column_name, values, quote=true) %}
select * from {{ model }}
where {{ column_name }} in (
    {%- for value in values %}{{ _literal(value) if quote else value }}{{ ', ' if not loop.last }}{% endfor -%}
)
{%- endmacro %}

{%- macro test_at_least_one(model, column_name, group_by_columns=[]) %}
select {{ _listed(group_by_columns) }}count({{ column_name }}) as n
from {{ model }} {{ _grouped(group_by_columns) }}
having count({{ column_name }}) = 0
{%- endmacro %}

{%- macro test_not_constant(model, column_name, group_by_columns=[]) %}
select {{ _listed(group_by_columns) }}count(distinct {{ column_name }}) as n
from {{ model }} {{ _grouped(group_by_columns) }}
having count(distinct {{ column_name }}) = 1
{%- endmacro %}

{%- macro test_not_empty_string(model, column_name, trim_whitespace=true) %}
select * from {{ model }} where {% if trim_whitespace %}trim({{ column_name }}){% else %}{{ column_name }}{% endif %} = ''
{%- endmacro %}

{%- macro test_not_null_proportion(model, column_name, at_least, at_most=1.0, group_by_columns=[]) %}
{%- set share = 'count(' ~ column_name ~ ') / nullif(count(*), 0)' %}
select {{ _listed(group_by_columns) }}{{ share }} as proportion
from {{ model }} {{ _grouped(group_by_columns) }}
having {{ share }} < {{ at_least }} or {{ share }} > {{ at_most }}
{%- endmacro %}

{%- macro test_recency(model, field, datepart, interval, ignore_time_component=false, group_by_columns=[]) %}
{%- set newest = 'cast(max(' ~ field ~ ') as date)' if ignore_time_component else 'max(' ~ field ~ ')' %}
{%- set least = 'timestampadd(' ~ datepart ~ ', -' ~ interval ~ ', current_timestamp())' %}
{%- set least = 'cast(' ~ least ~ ' as date)' if ignore_time_component else least %}
select {{ _listed(group_by_columns) }}{{ newest }} as newest
from {{ model }} {{ _grouped(group_by_columns) }}
having coalesce({{ newest }} < {{ least }}, true)
{%- endmacro %}

{#- Rows of each group here and there; a group that one of them lacks has no count of it. -#}
{%- macro _row_counts(model, compare_model, columns) %}
select {% for name in columns %}coalesce(own.{{ name }}, other.{{ name }}) as {{ name }}, {% endfor -%}
own.n as rows_here, other.n as rows_there
from (select {{ _listed(columns) }}count(*) as n from {{ model }} {{ _grouped(columns) }}) as own
full join (select {{ _listed(columns) }}count(*) as n from {{ _relation(compare_model) }} {{ _grouped(columns) }}) as other
on true{% for name in columns %} and own.{{ name }} = other.{{ name }}{% endfor %}
{%- endmacro %}

{#- A group that only one of the two has is no difference, as in dbt_utils. -#}
{%- macro test_equal_rowcount(model, compare_model, group_by_columns=[]) %}
select * from ({{ _row_counts(model, compare_model, group_by_columns) }}) where rows_here <> rows_there
{%- endmacro %}

{%- macro test_fewer_rows_than(model, compare_model, group_by_columns=[]) %}
select * from ({{ _row_counts(model, compare_model, group_by_columns) }}) where rows_here >= rows_there
{%- endmacro %}

{%- macro test_cardinality_equality(model, column_name, to, field) %}
{%- set own = 'select ' ~ column_name ~ ' as value, count(*) as n from ' ~ model ~ ' group by ' ~ column_name %}
{%- set other = 'select ' ~ field ~ ' as value, count(*) as n from ' ~ _relation(to) ~ ' group by ' ~ field %}
({{ own }} except {{ other }}) union all ({{ other }} except {{ own }})
{%- endmacro %}

{%- macro test_relationships_where(model, column_name, to, field, from_condition='true', to_condition='true') %}
select child.value
from (select {{ column_name }} as value from {{ model }} where {{ column_name }} is not null and {{ from_condition }}) as child
left join (select {{ field }} as value from {{ _relation(to) }} where {{ to_condition }}) as parent
on child.value = parent.value
where parent.value is null
{%- endmacro %}

{%- macro test_sequential_values(model, column_name, interval=1, datepart=none, group_by_columns=[]) %}
{%- set following = 'timestampadd(' ~ datepart ~ ', ' ~ interval ~ ', previous)' if datepart else 'previous + ' ~ interval %}
select * from (
    select {{ _listed(group_by_columns) }}{{ column_name }} as value, lag({{ column_name }}) over (
        {{ 'partition by ' ~ (group_by_columns | join(', ')) if group_by_columns }} order by {{ column_name }}) as previous
    from {{ model }}
)
where not ({{ 'cast(value as timestamp)' if datepart else 'value' }} = {{ following }})
{%- endmacro %}

{%- macro test_mutually_exclusive_ranges(model, lower_bound_column, upper_bound_column, partition_by=none, gaps='allowed',
                                         zero_length_range_allowed=false) %}
{%- set signs = {'not_allowed': '=', 'allowed': '<=', 'required': '<'} %}
{%- if gaps not in signs %}
{{ exceptions.raise_compiler_error("gaps is 'allowed', 'not_allowed' or 'required', not '" ~ gaps ~ "'") }}
{%- endif %}
{%- set order = 'order by ' ~ lower_bound_column ~ ', ' ~ upper_bound_column %}
select * from (
    select {{ partition_by ~ ' as partition_by_col, ' if partition_by }}
    {{ lower_bound_column }} as lower_bound, {{ upper_bound_column }} as upper_bound,
    lead({{ lower_bound_column }}) over ({{ 'partition by ' ~ partition_by if partition_by }} {{ order }}) as next_lower_bound,
    lead(1) over ({{ 'partition by ' ~ partition_by if partition_by }} {{ order }}) is null as is_last
    from {{ model }}
)
where not coalesce(lower_bound <{{ '=' if zero_length_range_allowed }} upper_bound, false)
or not coalesce(upper_bound {{ signs[gaps] }} next_lower_bound, is_last)
{%- endmacro %}

{#- The same rows, each counted once. Columns are compared by position unless they are listed, so their order must agree. -#}
{%- macro test_equality(model, compare_model, compare_columns=none, exclude_columns=none, precision=none) %}
{%- if precision is not none %}
{{ exceptions.raise_compiler_error("equality with 'precision' needs the types of columns: compare a model that rounds") }}
{%- endif %}
{%- if compare_columns and exclude_columns %}
{{ exceptions.raise_compiler_error("equality takes compare_columns or exclude_columns, not both") }}
{%- endif %}
{%- set columns = compare_columns | join(', ') if compare_columns else '*' %}
{%- set columns = '* except (' ~ (exclude_columns | join(', ')) ~ ')' if exclude_columns else columns %}
{%- set own = 'select ' ~ columns ~ ' from ' ~ model %}
{%- set other = 'select ' ~ columns ~ ' from ' ~ _relation(compare_model) %}
select which_diff, cast(null as string) as names from (
    select 'a_minus_b' as which_diff from ({{ own }} except {{ other }})
    union all
    select 'b_minus_a' as which_diff from ({{ other }} except {{ own }})
)
{%- if not compare_columns %}
union all
select 'columns' as which_diff, concat(array_join(own.names, ', '), ' and ', array_join(other.names, ', ')) as names
from ({{ _names(own) }}) as own cross join ({{ _names(other) }}) as other
where own.names <> other.names
{%- endif %}
{%- endmacro %}

{#- The names of a query's columns in small letters, in their order: one row, also where the query gives none. -#}
{%- macro _names(query) -%}
select transform(
    json_object_keys(to_json(struct(shown.*), map('ignoreNullFields', 'false'))), name -> lower(name)
) as names
from (select 1 as one) as always left join ({{ query }} limit 1) as shown on true
{%- endmacro %}
