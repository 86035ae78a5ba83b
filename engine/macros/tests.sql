{#- The data tests that come with the engine. Each returns the rows that fail. -#}

{%- macro test_not_null(model, column_name) %}
select * from {{ model }} where {{ column_name }} is null
{%- endmacro %}

{%- macro test_unique(model, column_name) %}
select {{ column_name }}, count(*) as n_records
from {{ model }}
where {{ column_name }} is not null
group by {{ column_name }}
having count(*) > 1
{%- endmacro %}

{%- macro test_accepted_values(model, column_name, values, quote=true) %}
select {{ column_name }}, count(*) as n_records
from {{ model }}
where {{ column_name }} is not null and {{ column_name }} not in (
    {%- for value in values -%}
    {%- if quote -%} '{{ value | string | replace("\\", "\\\\") | replace("'", "\\'") }}' {%- else -%} {{ value }} {%- endif -%}
    {%- if not loop.last %}, {% endif -%}
    {%- endfor -%}
)
group by {{ column_name }}
{%- endmacro %}

{%- macro test_relationships(model, column_name, to, field) %}
select child.{{ column_name }}
from {{ model }} as child
left join {{ to if to.startswith('`') else ref(to) }} as parent on child.{{ column_name }} = parent.{{ field }}
where child.{{ column_name }} is not null and parent.{{ field }} is null
{%- endmacro %}
