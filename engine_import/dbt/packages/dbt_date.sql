{#- Macros by the names of dbt_date, for Spark: an import writes this file where one of them is used. The time zone is the
    variable 'dbt_date:time_zone', UTC without it. Weeks begin on Sunday, those of iso_week_start() on Monday. -#}

{%- macro convert_timezone(column, target_tz=none, source_tz=none) -%}
from_utc_timestamp(to_utc_timestamp({{ column }}, '{{ source_tz or 'UTC' }}'),
                   '{{ target_tz or var('dbt_date:time_zone', 'UTC') }}')
{%- endmacro %}

{%- macro now(tz=none) -%} {{ convert_timezone('current_timestamp()', tz) }} {%- endmacro %}
{%- macro today(tz=none) -%} cast({{ now(tz) }} as date) {%- endmacro %}
{%- macro _day(date, tz) -%} {{ date if date else today(tz) }} {%- endmacro %}

{%- macro n_days_away(n, date=none, tz=none) -%}
cast(timestampadd(day, {{ n | int }}, {{ _day(date, tz) }}) as date)
{%- endmacro %}
{%- macro n_days_ago(n, date=none, tz=none) -%} {{ n_days_away(-1 * n | int, date, tz) }} {%- endmacro %}
{%- macro tomorrow(date=none, tz=none) -%} {{ n_days_away(1, date, tz) }} {%- endmacro %}
{%- macro yesterday(date=none, tz=none) -%} {{ n_days_away(-1, date, tz) }} {%- endmacro %}

{%- macro _periods_away(n, period, tz) -%}
date_trunc('{{ period }}', timestampadd({{ period }}, {{ n | int }}, {{ today(tz) }}))
{%- endmacro %}
{%- macro n_weeks_away(n, tz=none) -%} {{ _periods_away(n, 'week', tz) }} {%- endmacro %}
{%- macro n_weeks_ago(n, tz=none) -%} {{ _periods_away(-1 * n | int, 'week', tz) }} {%- endmacro %}
{%- macro n_months_away(n, tz=none) -%} {{ _periods_away(n, 'month', tz) }} {%- endmacro %}
{%- macro n_months_ago(n, tz=none) -%} {{ _periods_away(-1 * n | int, 'month', tz) }} {%- endmacro %}
{%- macro last_week(tz=none) -%} {{ n_weeks_ago(1, tz) }} {%- endmacro %}
{%- macro next_week(tz=none) -%} {{ n_weeks_away(1, tz) }} {%- endmacro %}
{%- macro last_month(tz=none) -%} {{ n_months_ago(1, tz) }} {%- endmacro %}
{%- macro next_month(tz=none) -%} {{ n_months_away(1, tz) }} {%- endmacro %}
{%- macro last_month_number(tz=none) -%} {{ date_part('month', last_month(tz)) }} {%- endmacro %}
{%- macro next_month_number(tz=none) -%} {{ date_part('month', next_month(tz)) }} {%- endmacro %}
{%- macro last_month_name(short=true, tz=none) -%} {{ month_name(last_month(tz), short) }} {%- endmacro %}
{%- macro next_month_name(short=true, tz=none) -%} {{ month_name(next_month(tz), short) }} {%- endmacro %}

{%- macro date_part(datepart, date) -%} date_part('{{ datepart }}', {{ date }}) {%- endmacro %}
{%- macro day_name(date, short=true) -%} date_format({{ date }}, '{{ 'E' if short else 'EEEE' }}') {%- endmacro %}
{%- macro month_name(date, short=true) -%} date_format({{ date }}, '{{ 'LLL' if short else 'LLLL' }}') {%- endmacro %}
{%- macro day_of_month(date) -%} dayofmonth({{ date }}) {%- endmacro %}
{%- macro day_of_year(date) -%} dayofyear({{ date }}) {%- endmacro %}

{#- 1 is Monday, or with isoweek=false Sunday. -#}
{%- macro day_of_week(date, isoweek=true) -%}
{{ 'weekday(' ~ date ~ ') + 1' if isoweek else 'dayofweek(' ~ date ~ ')' }}
{%- endmacro %}

{#- That of ISO 8601, as on Snowflake, Spark and Redshift. -#}
{%- macro week_of_year(date=none, tz=none) -%} weekofyear({{ _day(date, tz) }}) {%- endmacro %}
{%- macro iso_week_of_year(date=none, tz=none) -%} weekofyear({{ _day(date, tz) }}) {%- endmacro %}
{%- macro iso_week_start(date=none, tz=none) -%} cast(date_trunc('week', {{ _day(date, tz) }}) as date) {%- endmacro %}
{%- macro iso_week_end(date=none, tz=none) -%} date_add({{ iso_week_start(date, tz) }}, 6) {%- endmacro %}

{%- macro week_start(date=none, tz=none) -%}
date_sub(cast(date_trunc('week', timestampadd(day, 1, {{ _day(date, tz) }})) as date), 1)
{%- endmacro %}
{%- macro week_end(date=none, tz=none) -%} date_add({{ week_start(date, tz) }}, 6) {%- endmacro %}

{%- macro from_unixtimestamp(epochs, format='seconds') -%}
{%- set functions = {'seconds': 'timestamp_seconds', 'milliseconds': 'timestamp_millis', 'microseconds': 'timestamp_micros'} -%}
{%- if format not in functions -%}
{{ exceptions.raise_compiler_error("from_unixtimestamp: the format is seconds, milliseconds or microseconds, not '" ~ format ~ "'") }}
{%- endif -%}
{{ functions[format] }}({{ epochs }})
{%- endmacro %}
{%- macro to_unixtimestamp(timestamp) -%} unix_timestamp({{ timestamp }}) {%- endmacro %}

{#- The number of bounds between the two times, not of whole units. -#}
{%- macro periods_since(date_col, period_name='day', tz=none) -%}
timestampdiff({{ period_name }}, date_trunc('{{ period_name }}', {{ date_col }}), date_trunc('{{ period_name }}', {{ now(tz) }}))
{%- endmacro %}
{%- macro round_timestamp(timestamp) -%} date_trunc('day', timestampadd(hour, 12, {{ timestamp }})) {%- endmacro %}

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

{%- macro get_base_dates(start_date=none, end_date=none, n_dateparts=none, datepart='day') -%}
{%- if start_date and end_date -%}
{{ date_spine(datepart, "'" ~ start_date ~ "'", "'" ~ end_date ~ "'") }}
{%- else -%}
{{ date_spine(datepart, 'timestampadd(' ~ datepart ~ ', -' ~ n_dateparts ~ ', ' ~ today() ~ ')', tomorrow()) }}
{%- endif -%}
{%- endmacro %}

{%- macro get_date_dimension(start_date, end_date) -%}
{%- set last_year = 'last_year_same_weekday' -%}
select
    date_day,
    {{ yesterday('date_day') }} as prior_date_day,
    {{ tomorrow('date_day') }} as next_date_day,
    last_year_date as prior_year_date_day,
    {{ last_year }} as prior_year_over_year_date_day,
    {{ day_of_week('date_day', isoweek=false) }} as day_of_week,
    {{ day_of_week('date_day') }} as day_of_week_iso,
    {{ day_name('date_day', short=false) }} as day_of_week_name,
    {{ day_name('date_day') }} as day_of_week_name_short,
    {{ day_of_month('date_day') }} as day_of_month,
    {{ day_of_year('date_day') }} as day_of_year,
    {{ week_start('date_day') }} as week_start_date,
    {{ week_end('date_day') }} as week_end_date,
    {{ week_start(last_year) }} as prior_year_week_start_date,
    {{ week_end(last_year) }} as prior_year_week_end_date,
    {{ week_of_year('date_day') }} as week_of_year,
    {{ iso_week_start('date_day') }} as iso_week_start_date,
    {{ iso_week_end('date_day') }} as iso_week_end_date,
    {{ iso_week_start(last_year) }} as prior_year_iso_week_start_date,
    {{ iso_week_end(last_year) }} as prior_year_iso_week_end_date,
    {{ iso_week_of_year('date_day') }} as iso_week_of_year,
    {{ week_of_year(last_year) }} as prior_year_week_of_year,
    {{ iso_week_of_year(last_year) }} as prior_year_iso_week_of_year,
    month(date_day) as month_of_year,
    {{ month_name('date_day', short=false) }} as month_name,
    {{ month_name('date_day') }} as month_name_short,
    trunc(date_day, 'month') as month_start_date,
    last_day(date_day) as month_end_date,
    trunc(last_year_date, 'month') as prior_year_month_start_date,
    last_day(last_year_date) as prior_year_month_end_date,
    quarter(date_day) as quarter_of_year,
    trunc(date_day, 'quarter') as quarter_start_date,
    date_sub(add_months(trunc(date_day, 'quarter'), 3), 1) as quarter_end_date,
    year(date_day) as year_number,
    trunc(date_day, 'year') as year_start_date,
    date_sub(add_months(trunc(date_day, 'year'), 12), 1) as year_end_date
from (
    select
        cast(date_day as date) as date_day,
        add_months(cast(date_day as date), -12) as last_year_date,
        date_sub(cast(date_day as date), 364) as {{ last_year }}
    from ({{ get_base_dates(start_date, end_date) }})
)
{%- endmacro %}

{#- The days of each fiscal year: it ends on the last day of the week nearest to the end of a month. `dates` is a model
    made by get_date_dimension(). -#}
{%- macro get_fiscal_year_dates(dates, year_end_month=12, week_start_day=1, shift_year=1) -%}
select
    days.date_day, years.fiscal_year_number, years.fiscal_year_start_date, years.fiscal_year_end_date,
    weeks.week_start_date, weeks.week_end_date,
    dense_rank() over (partition by years.fiscal_year_number order by weeks.week_start_date) as fiscal_week_of_year
from {{ dates }} as days
join (
    select
        fiscal_year_number, week_end_date as fiscal_year_end_date,
        date_add(lag(week_end_date) over (order by week_end_date), 1) as fiscal_year_start_date
    from (
        select
            year_number - {{ shift_year }} as fiscal_year_number, date_add(date_day, 6) as week_end_date,
            rank() over (
                partition by year_number order by abs(datediff(date_add(date_day, 6), month_end_date))
            ) as nearest
        from {{ dates }}
        where day_of_week = {{ week_start_day }} and month_of_year = {{ year_end_month }}
    )
    where nearest = 1
) as years on days.date_day between years.fiscal_year_start_date and years.fiscal_year_end_date
join (
    select date_day as week_start_date, date_add(date_day, 6) as week_end_date
    from {{ dates }}
    where day_of_week = {{ week_start_day }}
) as weeks on days.date_day between weeks.week_start_date and weeks.week_end_date
{%- endmacro %}

{#- Quarters of 13 weeks, in periods of 4, 5 and 4; week 53 belongs to the last. -#}
{%- macro get_fiscal_periods(dates, year_end_month, week_start_day, shift_year=1) -%}
select
    date_day, fiscal_year_number, week_start_date, week_end_date, fiscal_week_of_year,
    dense_rank() over (
        partition by quarter_number * 3 + period_of_quarter order by fiscal_week_of_year
    ) as fiscal_week_of_period,
    quarter_number * 3 + period_of_quarter as fiscal_period_number,
    quarter_number + 1 as fiscal_quarter_number,
    period_of_quarter as fiscal_period_of_quarter
from (
    select
        *, least(cast(floor((fiscal_week_of_year - 1) / 13) as int), 3) as quarter_number,
        case
            when fiscal_week_of_year = 53 or (fiscal_week_of_year - 1) % 13 >= 9 then 3
            when (fiscal_week_of_year - 1) % 13 >= 4 then 2
            else 1
        end as period_of_quarter
    from ({{ get_fiscal_year_dates(dates, year_end_month, week_start_day, shift_year) }})
)
{%- endmacro %}
