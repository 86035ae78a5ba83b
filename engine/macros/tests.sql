{#- The data tests that come with the engine. Each returns the rows that fail; failing_<kind> is an aggregate over all
    rows that is 0 if none does, so that one query can look for several tests. -#}

{%- macro test_not_null(model, column_name) %}
select * from {{ model }} where {{ column_name }} is null
{%- endmacro %}

{%- macro failing_not_null(model, column_name) -%}
count_if({{ column_name }} is null)
{%- endmacro %}

{%- macro test_unique(model, column_name) %}
select {{ column_name }}, count(*) as n_records
from {{ model }}
where {{ column_name }} is not null
group by {{ column_name }}
having count(*) > 1
{%- endmacro %}

{%- macro failing_unique(model, column_name) -%}
count({{ column_name }}) - count(distinct {{ column_name }})
{%- endmacro %}

{%- macro _not_accepted(column_name, values, quote) -%}
{{ column_name }} is not null and {{ column_name }} not in (
    {%- for value in values -%}
    {%- if quote -%} '{{ value | string | replace("\\", "\\\\") | replace("'", "\\'") }}' {%- else -%} {{ value }} {%- endif -%}
    {%- if not loop.last %}, {% endif -%}
    {%- endfor -%}
)
{%- endmacro %}

{%- macro test_accepted_values(model, column_name, values, quote=true) %}
select {{ column_name }}, count(*) as n_records
from {{ model }}
where {{ _not_accepted(column_name, values, quote) }}
group by {{ column_name }}
{%- endmacro %}

{%- macro failing_accepted_values(model, column_name, values, quote=true) -%}
count_if({{ _not_accepted(column_name, values, quote) }})
{%- endmacro %}

{%- macro test_relationships(model, column_name, to, field) %}
select child.{{ column_name }}
from {{ model }} as child
left join {{ to if to.startswith('`') else ref(to) }} as parent on child.{{ column_name }} = parent.{{ field }}
where child.{{ column_name }} is not null and parent.{{ field }} is null
{%- endmacro %}

{%- macro test_expression(model, expression, column_name=none) %}
select * from {{ model }} where not coalesce(({{ column_name ~ ' ' if column_name else '' }}{{ expression }}), false)
{%- endmacro %}

{%- macro failing_expression(model, expression, column_name=none) -%}
count_if(not coalesce(({{ column_name ~ ' ' if column_name else '' }}{{ expression }}), false))
{%- endmacro %}

{#- The newest time is not older than that; a table without rows has none. -#}
{%- macro test_recency(model, column_name, within) %}
select max({{ column_name }}) as newest
from {{ model }}
having coalesce(max({{ column_name }}) < current_timestamp() - interval '{{ within }}', true)
{%- endmacro %}

{#- Windows follow one another from the first to the last. -#}
{%- macro test_no_gaps(model, column_name, every, by=[]) %}
select * from (
    select
        {% for key in by %}{{ key }}, {% endfor -%}
        {{ column_name }},
        lead({{ column_name }}) over (
            {%- if by %}partition by {{ by | join(', ') }} {% endif %}order by {{ column_name }}) as following
    from (select distinct {% for key in by %}{{ key }}, {% endfor %}{{ column_name }} from {{ model }})
)
where following > {{ column_name }} + interval '{{ every }}'
{%- endmacro %}

{%- macro test_monotone(model, column_name, order_by, by=[], strictly=false) %}
select * from (
    select
        *,
        lag({{ column_name }}) over (
            {%- if by %}partition by {{ by | join(', ') }} {% endif %}order by {{ order_by }}) as before_it
    from {{ model }}
)
where {{ column_name }} {{ '<=' if strictly else '<' }} before_it
{%- endmacro %}

{#- As many rows as another model has, or so many more or fewer. -#}
{%- macro test_row_count_matches(model, to, within=0) %}
select own.n as rows_here, other.n as rows_there
from (select count(*) as n from {{ model }}) as own
cross join (select count(*) as n from {{ to if to.startswith('`') else ref(to) }}) as other
where abs(own.n - other.n) > {{ within }}
{%- endmacro %}
