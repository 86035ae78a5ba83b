{% macro big(c) %}{{ c }} > {{ var('least') }}{% endmacro %}
