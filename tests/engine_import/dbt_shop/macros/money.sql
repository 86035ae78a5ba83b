{% macro cents_to_units(column) -%}
    {{ return(adapter.dispatch('cents_to_units')(column)) }}
{%- endmacro %}

{% macro default__cents_to_units(column) -%}
    ({{ column }} / 100)
{%- endmacro %}

{% macro duckdb__cents_to_units(column) -%}
    ({{ column }} / 100)::numeric(16, 2)
{%- endmacro %}

{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ custom_schema_name or target.schema }}
{%- endmacro %}
