{#- The share of rows for which a condition holds, between 0 and 1. -#}
{% macro share(condition) -%}
round(avg(case when {{ condition }} then 1.0 else 0.0 end), 3)
{%- endmacro %}
