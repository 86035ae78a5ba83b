{#- Rows and columns of the table. -#}

{%- macro test_expect_table_row_count_to_be_between(model, min_value=none, max_value=none, group_by=none, row_condition=none,
                                                    strictly=false) %}
{{ expression_between(model, 'count(*)', min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_table_row_count_to_equal(model, value, group_by=none, row_condition=none) %}
{{ expression_is_true(model, 'count(*) = ' ~ value, '= true', group_by, row_condition) }}
{%- endmacro %}

{%- macro _aggregate(model, expression, row_condition, group_by) -%}
select {% for column in group_by or [] %}{{ column }} as col_{{ loop.index }}, {% endfor %}{{ expression }} as value
from {{ model }} {{ _where(row_condition) }} {{ 'group by ' ~ (group_by | join(', ')) if group_by }}
{%- endmacro %}

{%- macro test_equal_expression(model, expression, compare_model=none, compare_expression=none, group_by=none,
                                compare_group_by=none, row_condition=none, compare_row_condition=none, tolerance=0.0,
                                tolerance_percent=none) %}
{%- set other = _relation(compare_model) if compare_model else model %}
select * from (
    select {% for column in group_by or [] %}coalesce(own.col_{{ loop.index }}, other.col_{{ loop.index }}) as col_{{ loop.index }}, {% endfor -%}
    own.value as expression, other.value as compare_expression,
    abs(coalesce(own.value, 0) - coalesce(other.value, 0)) as difference
    from ({{ _aggregate(model, expression, row_condition, group_by) }}) as own
    full join ({{ _aggregate(other, compare_expression or expression, compare_row_condition or row_condition,
                             compare_group_by or group_by) }}) as other
    on true{% for column in group_by or [] %} and own.col_{{ loop.index }} = other.col_{{ loop.index }}{% endfor %}
)
where difference{{ ' / nullif(expression, 0)' if tolerance_percent }} > {{ tolerance_percent or tolerance }}
{%- endmacro %}

{%- macro test_expect_table_aggregation_to_equal_other_table(
    model, expression, compare_model, compare_expression=none, group_by=none, compare_group_by=none, row_condition=none,
    compare_row_condition=none, tolerance=0.0, tolerance_percent=none
) %}
{{ test_equal_expression(model, expression, compare_model, compare_expression, group_by, compare_group_by, row_condition,
                         compare_row_condition, tolerance, tolerance_percent) }}
{%- endmacro %}

{%- macro test_expect_table_row_count_to_equal_other_table(
    model, compare_model, group_by=none, compare_group_by=none, factor=1, row_condition=none, compare_row_condition=none
) %}
{{ test_equal_expression(model, 'count(*)', compare_model, 'count(*) * ' ~ factor, group_by, compare_group_by,
                         row_condition, compare_row_condition) }}
{%- endmacro %}

{%- macro test_expect_table_row_count_to_equal_other_table_times_factor(
    model, compare_model, factor, group_by=none, compare_group_by=none, row_condition=none, compare_row_condition=none
) %}
{{ test_expect_table_row_count_to_equal_other_table(model, compare_model, group_by, compare_group_by, factor,
                                                    row_condition, compare_row_condition) }}
{%- endmacro %}

{%- macro test_expect_column_distinct_count_to_equal_other_table(
    model, compare_model, column_name, compare_column_name=none, row_condition=none, compare_row_condition=none
) %}
{{ test_equal_expression(model, 'count(distinct ' ~ column_name ~ ')', compare_model,
                         'count(distinct ' ~ (compare_column_name or column_name) ~ ')', row_condition=row_condition,
                         compare_row_condition=compare_row_condition) }}
{%- endmacro %}

{#- One row with the names of the columns in small letters, in their order; also of a table without rows. -#}
{%- macro _names(model) -%}
select transform(
    json_object_keys(to_json(struct(shown.*), map('ignoreNullFields', 'false'))), name -> lower(name)
) as names
from (select 1 as one) as always left join (select * from {{ model }} limit 1) as shown on true
{%- endmacro %}

{%- macro _lower(names) -%} array({{ _values(names | map('lower'), true) }}) {%- endmacro %}

{%- macro test_expect_column_to_exist(model, column_name, column_index=none, transform='upper') %}
{%- set name = _literal((column_name | replace('`', '')) | lower) %}
select names from ({{ _names(model) }})
where array_position(names, {{ name }}) {{ '<> ' ~ column_index if column_index else '= 0' }}
{%- endmacro %}

{%- macro test_expect_table_columns_to_contain_set(model, column_list, transform='upper') %}
select explode(array_except({{ _lower(column_list) }}, names)) as missing from ({{ _names(model) }})
{%- endmacro %}
{%- macro test_expect_table_columns_to_not_contain_set(model, column_list, transform='upper') %}
select explode(array_intersect({{ _lower(column_list) }}, names)) as name from ({{ _names(model) }})
{%- endmacro %}
{%- macro test_expect_table_columns_to_match_set(model, column_list, transform='upper') %}
select names from ({{ _names(model) }}) where array_sort(names) <> array_sort({{ _lower(column_list) }})
{%- endmacro %}
{%- macro test_expect_table_columns_to_match_ordered_list(model, column_list, transform='upper') %}
select names from ({{ _names(model) }}) where names <> {{ _lower(column_list) }}
{%- endmacro %}

{%- macro test_expect_table_column_count_to_equal(model, value) %}
select names from ({{ _names(model) }}) where size(names) <> {{ value }}
{%- endmacro %}
{%- macro test_expect_table_column_count_to_be_between(model, min_value=none, max_value=none) %}
select names from ({{ _names(model) }}) where not {{ _between('size(names)', min_value, max_value, false) }}
{%- endmacro %}
{%- macro test_expect_table_column_count_to_equal_other_table(model, compare_model) %}
select own.names, other.names as other_names
from ({{ _names(model) }}) as own cross join ({{ _names(_relation(compare_model)) }}) as other
where size(own.names) <> size(other.names)
{%- endmacro %}

{#- Types are those of Spark; one without a size allows every size. -#}
{%- macro test_expect_column_values_to_be_in_type_list(model, column_name, column_type_list) %}
select kind from (
    select typeof(shown.value) as kind
    from (select 1 as one) as always left join (select {{ column_name }} as value from {{ model }} limit 1) as shown on true
)
where not (false
{%- for kind in column_type_list %}
{%- set plain = kind | lower | replace(' ', '') %} or
{{ 'kind' if '(' in plain or '<' in plain else "regexp_extract(kind, '^[^(<]*', 0)" }} = {{ _literal(plain) }}
{%- endfor %})
{%- endmacro %}
{%- macro test_expect_column_values_to_be_of_type(model, column_name, column_type) %}
{{ test_expect_column_values_to_be_in_type_list(model, column_name, [column_type]) }}
{%- endmacro %}

{#- Times in the future do not count. -#}
{%- macro test_expect_row_values_to_have_recent_data(model, column_name, datepart, interval, row_condition=none) %}
select max(cast({{ column_name }} as timestamp)) as newest
from {{ model }}
where cast({{ column_name }} as timestamp) <= {{ _now() }} {{ 'and (' ~ row_condition ~ ')' if row_condition }}
having coalesce(newest < timestampadd({{ datepart }}, -{{ interval }}, {{ _now() }}), true)
{%- endmacro %}
{%- macro test_expect_grouped_row_values_to_have_recent_data(model, group_by, timestamp_column, datepart, interval,
                                                             row_condition=none) %}
select {{ _listed(group_by) }}max(cast({{ timestamp_column }} as timestamp)) as newest
from {{ model }}
where cast({{ timestamp_column }} as timestamp) <= {{ _now() }} {{ 'and (' ~ row_condition ~ ')' if row_condition }}
group by {{ group_by | join(', ') }}
having newest < timestampadd({{ datepart }}, -{{ interval }}, {{ _now() }})
{%- endmacro %}
