{#- Macros that dbt brings, for Spark: an import writes this file where templates call one of them. -#}

{%- macro type_string() -%} string {%- endmacro %}
{%- macro type_timestamp() -%} timestamp {%- endmacro %}
{%- macro type_int() -%} int {%- endmacro %}
{%- macro type_bigint() -%} bigint {%- endmacro %}
{%- macro type_float() -%} double {%- endmacro %}
{%- macro type_numeric() -%} decimal(28, 6) {%- endmacro %}
{%- macro type_boolean() -%} boolean {%- endmacro %}
{%- macro except() -%} except {%- endmacro %}
{%- macro intersect() -%} intersect {%- endmacro %}

{%- macro current_timestamp() -%} current_timestamp() {%- endmacro %}

{%- macro date_trunc(datepart, date) -%} date_trunc('{{ datepart }}', {{ date }}) {%- endmacro %}

{%- macro dateadd(datepart, interval, from_date_or_timestamp) -%}
timestampadd({{ datepart | replace("'", '') }}, {{ interval }}, {{ from_date_or_timestamp }})
{%- endmacro %}

{#- As in dbt, the number of bounds between the two times, not of whole units. -#}
{%- macro datediff(first_date, second_date, datepart) -%}
{%- set unit = datepart | replace("'", '') -%}
timestampdiff({{ unit }}, date_trunc('{{ unit }}', {{ first_date }}), date_trunc('{{ unit }}', {{ second_date }}))
{%- endmacro %}

{%- macro last_day(date, datepart) -%}
cast(timestampadd(day, -1, timestampadd({{ datepart }}, 1, date_trunc('{{ datepart }}', {{ date }}))) as date)
{%- endmacro %}

{%- macro safe_cast(field, type) -%} try_cast({{ field }} as {{ type }}) {%- endmacro %}
{%- macro cast(field, type) -%} cast({{ field }} as {{ type }}) {%- endmacro %}
{%- macro cast_bool_to_text(field) -%} lower(cast({{ field }} as string)) {%- endmacro %}
{%- macro concat(fields) -%} concat({{ fields | join(', ') }}) {%- endmacro %}
{%- macro hash(field) -%} md5(cast({{ field }} as string)) {%- endmacro %}
{%- macro length(expression) -%} length({{ expression }}) {%- endmacro %}
{%- macro position(substring_text, string_text) -%} locate({{ substring_text }}, {{ string_text }}) {%- endmacro %}
{%- macro replace(field, old_chars, new_chars) -%} replace({{ field }}, {{ old_chars }}, {{ new_chars }}) {%- endmacro %}
{%- macro right(string_text, length_expression) -%} right({{ string_text }}, {{ length_expression }}) {%- endmacro %}
{%- macro any_value(expression) -%} any_value({{ expression }}) {%- endmacro %}
{%- macro bool_or(expression) -%} bool_or({{ expression }}) {%- endmacro %}
{%- macro string_literal(value) -%} '{{ value }}' {%- endmacro %}

{%- macro split_part(string_text, delimiter_text, part_number) -%}
split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro %}

{%- macro escape_single_quotes(expression) -%} {{ expression | replace("\\", "\\\\") | replace("'", "\\'") }} {%- endmacro %}
{%- macro equals(expr1, expr2) -%} {{ expr1 }} <=> {{ expr2 }} {%- endmacro %}
{%- macro date(year, month, day) -%} make_date({{ year }}, {{ month }}, {{ day }}) {%- endmacro %}
{%- macro array_append(array, new_element) -%} array_append({{ array }}, {{ new_element }}) {%- endmacro %}
{%- macro array_concat(array_1, array_2) -%} concat({{ array_1 }}, {{ array_2 }}) {%- endmacro %}
{%- macro array_construct(inputs=[], data_type='integer') -%}
{% if inputs %}array({{ inputs | join(', ') }}){% else %}cast(array() as array<{{ data_type }}>){% endif %}
{%- endmacro %}

{#- With an order, which is written as in `order by day desc`, and a largest number of values. -#}
{%- macro listagg(measure, delimiter_text="','", order_by_clause=none, limit_num=none) -%}
{%- if order_by_clause and limit_num -%}
{{ exceptions.raise_compiler_error("listagg with an order and a limit: number the rows in a subquery first") }}
{%- endif -%}
{%- if limit_num -%} array_join(slice(collect_list({{ measure }}), 1, {{ limit_num }}), {{ delimiter_text }})
{%- else -%} listagg({{ measure }}, {{ delimiter_text }}){{ ' within group (' ~ order_by_clause ~ ')' if order_by_clause }}
{%- endif -%}
{%- endmacro %}

{%- macro generate_series(upper_bound) -%}
select explode(sequence(1, {{ upper_bound }})) as generated_number
{%- endmacro %}

{#- One row for each unit from the first date up to, and without, the last. -#}
{%- macro date_spine(datepart, start_date, end_date) -%}
{%- set step = {'quarter': '3 month'}.get(datepart, '1 ' ~ datepart) -%}
select date_{{ datepart }}
from (
    select explode(sequence(
        cast({{ start_date }} as timestamp), cast({{ end_date }} as timestamp), interval {{ step }}
    )) as date_{{ datepart }}
)
where date_{{ datepart }} < cast({{ end_date }} as timestamp)
{%- endmacro %}
