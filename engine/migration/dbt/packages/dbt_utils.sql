{#- Macros and tests by the names of dbt_utils, for Spark: an import writes this file where one of them is used. -#}

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

{#- All columns except some, which must exist; names are found when the query is compiled. -#}
{%- macro star(from, relation_alias=false, except=[], prefix='', suffix='', quote_identifiers=true) -%}
{%- if prefix or suffix -%}
{{ exceptions.raise_compiler_error("star() with prefix or suffix needs the names of columns: write the columns out") }}
{%- endif -%}
{{ relation_alias ~ '.' if relation_alias }}*{% if except %} except ({{ except | join(', ') }}){% endif %}
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
{{ agg }}({{ 'distinct ' if distinct }}case when {{ column }} {{ cmp }} '{{ value }}' then {{ then_value }} else {{ else_value }} end)
{%- if alias %} as `{{ prefix ~ value ~ suffix }}`{% endif %}{{ ', ' if not loop.last }}
{% endfor %}
{%- endmacro %}

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
    {%- for value in values %}{% if quote %}'{{ value }}'{% else %}{{ value }}{% endif %}{{ ', ' if not loop.last }}{% endfor -%}
)
{%- endmacro %}

{%- macro test_at_least_one(model, column_name) %}
select count({{ column_name }}) as n from {{ model }} having count({{ column_name }}) = 0
{%- endmacro %}

{%- macro test_not_constant(model, column_name) %}
select count(distinct {{ column_name }}) as n from {{ model }} having count(distinct {{ column_name }}) = 1
{%- endmacro %}

{%- macro test_not_empty_string(model, column_name, trim_whitespace=true) %}
select * from {{ model }} where {% if trim_whitespace %}trim({{ column_name }}){% else %}{{ column_name }}{% endif %} = ''
{%- endmacro %}

{%- macro test_not_null_proportion(model, column_name, at_least, at_most=1.0) %}
select count({{ column_name }}) / count(*) as proportion
from {{ model }}
having count({{ column_name }}) / count(*) < {{ at_least }} or count({{ column_name }}) / count(*) > {{ at_most }}
{%- endmacro %}

{%- macro test_recency(model, field, datepart, interval) %}
select max({{ field }}) as newest
from {{ model }}
having coalesce(max({{ field }}) < timestampadd({{ datepart }}, -{{ interval }}, current_timestamp()), true)
{%- endmacro %}

{%- macro test_equal_rowcount(model, compare_model) %}
select own.n as rows_here, other.n as rows_there
from (select count(*) as n from {{ model }}) as own
cross join (select count(*) as n from {{ compare_model if compare_model.startswith('`') else ref(compare_model) }}) as other
where own.n <> other.n
{%- endmacro %}
