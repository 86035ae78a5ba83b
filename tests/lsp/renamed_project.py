"""A project with a name of each kind in each place where one can be, for renaming them."""

from pathlib import Path

FILES = {
    "project.yml": """name: shop
target: dev
targets:
  dev: {catalog: {type: sqlite, name: lake, path: .engine/lake}, schema: shop}
vars:
  least: 10
  hour: "{{ var('least') }}"
""",
    "selectors.yml": """selectors:
  - name: nightly
    description: orders and what reads them
    definition: {union: ["+orders+", "source:shop.raw", {method: fqn, value: hourly}, one_hour]}
""",
    "sources/shop.yml": """sources:
  - name: shop
    tables:
      - name: raw
        format: json
        path: landing/raw
        schema: "id bigint, kind string, amount double, data struct<at: timestamp, hour: int>, tags array<string>"
        data_tests:
          - row_count_matches: {to: orders, within: 1000000}
      - name: kinds
        format: csv
        path: landing/kinds
        schema: kind string, label string
""",
    "macros/tools.sql": """{% macro big(amount) %}{{ amount }} > {{ var('least') }}{% endmacro %}
{% macro flag(amount) %}case when {{ big(amount) }} then 1 else 0 end{% endmacro %}
{% macro test_is_even(model, column_name) %}
select {{ column_name }} from {{ model }} where {{ column_name }} % 2 = 1
{% endmacro %}
""",
    "models/orders.sql": """/*---
streams:
  shop.raw: {watermark: {column: at, as: data.at, delay: 1 hour}, dedup: id}
partition_by: [day(at), kind]
columns:
  - name: id
    data_tests: [not_null, {is_even: {name: ids_are_even, where: "kind <> 'id'"}}]
  - name: kind
    description: the kind
expectations:
  - {name: positive, check: "amount > 0 and kind <> 'amount'", on_fail: warn}
---*/
select id, r.kind, amount, at, data.hour as hour_of_day, tags
from {{ source('shop', 'raw') }} as r
where {{ big('r.amount') }}
""",
    "models/hourly.sql": """/*---
streams: {orders: {watermark: at delay 1 hour}}
windows: {hour: "tumbling(at, 1 hour)"}
columns: {orders: {tests: [{expression: {expression: ">= 1"}}]}}
data_tests:
  - row_count_matches: {to: ref('orders'), within: 1000}
---*/
select hour.start as hour_start, hour, kind, count(*) as orders
from {{ ref('orders') }}
where orders.amount > 0
group by hour, kind
""",
    "models/marts/report.sql": """/*---
materialized: table
columns:
  label: {tests: [{relationships: {to: kinds, field: kind}}]}
---*/
with recent as (
    select o.id, o.kind, o.amount * 2 as twice, o.amount from {{ ref('orders') }} as o
),
both(id, label, twice) as (
    select id, kind, twice from recent
    union all
    select other.id, other.kind as named, -1.0 from {{ ref('orders') }} as other
),
tagged as (
    select recent.id, tag from recent lateral view explode(array('a', 'b')) t as tag
)
select
    b.label,
    k.label as title,
    {{ flag('sum(b.twice)') }} as many,
    count(distinct tagged.tag) as orders,
    max(inner_amount) as `top amount`,
    b.id % 2 as odd
from both as b
left join {{ ref('kinds') }} k on k.kind = b.label
join tagged on tagged.id = b.id
join (select id, max(amount) as inner_amount from recent group by id) as sub on sub.id = b.id
where exists (select 1 from recent where recent.id = b.id and twice > {{ var('least') }})
group by b.label, k.label, odd
having many > 0
order by title, orders desc
""",
    "models/marts/kinds.sql": """/*---
materialized: table
unique_key: [kind]
history: true
check: [label]
---*/
select kind, upper(label) as label from {{ source('shop.kinds') }}
""",
    "models/marts/all_of_it.sql": """/*---
materialized: ephemeral
---*/
with part as (select label, title as name, orders from {{ ref('report') }})
select * from part
""",
    "models/board.yml": """exposures:
  - name: board
    type: dashboard
    owner: {name: ops}
    depends_on: [ref('report'), "source('shop', 'kinds')", hourly]
""",
    "tests/no_lost_orders.sql": """{{ config(severity='warn') }}
with hours as (select kind, sum(orders) as n from {{ ref('hourly') }} group by kind)
select h.kind from hours h join {{ ref('orders') }} o on o.kind = h.kind where h.n < {{ var('least') }}
""",
    "tests/fixtures/some.csv": "id,kind,amount,at\n1,a,20,2024-01-01 10:00:00\n",
    "tests/hourly.yml": """unit_tests:
  - name: one_hour
    model: hourly
    steps:
      - given:
          orders: |
            id, kind, amount, at
            1,  a,    20,     2024-01-01 10:00:00
      - given: {orders: {fixture: some}}
      - flush
    expect: [{kind: a, orders: 2}]
  - name: dbt_form
    model: hourly
    overrides: {vars: {least: 1}, macros: {big: "true"}}
    given:
      - input: ref('orders')
        rows: [{id: 1, kind: a, amount: 5, at: 2024-01-01 10:00:00}]
    expect: {rows: []}
  - name: raw_rows
    model: orders
    given:
      - {input: "source('shop', 'raw')", rows: [{id: 1, kind: a, amount: 50, data: {at: 2024-01-01 10:00:00}}]}
    expect: {rows: [{id: 1, kind: a, amount: 50.0}]}
""",
}


def renamed_project(root: Path) -> Path:
    """Write the project."""
    for file, text in FILES.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
