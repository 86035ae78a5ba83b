{#- Tests by the names of dbt_expectations, for Spark: an import writes this file where one of them is used. Each gives the
    rows, or groups, that fail; one whose condition is NULL passes, as in dbt_expectations. -#}

{%- macro _literal(value) -%} '{{ value | string | replace("\\", "\\\\") | replace("'", "\\'") }}' {%- endmacro %}
{%- macro _relation(name) -%} {{ name if name.startswith('`') else ref(name) }} {%- endmacro %}
{%- macro _where(condition) -%} {{ 'where ' ~ condition if condition }} {%- endmacro %}
{%- macro _values(values, quoted) -%}
{%- for value in values %}{{ _literal(value) if quoted else value }}{{ ', ' if not loop.last }}{% endfor -%}
{%- endmacro %}
{%- macro _partition(columns) -%} {{ 'partition by ' ~ (columns | join(', ')) if columns }} {%- endmacro %}
{%- macro _listed(columns) -%} {% for column in columns or [] %}{{ column }}, {% endfor %} {%- endmacro %}

{%- macro group_by(n) -%}
group by {% for number in range(1, n + 1) %}{{ number }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro %}
{%- macro type_timestamp() -%} timestamp {%- endmacro %}
{%- macro type_datetime() -%} timestamp {%- endmacro %}
{%- macro log_natural(x) -%} ln({{ x }}) {%- endmacro %}
{%- macro percentile_cont(field, quantile) -%} percentile({{ field }}, {{ quantile }}) {%- endmacro %}
{%- macro median(field) -%} percentile({{ field }}, 0.5) {%- endmacro %}
{%- macro _now() -%} from_utc_timestamp(current_timestamp(), '{{ var('dbt_date:time_zone', 'UTC') }}') {%- endmacro %}

{#- The expression is an aggregate or of a row; groups are columns col_1, col_2, .. -#}
{%- macro expression_is_true(model, expression, test_condition='= true', group_by_columns=none, row_condition=none) -%}
select * from (
    select {% for column in group_by_columns or [] %}{{ column }} as col_{{ loop.index }}, {% endfor -%}
    {{ expression }} as expression
    from {{ model }} {{ _where(row_condition) }}
    {{ 'group by ' ~ (group_by_columns | join(', ')) if group_by_columns }}
)
where not (expression {{ test_condition }})
{%- endmacro %}

{%- macro expression_between(model, expression, min_value, max_value, group_by_columns, row_condition, strictly) -%}
{{ expression_is_true(model, _between(expression, min_value, max_value, strictly), group_by_columns=group_by_columns,
                      row_condition=row_condition) }}
{%- endmacro %}

{%- macro _between(expression, min_value, max_value, strictly) -%}
{%- if min_value is none and max_value is none -%}
{{ exceptions.raise_compiler_error("give min_value, max_value or both") }}
{%- endif -%}
(true
{%- if min_value is not none %} and {{ expression }} >{{ '=' if not strictly }} {{ min_value }}{% endif %}
{%- if max_value is not none %} and {{ expression }} <{{ '=' if not strictly }} {{ max_value }}{% endif %})
{%- endmacro %}

{%- macro test_expression_is_true(model, expression, test_condition='= true', group_by_columns=none, row_condition=none) %}
{{ expression_is_true(model, expression, test_condition, group_by_columns, row_condition) }}
{%- endmacro %}
{%- macro test_expression_between(model, expression, min_value=none, max_value=none, group_by_columns=none,
                                  row_condition=none, strictly=false) %}
{{ expression_between(model, expression, min_value, max_value, group_by_columns, row_condition, strictly) }}
{%- endmacro %}

{#- Values of a column. -#}

{%- macro test_expect_column_values_to_be_between(model, column_name, min_value=none, max_value=none, row_condition=none,
                                                  strictly=false) %}
{{ expression_between(model, column_name, min_value, max_value, none, row_condition, strictly) }}
{%- endmacro %}

{%- macro test_expect_column_values_to_be_null(model, column_name, row_condition=none) %}
{{ expression_is_true(model, column_name ~ ' is null', row_condition=row_condition) }}
{%- endmacro %}

{%- macro test_expect_column_values_to_not_be_null(model, column_name, row_condition=none) %}
{{ expression_is_true(model, column_name ~ ' is not null', row_condition=row_condition) }}
{%- endmacro %}

{%- macro test_expect_column_values_to_be_unique(model, column_name, row_condition=none) %}
{{ test_expect_compound_columns_to_be_unique(model, [column_name], row_condition=row_condition) }}
{%- endmacro %}

{#- NULL is not in the set. -#}
{%- macro test_expect_column_values_to_be_in_set(model, column_name, value_set, quote_values=true, row_condition=none) %}
select {{ column_name }} from {{ model }}
where ({{ column_name }} is null or {{ column_name }} not in ({{ _values(value_set, quote_values) }}))
{{ 'and (' ~ row_condition ~ ')' if row_condition }}
{%- endmacro %}

{%- macro test_expect_column_values_to_not_be_in_set(model, column_name, value_set, quote_values=true, row_condition=none) %}
select {{ column_name }} from {{ model }}
where {{ column_name }} in ({{ _values(value_set, quote_values) }}) {{ 'and (' ~ row_condition ~ ')' if row_condition }}
{%- endmacro %}

{%- macro _not_monotone(model, column_name, sort_column, row_condition, group_by, sign, difference, step) %}
select * from (
    select {{ _listed(group_by) }}{{ sort_column or column_name }} as sort_column, {{ column_name }} as value_field,
    lag({{ column_name }}) over ({{ _partition(group_by) }} order by {{ sort_column or column_name }}) as value_field_lag
    from {{ model }} {{ _where(row_condition) }}
)
where value_field_lag is not null and not (
    value_field {{ sign }} value_field_lag{{ ' and ' ~ difference ~ ' = ' ~ step if step }}
)
{%- endmacro %}

{%- macro test_expect_column_values_to_be_increasing(model, column_name, sort_column=none, strictly=true, row_condition=none,
                                                     group_by=none, step=none) %}
{{ _not_monotone(model, column_name, sort_column, row_condition, group_by, '>' if strictly else '>=',
                 'value_field - value_field_lag', step) }}
{%- endmacro %}

{%- macro test_expect_column_values_to_be_decreasing(model, column_name, sort_column=none, strictly=true, row_condition=none,
                                                     group_by=none, step=none) %}
{{ _not_monotone(model, column_name, sort_column, row_condition, group_by, '<' if strictly else '<=',
                 'value_field_lag - value_field', step) }}
{%- endmacro %}

{%- macro test_expect_column_values_to_have_consistent_casing(model, column_name, display_inconsistent_columns=false) %}
select lower({{ column_name }}) as inconsistent, count(distinct {{ column_name }}) as n
from {{ model }}
group by lower({{ column_name }})
having count(distinct {{ column_name }}) > 1
{%- endmacro %}

{#- Strings. -#}

{%- macro _regex(regex, flags) -%}
{%- for flag in flags if flag not in 'imscegx' -%}
{{ exceptions.raise_compiler_error("the flag '" ~ flag ~ "' of a regular expression is not supported") }}
{%- endfor -%}
{#- The others say what Spark does anyway. -#}
{%- set kept = flags | select('in', 'imsx') | join -%}
{{ _literal(('(?' ~ kept ~ ')' if kept else '') ~ regex) }}
{%- endmacro %}

{%- macro regexp_instr(source_value, regexp, position=1, occurrence=1, is_raw=false, flags='') -%}
regexp_instr({{ source_value }}, {{ _regex(regexp, flags) }})
{%- endmacro %}

{%- macro _all_or_any(column_name, patterns, match_on, negated, kind) -%}
({%- for pattern in patterns -%}
{{ column_name }} {{ 'not ' if negated }}{{ kind }} {{ pattern }}
{{- (' and ' if match_on == 'all' else ' or ') if not loop.last -}}
{%- endfor -%})
{%- endmacro %}

{%- macro _regexes(model, column_name, regexes, match_on, row_condition, flags, negated) -%}
{%- set patterns = [] -%}
{%- for regex in regexes -%}{%- do patterns.append(_regex(regex, flags)) -%}{%- endfor -%}
{{ expression_is_true(model, _all_or_any(column_name, patterns, match_on, negated, 'rlike'), row_condition=row_condition) }}
{%- endmacro %}

{%- macro test_expect_column_values_to_match_regex(model, column_name, regex, row_condition=none, is_raw=false, flags='') %}
{{ _regexes(model, column_name, [regex], 'any', row_condition, flags, false) }}
{%- endmacro %}
{%- macro test_expect_column_values_to_not_match_regex(model, column_name, regex, row_condition=none, is_raw=false, flags='') %}
{{ _regexes(model, column_name, [regex], 'any', row_condition, flags, true) }}
{%- endmacro %}
{%- macro test_expect_column_values_to_match_regex_list(model, column_name, regex_list, match_on='any', row_condition=none,
                                                        is_raw=false, flags='') %}
{{ _regexes(model, column_name, regex_list, match_on, row_condition, flags, false) }}
{%- endmacro %}
{%- macro test_expect_column_values_to_not_match_regex_list(model, column_name, regex_list, match_on='any',
                                                            row_condition=none, is_raw=false, flags='') %}
{{ _regexes(model, column_name, regex_list, match_on, row_condition, flags, true) }}
{%- endmacro %}

{%- macro _likes(model, column_name, likes, match_on, row_condition, negated) -%}
{%- set patterns = [] -%}
{%- for like in likes -%}{%- do patterns.append(_literal(like)) -%}{%- endfor -%}
{{ expression_is_true(model, _all_or_any(column_name, patterns, match_on, negated, 'like'), row_condition=row_condition) }}
{%- endmacro %}

{%- macro test_expect_column_values_to_match_like_pattern(model, column_name, like_pattern, row_condition=none) %}
{{ _likes(model, column_name, [like_pattern], 'any', row_condition, false) }}
{%- endmacro %}
{%- macro test_expect_column_values_to_not_match_like_pattern(model, column_name, like_pattern, row_condition=none) %}
{{ _likes(model, column_name, [like_pattern], 'any', row_condition, true) }}
{%- endmacro %}
{%- macro test_expect_column_values_to_match_like_pattern_list(model, column_name, like_pattern_list, match_on='any',
                                                               row_condition=none) %}
{{ _likes(model, column_name, like_pattern_list, match_on, row_condition, false) }}
{%- endmacro %}
{%- macro test_expect_column_values_to_not_match_like_pattern_list(model, column_name, like_pattern_list, match_on='any',
                                                                   row_condition=none) %}
{{ _likes(model, column_name, like_pattern_list, match_on, row_condition, true) }}
{%- endmacro %}

{%- macro test_expect_column_value_lengths_to_be_between(model, column_name, min_value=none, max_value=none,
                                                         row_condition=none, strictly=false) %}
{{ expression_between(model, 'length(' ~ column_name ~ ')', min_value, max_value, none, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_value_lengths_to_equal(model, column_name, value, row_condition=none) %}
{{ expression_is_true(model, 'length(' ~ column_name ~ ') = ' ~ value, row_condition=row_condition) }}
{%- endmacro %}

{#- Aggregates of a column. -#}

{%- macro test_expect_column_min_to_be_between(model, column_name, min_value=none, max_value=none, group_by=none,
                                               row_condition=none, strictly=false) %}
{{ expression_between(model, 'min(' ~ column_name ~ ')', min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_max_to_be_between(model, column_name, min_value=none, max_value=none, group_by=none,
                                               row_condition=none, strictly=false) %}
{{ expression_between(model, 'max(' ~ column_name ~ ')', min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_mean_to_be_between(model, column_name, min_value=none, max_value=none, group_by=none,
                                                row_condition=none, strictly=false) %}
{{ expression_between(model, 'avg(' ~ column_name ~ ')', min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_median_to_be_between(model, column_name, min_value=none, max_value=none, group_by=none,
                                                  row_condition=none, strictly=false) %}
{{ expression_between(model, median(column_name), min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_quantile_values_to_be_between(model, column_name, quantile, min_value=none, max_value=none,
                                                           group_by=none, row_condition=none, strictly=false) %}
{{ expression_between(model, percentile_cont(column_name, quantile), min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_stdev_to_be_between(model, column_name, min_value=none, max_value=none, group_by=none,
                                                 row_condition=none, strictly=false) %}
{{ expression_between(model, 'stddev(' ~ column_name ~ ')', min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_sum_to_be_between(model, column_name, min_value=none, max_value=none, group_by=none,
                                               row_condition=none, strictly=false) %}
{{ expression_between(model, 'sum(' ~ column_name ~ ')', min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_unique_value_count_to_be_between(model, column_name, min_value=none, max_value=none,
                                                              group_by=none, row_condition=none, strictly=false) %}
{{ expression_between(model, 'count(distinct ' ~ column_name ~ ')', min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}
{%- macro test_expect_column_proportion_of_unique_values_to_be_between(model, column_name, min_value=none, max_value=none,
                                                                       group_by=none, row_condition=none, strictly=false) %}
{%- set share = 'count(distinct ' ~ column_name ~ ') / nullif(count(' ~ column_name ~ '), 0)' %}
{{ expression_between(model, share, min_value, max_value, group_by, row_condition, strictly) }}
{%- endmacro %}

{%- macro test_expect_column_distinct_count_to_equal(model, column_name, value, group_by=none, row_condition=none) %}
{{ expression_is_true(model, 'count(distinct ' ~ column_name ~ ') = ' ~ value, '= true', group_by, row_condition) }}
{%- endmacro %}
{%- macro test_expect_column_distinct_count_to_be_greater_than(model, column_name, value, group_by=none, row_condition=none) %}
{{ expression_is_true(model, 'count(distinct ' ~ column_name ~ ') > ' ~ value, '= true', group_by, row_condition) }}
{%- endmacro %}
{%- macro test_expect_column_distinct_count_to_be_less_than(model, column_name, value, group_by=none, row_condition=none) %}
{{ expression_is_true(model, 'count(distinct ' ~ column_name ~ ') < ' ~ value, '= true', group_by, row_condition) }}
{%- endmacro %}

{%- macro test_expect_column_distinct_values_to_be_in_set(model, column_name, value_set, quote_values=true,
                                                          row_condition=none) %}
select distinct value_field
from ({{ test_expect_column_values_to_be_in_set(model, column_name, value_set, quote_values, row_condition) }}) as t(value_field)
{%- endmacro %}

{%- macro test_expect_column_distinct_values_to_contain_set(model, column_name, value_set, quote_values=true,
                                                            row_condition=none) %}
select wanted.value_field
from (select explode(array({{ _values(value_set, quote_values) }})) as value_field) as wanted
left join (select distinct {{ column_name }} as value_field from {{ model }} {{ _where(row_condition) }}) as stored
on wanted.value_field = stored.value_field
where stored.value_field is null
{%- endmacro %}

{%- macro test_expect_column_distinct_values_to_equal_set(model, column_name, value_set, quote_values=true,
                                                          row_condition=none) %}
select stored.value_field as column_value, wanted.value_field
from (select distinct {{ column_name }} as value_field from {{ model }} {{ _where(row_condition) }}) as stored
full join (select explode(array({{ _values(value_set, quote_values) }})) as value_field) as wanted
on wanted.value_field = stored.value_field
where stored.value_field is null or wanted.value_field is null
{%- endmacro %}

{#- The value at the place `top_n` of the most frequent ones. -#}
{%- macro test_expect_column_most_common_value_to_be_in_set(model, column_name, value_set, top_n, quote_values=true,
                                                            data_type='decimal(18, 3)', row_condition=none) %}
select value_field from (
    select value_field, row_number() over (order by count(*) desc, value_field) as place
    from (
        select {{ column_name if quote_values else 'cast(' ~ column_name ~ ' as ' ~ data_type ~ ')' }} as value_field
        from {{ model }} {{ _where(row_condition) }}
    )
    group by value_field
)
where place = {{ top_n }} and value_field not in ({{ _values(value_set, quote_values) }})
{%- endmacro %}

{#- Several columns. -#}

{%- macro test_expect_column_pair_values_A_to_be_greater_than_B(model, column_A, column_B, or_equal=false, row_condition=none) %}
{{ expression_is_true(model, column_A ~ (' >= ' if or_equal else ' > ') ~ column_B, row_condition=row_condition) }}
{%- endmacro %}

{%- macro test_expect_column_pair_values_to_be_equal(model, column_A, column_B, row_condition=none) %}
{{ expression_is_true(model, column_A ~ ' = ' ~ column_B, row_condition=row_condition) }}
{%- endmacro %}

{%- macro test_expect_column_pair_values_to_be_in_set(model, column_A, column_B, value_pairs_set, row_condition=none) %}
{%- set expression %}
{%- for pair in value_pairs_set %}
{%- if pair | length != 2 %}{{ exceptions.raise_compiler_error("each entry of value_pairs_set is a list of two values") }}{% endif %}
{{- '(' ~ column_A ~ ' = ' ~ pair[0] ~ ' and ' ~ column_B ~ ' = ' ~ pair[1] ~ ')' }}{{ ' or ' if not loop.last }}
{%- endfor %}
{%- endset %}
{{ expression_is_true(model, expression, row_condition=row_condition) }}
{%- endmacro %}

{%- macro _row_counts(columns, ignore_row_if, row_condition) -%}
{%- if ignore_row_if not in ('all_values_are_missing', 'any_value_is_missing') -%}
{{ exceptions.raise_compiler_error("ignore_row_if is 'all_values_are_missing' or 'any_value_is_missing'") }}
{%- endif -%}
{%- set between = ' is null and ' if ignore_row_if == 'all_values_are_missing' else ' is null or ' -%}
where not ({{ columns | join(between) }} is null) {{ 'and (' ~ row_condition ~ ')' if row_condition }}
{%- endmacro %}

{%- macro test_expect_compound_columns_to_be_unique(model, column_list, quote_columns=false,
                                                    ignore_row_if='all_values_are_missing', row_condition=none) %}
select {{ column_list | join(', ') }}, count(*) as n_records
from {{ model }} {{ _row_counts(column_list, ignore_row_if, row_condition) }}
group by {{ column_list | join(', ') }}
having count(*) > 1
{%- endmacro %}

{%- macro test_expect_select_column_values_to_be_unique_within_record(model, column_list, quote_columns=false,
                                                                      ignore_row_if='all_values_are_missing',
                                                                      row_condition=none) %}
select {{ column_list | join(', ') }}
from {{ model }} {{ _row_counts(column_list, ignore_row_if, row_condition) }}
and size(array_distinct(array_compact(array(
    {%- for column in column_list %}cast({{ column }} as string){{ ', ' if not loop.last }}{% endfor -%}
)))) < {{ column_list | length }}
{%- endmacro %}

{%- macro test_expect_multicolumn_sum_to_equal(model, column_list, sum_total, group_by=none, row_condition=none) %}
{%- set sums = 'sum(' ~ (column_list | join(') + sum(')) ~ ')' %}
{%- set total = sum_total if sum_total is number else 'sum(' ~ sum_total ~ ')' %}
{{ expression_is_true(model, sums ~ ' = ' ~ total, '= true', group_by, row_condition) }}
{%- endmacro %}

{#- Distributions. -#}

{%- macro test_expect_column_values_to_be_within_n_stdevs(model, column_name, group_by=none, sigma_threshold=3) %}
select * from (
    select *, (total - avg(total) over ()) / nullif(stddev(total) over (), 0) as sigma
    from (
        select {{ _listed(group_by) }}sum({{ column_name }}) as total
        from {{ model }} {{ 'group by ' ~ (group_by | join(', ')) if group_by }}
    )
)
where abs(sigma) > {{ sigma_threshold }}
{%- endmacro %}

{%- macro _metric(column, take_logs) -%}
coalesce({{ 'ln(nullif(' ~ column ~ ', 0))' if take_logs else column }}, 0)
{%- endmacro %}

{%- macro test_expect_column_values_to_be_within_n_moving_stdevs(
    model, column_name, date_column_name, group_by=none, period='day', lookback_periods=1, trend_periods=7, test_periods=14,
    sigma_threshold=3, sigma_threshold_upper=none, sigma_threshold_lower=none, take_diffs=true, take_logs=true
) %}
{%- set before = 'over (' ~ _partition(group_by) ~ ' order by metric_period rows between ' ~ trend_periods
                 ~ ' preceding and 1 preceding)' %}
{%- set this_period = "date_trunc('" ~ period ~ "', " ~ _now() ~ ")" %}
select * from (
    select *, (metric - avg(metric) {{ before }}) / nullif(stddev(metric) {{ before }}, 0) as sigma
    from (
        select *, {{ _metric('total', take_logs) }}
        {%- if take_diffs %} - {{ _metric('earlier', take_logs) }}{% endif %} as metric
        from (
            select *, lag(total, {{ lookback_periods }}) over ({{ _partition(group_by) }} order by metric_period) as earlier
            from (
                select {{ _listed(group_by) }}date_trunc('{{ period }}', {{ date_column_name }}) as metric_period,
                sum({{ column_name }}) as total
                from {{ model }}
                group by {{ _listed(group_by) }}date_trunc('{{ period }}', {{ date_column_name }})
            )
        )
    )
)
where metric_period >= timestampadd({{ period }}, -{{ test_periods }}, {{ this_period }}) and metric_period < {{ this_period }}
and not (sigma >= {{ sigma_threshold_lower or -1 * sigma_threshold }} and sigma <= {{ sigma_threshold_upper or sigma_threshold }})
{%- endmacro %}

{#- Periods of `interval` units without a row, from the first day up to, and without, the last: those given, or those of
    the table. -#}
{%- macro test_expect_row_values_to_have_data_for_every_n_datepart(
    model, date_col, date_part='day', interval=none, row_condition=none, exclusion_condition=none, test_start_date=none,
    test_end_date=none
) %}
{%- set number = (interval or 1) * (3 if date_part == 'quarter' else 1) %}
{%- set step = 'interval ' ~ number ~ ' ' ~ ('month' if date_part == 'quarter' else date_part) %}
{%- set begin = "timestamp '" ~ test_start_date ~ "'" if test_start_date else 'cast(min(cast(' ~ date_col ~ ' as date)) as timestamp)' %}
{%- set end = "timestamp '" ~ test_end_date ~ "'" if test_end_date else 'cast(max(cast(' ~ date_col ~ ' as date)) as timestamp)' %}
select * from (
    select spine.date_{{ date_part }}, count(stored.at) as row_cnt
    from (
        select explode(sequence(first_day, last_day, {{ step }})) as date_{{ date_part }}, last_day
        from (select {{ begin }} as first_day, {{ end }} as last_day from {{ model }} {{ _where(row_condition) }})
    ) as spine
    left join (select cast({{ date_col }} as timestamp) as at from {{ model }} {{ _where(row_condition) }}) as stored
    on stored.at >= spine.date_{{ date_part }} and stored.at < spine.date_{{ date_part }} + {{ step }}
    where spine.date_{{ date_part }} < spine.last_day
    group by spine.date_{{ date_part }}
)
where row_cnt = 0 {{ 'and ' ~ exclusion_condition if exclusion_condition }}
{%- endmacro %}
