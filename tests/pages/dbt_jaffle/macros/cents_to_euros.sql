{% macro cents_to_euros(column) %}{{ column }} / 100.0{% endmacro %}
