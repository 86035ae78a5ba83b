{% snapshot kinds_history %}
{{ config(target_schema='history', unique_key='kind', strategy='check', check_cols=['orders']) }}
select * from {{ ref('by_kind') }}
{% endsnapshot %}
