"""A grammar of batch queries: each is made from parts whose columns and types are known.

A table stands in the text as `[[name]]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.analyser.expressions import Chance, Columns, aggregate, expression, over, plain
from tests.analyser.tables import TABLES, TYPES

KEPT = ("bigint", "int", "string", "date", "timestamp", "double", "decimal(10,2)", "boolean")


@dataclass(frozen=True, slots=True)
class Part:
    """A query: its SQL, and the names and types of its columns as far as they are meant to be."""

    sql: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class From:
    """What a SELECT reads: the text behind FROM, and the columns as they can be written."""

    sql: str
    columns: tuple[tuple[str, str], ...]


def statement(chance: Chance) -> str:
    """A query without pipes."""
    if chance.maybe(0.12):
        return _with_cte(chance)
    part = _part(chance, 2)
    sql = part.sql
    if chance.maybe(0.1):
        limit = chance.any(("1", "10", "5 offset 2"))
        sql = f"{sql} limit {limit}" if " limit " not in sql else sql
    return sql


def _with_cte(chance: Chance) -> str:
    inner, name = _part(chance, 1), chance.name("c")
    start = f"with {name} as ({inner.sql})"
    if chance.maybe(0.3):
        named = ", ".join(f"k{i}" for i in range(len(inner.columns) + chance.fault(0.4)))
        start = f"with {name}({named}) as ({inner.sql})"
        inner = Part(inner.sql, tuple((f"k{i}", t) for i, (_, t) in enumerate(inner.columns)))
    known = From(name, tuple((c, t) for c, t in inner.columns))
    if chance.maybe(0.3):
        second, other = _over_from(chance, known), chance.name("c")
        start, known = f"{start}, {other} as ({second.sql})", From(other, second.columns)
    return f"{start} {_over_from(chance, known).sql}"


def _part(chance: Chance, depth: int) -> Part:
    roll = chance.random.random()
    if depth > 0 and roll < 0.12:
        return _set_operation(chance, depth - 1)
    if roll < 0.16:
        return _pivot(chance)
    if roll < 0.21:
        return _rare(chance)
    return _over_from(chance, _from(chance, depth))


def _over_from(chance: Chance, given: From) -> Part:
    kinds: list[Callable[[Chance, From], Part]] = [_plain, _plain, _grouped, _grouped, _grouped, _windowed, _distinct]
    return chance.random.choice(kinds)(chance, given)


# --- what is read


def _from(chance: Chance, depth: int) -> From:
    roll = chance.random.random()
    if roll < 0.6 or depth <= 0:
        return _one(chance, depth)
    if roll < 0.68:
        return _lateral(chance, _one(chance, depth))
    return _join(chance, depth)


def _one(chance: Chance, depth: int) -> From:
    """A table or a subquery, with or without an alias."""
    if depth > 0 and chance.maybe(0.25):
        part, alias = _part(chance, depth - 1), chance.name("q")
        prefix = f"{alias}." if chance.maybe(0.4) else ""
        return From(f"({part.sql}) {alias}", tuple((f"{prefix}{n}", t) for n, t in part.columns))
    if chance.maybe(0.04):
        return From("values (1, 'a', date'2024-01-01'), (2, 'b', null) as v(x, y, z)",
                    (("x", "int"), ("y", "string"), ("z", "date")))  # fmt: skip
    name = chance.any(tuple(TABLES))
    if chance.maybe(0.4):
        alias = chance.name("t")
        return From(
            f"[[{name}]] {alias}", tuple((f"{alias}.{n}" if chance.maybe(0.5) else n, t) for n, t in TABLES[name])
        )
    return From(f"[[{name}]]", TABLES[name])


def _qualified(chance: Chance, depth: int) -> tuple[str, From]:
    alias = chance.name("j")
    if depth > 0 and chance.maybe(0.25):
        part = _part(chance, depth - 1)
        return alias, From(f"({part.sql}) {alias}", tuple((f"{alias}.{n}", t) for n, t in part.columns))
    name = chance.any(tuple(TABLES))
    return alias, From(f"[[{name}]] {alias}", tuple((f"{alias}.{n}", t) for n, t in TABLES[name]))


def _join(chance: Chance, depth: int) -> From:
    (_, left), (_, right) = _qualified(chance, depth - 1), _qualified(chance, depth - 1)
    kind = chance.any(
        ("join", "join", "left join", "right join", "full join", "cross join", "left semi join", "left anti join")
    )
    both = (*left.columns, *right.columns)
    visible = left.columns if "semi" in kind or "anti" in kind else both
    shared = [
        n.split(".")[1]
        for n, t in left.columns
        for m, u in right.columns
        if n.split(".")[1] == m.split(".")[1] and t == u
    ]
    if kind == "cross join":
        return From(f"{left.sql} {kind} {right.sql}", both)
    if shared and chance.maybe(0.2):
        name = chance.any(shared) if not chance.fault(0.2) else "nope"
        merged = tuple((n.split(".")[1] if n.endswith(f".{name}") else n, t) for n, t in visible)
        return From(f"{left.sql} {kind} {right.sql} using ({name})", tuple(dict.fromkeys(merged)))
    condition = matched(chance, left.columns, right.columns)
    if chance.fault(0.1):
        condition = f"{condition} and {aggregate(chance, both)[0]} > 1"
    sql = f"{left.sql} {kind} {right.sql} on {condition}"
    if chance.fault(0.24):
        # Names without the table in front: ambiguous if both sides have them.
        return From(sql, tuple((n.split(".")[1], t) for n, t in visible))
    names = [n.split(".")[1].lower() for n, _ in visible]
    alone = tuple(
        (n.split(".")[1] if names.count(n.split(".")[1]) == 1 and chance.maybe(0.3) else n, t) for n, t in visible
    )
    return From(sql, alone)


def matched(chance: Chance, left: Columns, right: Columns) -> str:
    pairs = [(n, m) for n, t in left for m, u in right if t == u and t in KEPT]
    if not pairs or chance.maybe(0.1):
        return expression(chance, "boolean", (*left, *right), 1)
    n, m = chance.random.choice(pairs)
    more = f" and {expression(chance, 'boolean', (*left, *right), 1)}" if chance.maybe(0.25) else ""
    return f"{n} = {m}{more}"


def _lateral(chance: Chance, given: From) -> From:
    kind = chance.any(("array<string>", "array<int>", "map<string,int>", "array<struct<a:int,b:string>>"))
    made = expression(chance, kind, given.columns, 1)
    view, a, b = chance.name("g"), chance.name("e"), chance.name("e")
    if kind == "map<string,int>":
        sql, columns = f"lateral view explode({made}) {view} as {a}, {b}", ((a, "string"), (b, "int"))
    elif kind.startswith("array<struct") and chance.maybe(0.5):
        sql, columns = f"lateral view inline({made}) {view} as {a}, {b}", ((a, "int"), (b, "string"))
    elif chance.maybe(0.3):
        sql, columns = f"lateral view posexplode({made}) {view} as {a}, {b}", ((a, "int"), (b, kind[6:-1]))
    else:
        word = chance.any(("lateral view explode", "lateral view outer explode"))
        sql, columns = f"{word}({made}) {view} as {a}", ((a, kind[6:-1]),)
    if chance.fault(0.2):
        sql = sql.rsplit(",", 1)[0] if ", " in sql.rsplit(" as ", 1)[1] else f"{sql}, extra"
    return From(f"{given.sql} {sql}", (*given.columns, *((n, t) for n, t in columns if t in TYPES)))


# --- SELECT


def _plain(chance: Chance, given: From) -> Part:
    if chance.maybe(0.08) and "." not in "".join(n for n, _ in given.columns) and " join " not in given.sql:
        return Part(f"select * from {given.sql}{_where(chance, given)}{_order(chance, given.columns)}", given.columns)
    items = [item_of(chance, given) for _ in range(chance.random.randint(1, 4))]
    listed, columns = listed_items(chance, items)
    order = _order(chance, given.columns)
    return Part(f"select {listed} from {given.sql}{_where(chance, given)}{order}", columns)


def item_of(chance: Chance, given: From) -> tuple[str, str]:
    if chance.maybe(0.3):
        return chance.random.choice(given.columns)
    if chance.maybe(0.06):
        return _scalar(chance, given), "bigint"
    kind = chance.any(TYPES) if chance.maybe(0.4) else chance.any(KEPT)
    return expression(chance, kind, given.columns, chance.random.randint(1, 2)), kind


def listed_items(chance: Chance, items: list[tuple[str, str]]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The items of a SELECT with their names."""
    texts, columns, taken = [], [], set()
    for text, kind in items:
        bare = text.rsplit(".", 1)[-1]
        simple = bare.isidentifier() and text.replace(".", "").isidentifier()
        if simple and bare.lower() not in taken and bare.lower() not in {"null", "true", "false", "current_date"}:
            texts.append(text)
            columns.append((bare, kind))
            taken.add(bare.lower())
        else:
            name = chance.name("c")
            texts.append(f"{text} as {name}" if chance.maybe(0.9) else f"{text} {name}")
            columns.append((name, kind))
            taken.add(name)
    return ", ".join(texts), tuple(columns)


def _where(chance: Chance, given: From) -> str:
    if chance.maybe(0.6):
        return ""
    if chance.fault(0.12):
        return f" where {aggregate(chance, given.columns)[0]} > 1"
    if chance.fault(0.08):
        return f" where {over(chance, given.columns)[0]} = 1"
    if chance.fault(0.08):
        return f" where {expression(chance, chance.any(TYPES), given.columns, 1)}"
    if chance.maybe(0.2):
        return f" where {_subquery_condition(chance, given)}"
    return f" where {expression(chance, 'boolean', given.columns, 2)}"


def _subquery_condition(chance: Chance, given: From) -> str:
    name, alias = chance.any(tuple(TABLES)), chance.name("s")
    inner = tuple((f"{alias}.{n}", t) for n, t in TABLES[name])
    pairs = [(n, m, t) for n, t in given.columns for m, u in inner if t == u and t in KEPT]
    if not pairs:
        return expression(chance, "boolean", given.columns, 1)
    outer, own, _ = chance.random.choice(pairs)
    extra = f", {alias}.day" if name != "customers" and chance.fault(0.4) else ""
    if chance.fault(0.2):
        own = f"{alias}.{chance.any([n for n, _ in TABLES[name]])}"
    forms = (
        f"{outer} in (select {own}{extra} from [[{name}]] {alias})",
        f"{outer} not in (select {own} from [[{name}]] {alias} where {expression(chance, 'boolean', inner, 1)})",
        f"exists (select 1 from [[{name}]] {alias} where {own} = {outer})",
        f"not exists (select 1 from [[{name}]] {alias} where {own} = {outer} and {expression(chance, 'boolean', inner, 1)})",
        f"{outer} = (select max({own}){extra} from [[{name}]] {alias})",
        f"{outer} > (select min({own}) from [[{name}]] {alias} where {expression(chance, 'boolean', inner, 1)})",
    )
    return chance.any(forms)


def _scalar(chance: Chance, given: From) -> str:
    name, alias = chance.any(tuple(TABLES)), chance.name("s")
    inner = tuple((f"{alias}.{n}", t) for n, t in TABLES[name])
    pairs = [(n, m) for n, t in given.columns for m, u in inner if t == u and t in KEPT]
    count = "count(*)" if not chance.fault(0.2) else f"{alias}.{chance.any([n for n, _ in TABLES[name]])}"
    if not pairs or chance.maybe(0.4):
        return f"(select {count} from [[{name}]] {alias})"
    outer, own = chance.random.choice(pairs)
    sign = "=" if not chance.fault(0.4) else ">"
    return f"(select {count} from [[{name}]] {alias} where {own} {sign} {outer})"


def _order(chance: Chance, columns: Columns) -> str:
    if chance.maybe(0.85):
        return ""
    key = expression(chance, plain(chance), columns, 1)
    if chance.maybe(0.2):
        key = "1"
    if chance.fault(0.2):
        key = chance.any(("0", "99", "nope"))
    return f" {chance.any(('order by', 'order by', 'sort by'))} {key}{chance.any(('', ' desc', ' nulls last'))}"


def _distinct(chance: Chance, given: From) -> Part:
    items = [
        item_of(chance, given) if chance.maybe(0.4) else chance.random.choice(given.columns)
        for _ in range(chance.random.randint(1, 3))
    ]
    listed, columns = listed_items(chance, items)
    order = f" order by {chance.random.choice(columns)[0]}" if chance.maybe(0.2) else ""
    return Part(f"select distinct {listed} from {given.sql}{_where(chance, given)}{order}", columns)


def _windowed(chance: Chance, given: From) -> Part:
    items = [chance.random.choice(given.columns) for _ in range(chance.random.randint(0, 2))]
    items += [over(chance, given.columns) for _ in range(chance.random.randint(1, 2))]
    if chance.maybe(0.1):
        text, kind = over(chance, given.columns)
        items.append((f"coalesce({text}, {expression(chance, kind, given.columns, 0)})", kind))
    listed, columns = listed_items(chance, items)
    return Part(f"select {listed} from {given.sql}{_where(chance, given)}", columns)


# --- GROUP BY


def _grouped(chance: Chance, given: From) -> Part:
    keys = [group_key(chance, given) for _ in range(chance.random.choice((0, 1, 1, 1, 2, 2, 3)))]
    results = [aggregate(chance, given.columns) for _ in range(chance.random.randint(1, 2))]
    if chance.maybe(0.2):
        results.append(_computed(chance, given, keys))
    if chance.fault(0.24):
        results.append(chance.random.choice(given.columns))
    if chance.fault(0.08):
        results.append((f"sum({results[0][0]})", "bigint"))
    if keys and chance.maybe(0.08):
        results.append((f"sum(count(*)) over (order by {keys[0][0]})", "bigint"))
    listed, columns = listed_items(chance, [*keys, *results])
    where = _where(chance, given)
    group, sets = _group_by(chance, given, keys, columns)
    if sets and chance.maybe(0.4):
        listed = f"{listed}, {chance.any((f'grouping({keys[0][0]})', 'grouping_id()'))} as {chance.name('g')}"
    having = _having(chance, given, keys, columns)
    order = f" order by {chance.any([columns[0][0], '1', columns[-1][0]])}" if chance.maybe(0.12) else ""
    return Part(f"select {listed} from {given.sql}{where}{group}{having}{order}", columns)


def group_key(chance: Chance, given: From) -> tuple[str, str]:
    if chance.maybe(0.7):
        return chance.random.choice(given.columns)
    kind = plain(chance)
    return expression(chance, kind, given.columns, 1), kind


def _computed(chance: Chance, given: From, keys: list[tuple[str, str]]) -> tuple[str, str]:
    """An expression over aggregates and keys."""
    made = [aggregate(chance, given.columns) for _ in range(2)]
    kind = chance.any(KEPT)
    return expression(chance, kind, [*made, *keys], 2), kind


def _group_by(chance: Chance, given: From, keys: list[tuple[str, str]], columns: Columns) -> tuple[str, bool]:
    if not keys:
        return "", False
    texts = [text for text, _ in keys]
    if chance.fault(0.16):
        texts = texts[:-1] or [chance.random.choice(given.columns)[0]]
    listed = ", ".join(texts)
    wrong = 1 if chance.fault(0.2) else 0
    form = chance.any((*("expression",) * 3, "alias", "ordinal", "all", "rollup", "cube", "sets", "with"))
    made = {
        "expression": listed,
        "alias": ", ".join(name for name, _ in columns[: len(keys)]),
        "ordinal": ", ".join(str(i + 1 + wrong) for i in range(len(keys))),
        "all": "all",
        "rollup": f"rollup({listed})",
        "cube": f"cube({listed})",
        "sets": f"grouping sets (({listed}), ({texts[0]}), ())",
        "with": f"{listed} with {chance.any(('rollup', 'cube'))}",
    }
    return f" group by {made[form]}", form in {"rollup", "cube", "sets", "with"}


def _having(chance: Chance, given: From, keys: list[tuple[str, str]], columns: Columns) -> str:
    if chance.maybe(0.8):
        return ""
    if chance.fault(0.2):
        return f" having {over(chance, given.columns)[0]} > 1"
    if chance.fault(0.2):
        return f" having {chance.random.choice(given.columns)[0]} is not null"
    results = [column for column in columns[len(keys) :] if column[0].startswith("c")]
    if results and chance.maybe(0.4):
        name, kind = chance.random.choice(results)
        return f" having {name} is not null and {expression(chance, 'boolean', [(name, kind)], 1)}"
    return f" having {expression(chance, 'boolean', [*keys, aggregate(chance, given.columns)], 1)}"


# --- other forms


def _set_operation(chance: Chance, depth: int) -> Part:
    width = chance.random.randint(1, 3)
    kinds = [chance.any(KEPT) for _ in range(width)]
    sides, columns = [], ()
    for side in range(2):
        given = _one(chance, depth)
        wanted = kinds[:-1] if side and width > 1 and chance.fault(0.2) else kinds
        items = [
            (expression(chance, chance.any(TYPES) if chance.fault(0.12) else kind, given.columns, 1), kind)
            for kind in wanted
        ]
        listed, named = listed_items(chance, items)
        columns = columns or named
        sides.append(f"select {listed} from {given.sql}{_where(chance, given)}")
    word = chance.any(
        ("union all", "union all", "union", "except", "intersect", "minus", "union distinct", "except all")
    )
    order = f" order by {columns[0][0]}" if chance.maybe(0.15) else ""
    return Part(f"{sides[0]} {word} {sides[1]}{order}", columns)


def _pivot(chance: Chance) -> Part:
    call = chance.any(
        ("sum(amount)", "count(*)", "max(ts)", "avg(price)", "amount" if chance.fault(0.4) else "min(day)")
    )
    column = "status" if not chance.fault(0.4) else chance.any(("tags", "nope"))
    sql = f"select * from (select customer, status, amount, price, ts, day from [[orders]]) pivot ({call} for {column} in ('a', 'b'))"
    if chance.maybe(0.4):
        sql = f"select customer, what, value from (select customer, amount, {chance.any(('price', 'id', 'id'))} as other from [[orders]]) unpivot (value for what in (amount, other))"
    return Part(sql, (("customer", "int"),))


def _rare(chance: Chance) -> Part:
    """Forms of SQL that the rest of the grammar does not make, over tables and expressions of its own."""
    name, other = chance.any(tuple(TABLES)), chance.any(tuple(TABLES))
    columns = tuple((f"r.{n}", t) for n, t in TABLES[name])
    both = (*columns, *((f"u.{n}", t) for n, t in TABLES[other]))
    key, kind = chance.random.choice(columns)
    bare = key[2:]
    number, truth = expression(chance, "int", columns, 1), expression(chance, "boolean", columns, 1)
    forms = (
        f"select r.* except ({bare}), {number} as x from [[{name}]] r",
        f"select struct(r.*) as s, {key} as x from [[{name}]] r where {truth}",
        f"select x.{bare}, x.y from (select r.*, {number} as y from [[{name}]] r) x",
        f"select {key} as k, sum(n) over w as s from (select {key}, {number} as n from [[{name}]] r) r window w as (order by {key})",
        f"select {key} as k, l.x from [[{name}]] r, lateral (select {expression(chance, 'int', columns, 1)} as x) l",
        f"select {key} as k, l.m from [[{name}]] r, lateral (select max(u.{bare}) as m from [[{name}]] u where u.{bare} = {key}) l",
        f"select {key} as k, u.id as i from [[{name}]] r, [[{other}]] u where {expression(chance, 'boolean', both, 1)}",
        f"select {key} as k, count(*) as n from [[{name}]] r natural join [[{other}]] u group by {key}",
        f"select {key} as k from [[{name}]] tablesample (10 percent) r where {truth}",
        f"select {key} as k, row_number() over (partition by {key} order by {number}) as n from [[{name}]] r order by n",
        f"select {key} as k, count(*) as n from [[{name}]] r group by {key} order by count(*) desc, {number}",
        f"select {key} as k, {number} as v from [[{name}]] r order by k, v, {expression(chance, plain(chance), columns, 1)}",
        f"select case {key} when {expression(chance, kind, columns, 1)} then 1 when null then 2 end as x from [[{name}]] r",
        f"select {key} as k, k as j from [[{name}]] r where {key} is not null and ({truth})",
        f"select {number} as a, a + 1 as b, a || 'x' as c, {expression(chance, 'int', [('a', 'int')], 1)} as d from [[{name}]] r",
        f"select k, n from (select {key} as k, count(*) as n from [[{name}]] r group by all) where n > {chance.any(('1', 'k'))}",
        f"select max(struct({key}, {number})) as m, max_by({key}, {number}) as b from [[{name}]] r",
        f"select {key} as k, exists(select 1 from [[{other}]] u where {expression(chance, 'boolean', both, 1)}) as e from [[{name}]] r",
        f"select explode(array({key}, {key})) as e, {number} as v from [[{name}]] r",
        f"select {key} as k, explode(map(1, {key})) as (a, b) from [[{name}]] r",
        f"select stack(2, {number}, {number}, 1, 2) as (a, b) from [[{name}]] r",
        f"select {number} as k from [[{name}]] r intersect select {expression(chance, 'int', columns, 1)} from [[{name}]] r",
        f"select sum({number}) over (order by {key} rows between {chance.any(('1', 'unbounded'))} preceding and 1 following) as x from [[{name}]] r",
        f"select sum({number}) over (order by {key} range between {chance.any(('1', 'interval 1 day', 'unbounded'))} preceding and current row) as x from [[{name}]] r",
        f"select transform(array({key}), (x, i) -> {expression(chance, 'int', (*columns, ('i', 'int')), 1)}) as x from [[{name}]] r",
        f"select {key} as k, (select count(*) from [[{other}]] u where {expression(chance, 'boolean', both, 1)}) as n from [[{name}]] r",
    )
    form = chance.any(forms)
    return Part(form, tuple((n, t) for n, t in (("k", kind),) if " as k" in form and t in TYPES) or (("x", "int"),))
