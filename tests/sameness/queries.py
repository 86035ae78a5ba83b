"""A grammar of queries that are meant to be right, over the tables of `tables`; one number makes one, always the same.

Functions and operators are those of `tests.analyser`; what letter case and backticks decide on is added here.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.analyser.expressions import Chance, aggregate, expression, over
from tests.sameness.tables import COLUMNS

_KEPT = ("bigint", "int", "string", "date", "timestamp", "double", "decimal(10,2)", "boolean")
# Expressions with names that can reach a value.
_NAMED = (
    "props.A", "props.a", "props['A']", "item.name", "item.Name", "item['name']", "parts.a", "parts[0].B",
    "to_json(struct(n as Price, status))", "to_json(struct(N, Status))", "to_json(named_struct('Key', n))",
    "to_json((n, Status))", "to_json(item)", "to_json(arrays_zip(nums, Tags))", "to_json(map('K', n))",
    "from_json(js, 'A int').A", "from_json(js, 'a int').a", "get_json_object(js, '$.A')", "get_json_object(js, '$.a')",
    "to_json(cast(item as struct<Name: string, P: double>))", "typeof(struct(n as X))", "json_tuple(js, 'A')",
    "transform(nums, X -> X + 1)", "to_json(transform(nums, x -> struct(x as Y)))", "aggregate(nums, 0, (acc, x) -> acc + x)",
    "filter(parts, p -> p.a > 1).b", "2024", "`2024`", "null", "`null`", "`date`", "date", "date '2024-01-02'", "current_date",
    "x'1F'", "r'a\\d'", "'a\\\\d'", "'a\\d'", '"q"', "'A' 'b'", "1L", "1.0", "1e1", "1.5BD", "n::string", "cast(n as string)",
    "try_cast(status as int)", "`left`", "left(status, 1)", "interval 1 hour", "interval '60' minute", "interval '1' day",
    "ts + interval 90 minutes", "day + interval 1 month", "extract(hour from ts)", "date_part('HOUR', ts)",
    "date_format(ts, 'yyyy-MM-dd HH:mm')", "date_format(ts, 'YYYY')", "to_date(status, 'yyyy-MM-dd')", "trunc(day, 'MM')",
    "date_trunc('hour', ts)", "n & 3 | 4", "n ^ 3", "not paid or paid", "not (paid or paid)", "n + 1 * 2", "(n + 1) * 2",
    "-n % 3", "status || n + 1", "n between 1 and 3 and paid", "status is not distinct from 'a'", "n <=> null", "~n", "n div 2",
    "status like 'a%'", "status like 'A%'", "status rlike 'a\\\\d'", "status ilike 'A%'", "n in (1, 2)", "n in (1, null)",
    "exists(nums, x -> x > 1)", "exists (select 1 from [[u]] where [[u]].id = n)", "(select max(n) from [[u]])",
)  # fmt: skip
_AGGREGATES = (
    "percentile_cont(0.5) within group (order by n)", "percentile_disc(0.5) within group (order by n)",
    "percentile_cont(0.25) within group (order by n desc)", "percentile(n, 0.5)", "approx_percentile(n, 0.5)", "median(n)",
    "mean(n)", "avg(n)", "first(n)", "first(n, true)", "first(n) ignore nulls", "last(n)", "any_value(n)", "first_value(n)",
    "max_by(n, ts)", "min_by(n, ts)", "max_by(struct(n as A, status), ts)", "to_json(max(struct(n as A, status as B)))",
    "count(n)", "count(distinct n)", "count(distinct n, status)", "count(distinct (n, status))", "count(*)", "count(1)",
    "count_if(n > 1)", "sum(n)", "sum(distinct n)", "sum(n) filter (where paid)", "try_sum(n)", "stddev(n)", "stddev_pop(n)",
    "stddev_samp(n)", "variance(n)", "var_pop(n)", "collect_list(n)", "collect_set(n)", "array_agg(n)", "mode(n)",
    "bool_or(paid)", "some(paid)", "every(paid)", "bit_or(n)", "bit_xor(n)", "listagg(status)", "string_agg(status, ',')",
    "listagg(status, ',') within group (order by n)", "max(props.A)", "max(props.a)", "sum(n | 4 & 2)", "sum((n | 4) & 2)",
    "kurtosis(n)", "skewness(n)", "corr(n, amount)", "covar_pop(n, amount)", "covar_samp(n, amount)", "regr_slope(n, amount)",
    "max(n::bigint)", "max(cast(n as bigint))", "sum(n + 1L)", "sum(n + 1)", "hash(max(n))", "max(item.name)", "max(item.price)",
)  # fmt: skip
_OVER = (
    "sum(n) over (partition by status order by id, ts)", "sum(n) over (order by id, ts rows between 1 preceding and current row)",
    "sum(n) over (order by id, ts range between unbounded preceding and current row)", "rank() over (order by n)",
    "rank() over (order by n desc)", "rank() over (order by n nulls last)", "dense_rank() over (order by n)",
    "row_number() over (partition by status order by n, id, ts)", "lag(n) over (order by id, ts)",
    "lead(n, 2) over (order by id, ts)", "lag(n, 1, 0) over (order by id, ts)", "first_value(n) ignore nulls over (order by id, ts)",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Query:
    """A query; `streams`: it keeps state over the stream `t`."""

    sql: str
    streams: bool


def query(seed: int, number: int) -> Query:
    """The query of a number: `t` stands in the text as `[[t]]`."""
    chance = Chance(random.Random(f"sameness {seed}/{number}"))
    if number % 3 == 2:
        return Query(_stateful(chance), streams=True)
    return Query(
        chance.any((_plain, _plain, _grouped, _grouped, _joined, _union, _nested, _pivot))(chance), streams=False
    )  # type: ignore[operator]


def _columns(name: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"`{c}`" if c in {"2024", "null", "left"} else c, t) for c, t in COLUMNS[name])


def _value(chance: Chance) -> str:
    if chance.maybe(0.55):
        return chance.any(_NAMED)
    return expression(chance, chance.any(_KEPT), _columns("t"), 1)


def _call(chance: Chance) -> str:
    return chance.any(_AGGREGATES) if chance.maybe(0.7) else aggregate(chance, _columns("t"))[0]


def _where(chance: Chance, share: float = 0.4) -> str:
    return f" where {expression(chance, 'boolean', _columns('t'), 1)}" if chance.maybe(share) else ""


def _items(chance: Chance) -> str:
    items = ["id", "ts"]
    for _ in range(chance.random.randint(1, 2)):
        value = over(chance, _columns("t"))[0] if chance.maybe(0.08) else _value(chance)
        value = chance.any(_OVER) if chance.maybe(0.12) else value
        items.append(f"{value} as {chance.name('c')}" if chance.maybe(0.8) else f"{value} {chance.name('C')}")
    if chance.maybe(0.15):
        items.append(chance.any(("n", "N", "t.status", "item.name", "status as Status", "*")))
    return ", ".join(items)


def _plain(chance: Chance) -> str:
    order = chance.any(
        (
            "",
            "",
            "",
            " order by id, ts",
            " order by n desc nulls last, id, ts limit 5",
            " order by 1 nulls last, 2 limit 3",
        )
    )
    return f"select {chance.any(('', '', '', 'distinct '))}{_items(chance)} from [[t]] t{_where(chance)}{order}"


def _grouped(chance: Chance) -> str:
    key, name = _value(chance), chance.name("k")
    calls = ", ".join(f"{_call(chance)} as {chance.name('a')}" for _ in range(chance.random.randint(1, 2)))
    having = f" having {chance.any(('count(*) > 1', 'max(n) is not null', 'sum(n) > 3'))}" if chance.maybe(0.25) else ""
    group = chance.any((key, name, "1", "all", f"grouping sets (({name}), ())", f"rollup ({name})", f"({key})"))
    return f"select {key} as {name}, {calls} from [[t]]{_where(chance)} group by {group}{having}"


def _joined(chance: Chance) -> str:
    kind = chance.any(
        (
            "join",
            "inner join",
            "left join",
            "left outer join",
            "right join",
            "full outer join",
            "left semi join",
            "left anti join",
            "cross join",
        )
    )
    shown = (
        "t.id, t.ts, t.n"
        if "semi" in kind or "anti" in kind
        else "t.id, t.ts, u.name, u.n as un, t.props.A as x, u.props.a as y"
    )
    on = chance.any((" on t.id = u.id", " on u.id = t.id", " using (id)", " using (id, n)", " on t.id = u.id and t.n > u.n", " on t.id <=> u.id",
                     " on t.id = u.id or t.n = u.n", " on (t.id = u.id) and not (t.n < u.n)"))  # fmt: skip
    if "cross" in kind:
        on = ""
    if "using" in on:
        shown = shown.replace("t.id", "id")
    return f"select {shown} from [[t]] t {kind} [[u]] u{on}{chance.any(('', '', ' where t.n > 2'))}"


def _union(chance: Chance) -> str:
    word = chance.any(("union all", "union", "union distinct", "except", "except all", "intersect", "minus"))
    return f"select id, n, status as s from [[t]]{_where(chance)} {word} select id, n, name from [[u]]"


def _nested(chance: Chance) -> str:
    inner = f"select id, ts, n as N, {_value(chance)} as V, struct(n as A, status) as st from [[t]]{_where(chance)}"
    outer = chance.any(
        (
            "*",
            "id, V",
            "q.V, q.st.A",
            "to_json(struct(*)) as j",
            "to_json(struct(N, v)) as j",
            "to_json(st) as j, st.a",
            "V, N",
        )
    )
    if chance.maybe(0.5):
        return f"with q as ({inner}) select {outer} from q"
    return f"select {outer} from ({inner}) {chance.any(('', 'as '))}q"


def _pivot(chance: Chance) -> str:
    return chance.any((
        "select * from (select id, status, n from [[t]]) pivot (sum(n) as S for status in ('a' as X, 'A' as Y, 'b'))",
        "select * from (select id, n, left(status, 1) as l, `2024` as Y from [[t]]) unpivot (val for name in (n as Nn, Y))",
        "select * from (select id, n, `2024` as Y from [[t]]) unpivot (val for name in (N, y))",
        "select id, k, v from [[t]] lateral view explode(props) e as k, v",
        "select id, c from [[t]] lateral view outer explode(nums) e as c where c > 0",
        "select id, pos, col from [[t]], lateral posexplode(nums)",
        "select stack(2, n, id, id, n) as (X, y) from [[t]]",
        "select id, inline(parts) from [[t]]",
        "select * except (js, body) from [[t]]",
        "select x, y from values (1, 'a'), (2, 'B') as v(x, Y)",
    ))  # fmt: skip


def _stateful(chance: Chance) -> str:
    if chance.maybe(0.12):
        return f"select distinct ts, {_value(chance)} as k from [[t]]{_where(chance)}"
    window = chance.any(
        (
            "window(ts, '1 hour')",
            "window(ts, '60 minutes')",
            "window(ts, '1 hour', '30 minutes')",
            "session_window(ts, '5 minutes')",
        )
    )
    calls = ", ".join(f"{_call(chance)} as {chance.name('a')}" for _ in range(chance.random.randint(1, 3)))
    having = f" having {chance.any(('count(*) > 1', 'max(n) is not null'))}" if chance.maybe(0.2) else ""
    if chance.maybe(0.25):
        return f"select {window} as w, {calls} from [[t]] t{_where(chance)} group by {window}{having}"
    if chance.maybe(0.2):
        source = f"(select *, {_value(chance)} as k from [[t]]{_where(chance)}) q"
        return f"select {window}.start as w, k, {calls} from {source} group by {window}, k{having}"
    key = _value(chance)
    return (
        f"select {window}.start as w, {key} as k, {calls} from [[t]] t{_where(chance)} group by {window}, {key}{having}"
    )
