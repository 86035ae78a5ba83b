"""A grammar of streaming queries over the relations of the oracle.

A query is made from parts whose columns and types are known, so that almost all are correct SQL; whether they
are correct streaming queries is left to chance. One number makes one query, always the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

MODES = ("append", "append", "append", "update", "update", "complete")
STREAMS = ("wa", "wa", "wa", "wb", "wb", "sa", "sb")
COLUMNS = (("id", "int"), ("v", "int"), ("ts", "ts"), ("s", "str"))
LENGTHS = ("'5 minutes'", "'10 minutes'", "'5 minutes', '1 minute'", "'10 minutes', '5 minutes', '1 minute'")

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Part:
    """A query: its SQL, and the names and types of its columns (int, ts, str, win, ses)."""

    sql: str
    columns: Columns


def query(seed: int, number: int) -> tuple[str, str]:
    """The query of a number, and its output mode."""
    made = _Grammar(random.Random(f"{seed}/{number}"))
    mode = made.any(MODES)
    return made.statement(), mode


class _Grammar:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names = 0
        self.budget = 4

    def any(self, options: object) -> str:
        return self.chance.choice(list(options))  # type: ignore[call-overload, no-any-return]

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    # --- whole queries

    def statement(self) -> str:
        if self.maybe(0.15):
            return self.with_cte()
        part = self.part(2)
        sql = part.sql
        if self.maybe(0.05):
            sql = f"select * from ({sql}) order by {part.columns[0][0]}"
        if self.maybe(0.04):
            sql = f"select * from ({sql}) limit {self.any((1, 2))}"
        if self.maybe(0.01):
            sql = f"select * from ({sql}) limit 1 offset 1"
        return sql

    def with_cte(self) -> str:
        inner, name = self.part(1), self.name("c")
        known = [(name, inner.columns)]
        outer = self.over(name, inner.columns)
        if self.maybe(0.25):
            columns = ", ".join(n for n, _ in inner.columns)
            outer = Part(f"select {columns} from {name} union all select {columns} from {name}", inner.columns)
        return f"with {known[0][0]} as ({inner.sql}) {outer.sql}"

    def part(self, depth: int) -> Part:
        kinds: list[Callable[[int], Part]] = [self.plain, self.aggregate, self.aggregate, self.aggregate, self.join]
        if self.maybe(0.15):
            kinds = [self.pivoted, self.structured, self.exploded, self.correlated, self.nested_cte]
        elif depth > 0:
            kinds += [self.join, self.union, self.distinct, self.aggregate, self.set_operation, self.three]
        return self.chance.choice(kinds)(depth)

    def source(self, depth: int) -> tuple[str, Columns]:
        """A relation for FROM: a table, or a query in brackets."""
        if depth > 0 and self.budget > 0 and self.maybe(0.35):
            self.budget -= 1
            part = self.part(depth - 1)
            return f"({part.sql})", part.columns
        if self.maybe(0.06):
            return "ba", COLUMNS
        if self.maybe(0.03):
            return "sa tablesample (50 percent)", COLUMNS
        return self.any(STREAMS), COLUMNS

    def over(self, name: str, columns: Columns) -> Part:
        """A query over a relation that is known."""
        kind = self.chance.choice([self.plain_over, self.aggregate_over, self.aggregate_over, self.distinct_over])
        return kind(name, columns)

    # --- one relation

    def plain(self, depth: int) -> Part:
        return self.plain_over(*self.source(depth))

    def plain_over(self, source: str, columns: Columns) -> Part:
        items = list(self.some(columns, 2))
        out: list[tuple[str, str, str]] = [(n, n, t) for n, t in items]
        times = [n for n, t in columns if t == "ts"]
        if times and self.maybe(0.35):
            out.append((f"window({self.time(times)}, {self.any(LENGTHS)})", self.name("w"), "win"))
        elif times and self.maybe(0.05):
            out.append((f"session_window({self.any(times)}, '5 minutes')", self.name("w"), "ses"))
        if times and self.maybe(0.2):
            out.append((self.time(times), self.name("t"), "ts"))
        if self.maybe(0.02):
            out.append(("row_number() over (order by 1)", self.name("n"), "int"))
        if self.maybe(0.02):
            out.append(("monotonically_increasing_id()", self.name("n"), "int"))
        windows = [n for n, t in columns if t == "win"]
        if windows and self.maybe(0.3):
            out.append((f"{self.any(windows)}.start", self.name("t"), "ts"))
        return self.select(out, f"{source}{self.where(columns)}")

    def select(self, items: list[tuple[str, str, str]], rest: str, start: str = "select") -> Part:
        self.chance.shuffle(items)
        seen: dict[str, tuple[str, str, str]] = {}
        for item in items:
            seen.setdefault(item[1], item)
        listed = ", ".join(e if e == n else f"{e} as {n}" for e, n, _ in seen.values())
        return Part(f"{start} {listed} from {rest}", tuple((n, t) for _, n, t in seen.values()))

    def some(self, columns: Columns, least: int) -> Columns:
        count = self.chance.randint(min(least, len(columns)), len(columns))
        chosen = self.chance.sample(range(len(columns)), count)
        return tuple(columns[i] for i in sorted(chosen))

    def time(self, names: list[str]) -> str:
        name = self.any(names)
        if self.maybe(0.8):
            return name
        return self.any((f"cast({name} as timestamp)", f"date_trunc('hour', {name})", f"{name} + interval 1 hour"))

    def where(self, columns: Columns) -> str:
        if self.maybe(0.7):
            return ""
        numbers = [n for n, t in columns if t == "int"]
        if not numbers:
            return ""
        name = self.any(numbers)
        forms = [f"{name} > 0", f"{name} in (select id from ba)", f"{name} is not null"]
        if self.maybe(0.1):
            forms = [f"{name} in (select id from sb)", f"{name} < (select max(v) from ba)"]
        return f" where {self.any(forms)}"

    # --- aggregates

    def aggregate(self, depth: int) -> Part:
        return self.aggregate_over(*self.source(depth))

    def aggregate_over(self, source: str, columns: Columns) -> Part:
        keys = self.keys(columns)
        results = [(self.result(columns), self.name("a"), "int") for _ in range(self.chance.randint(1, 2))]
        rest = f"{source}{self.where(columns)}"
        form = self.any(("expression", "expression", "alias", "ordinal", "all", "rollup"))
        if not keys:
            return self.select(results, rest)
        having = " having count(*) > 0" if self.maybe(0.1) else ""
        listed = ", ".join([*(f"{e} as {n}" for e, n, _ in keys), *(f"{e} as {n}" for e, n, _ in results)])
        grouped = {
            "expression": ", ".join(e for e, _, _ in self.safe(keys)),
            "alias": ", ".join(n for _, n, _ in keys),
            "ordinal": ", ".join(str(i + 1) for i in range(len(keys))),
            "all": "all",
            "rollup": f"rollup ({', '.join(e for e, _, _ in keys)})",
        }[form]
        out = tuple((n, t) for _, n, t in (*keys, *results))
        return Part(f"select {listed} from {rest} group by {grouped}{having}", out)

    def safe(self, keys: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        order = list(keys)
        self.chance.shuffle(order)
        return order

    def keys(self, columns: Columns) -> list[tuple[str, str, str]]:
        times = [n for n, t in columns if t == "ts"]
        structs = [n for n, t in columns if t in {"win", "ses"}]
        plain = [(n, t) for n, t in columns if t in {"int", "str"}]
        keys: list[tuple[str, str, str]] = []
        roll = self.chance.random()
        if structs and roll < 0.6:
            name = self.any(structs)
            kind = dict(columns)[name]
            form = self.chance.random()
            if form < 0.6:
                keys.append((name, self.name("w"), kind))
            elif form < 0.75:
                keys.append((f"window({name}, '10 minutes')", self.name("w"), "win"))
            elif form < 0.85:
                keys.append((f"window_time({name})", self.name("t"), "ts"))
            else:
                keys.append((f"{name}.end", self.name("t"), "ts"))
        elif times and roll < 0.75:
            keys.append((f"window({self.time(times)}, {self.any(LENGTHS)})", self.name("w"), "win"))
        elif times and roll < 0.85:
            keys.append((f"session_window({self.any(times)}, '5 minutes')", self.name("w"), "ses"))
        elif times and roll < 0.95:
            keys.append((self.time(times), self.name("t"), "ts"))
        if times and self.maybe(0.06):
            keys.append((self.any(times), self.name("t"), "ts"))
        for name, kind in plain:
            if self.maybe(0.4):
                keys.append((name, self.name("k"), kind))
        return keys

    def result(self, columns: Columns) -> str:
        numbers = [n for n, t in columns if t == "int"]
        if not numbers or self.maybe(0.4):
            return "count(*)"
        name = self.any(numbers)
        if self.maybe(0.05):
            return f"count(distinct {name})"
        return self.any((f"sum({name})", f"max({name})", f"approx_count_distinct({name})", f"count({name})"))

    def distinct(self, depth: int) -> Part:
        return self.distinct_over(*self.source(depth))

    def distinct_over(self, source: str, columns: Columns) -> Part:
        items = [(n, n, t) for n, t in self.some(columns, 1)]
        times = [n for n, t in columns if t == "ts"]
        if times and self.maybe(0.4):
            items.append((f"window({self.any(times)}, '5 minutes')", self.name("w"), "win"))
        return self.select(items, f"{source}{self.where(columns)}", "select distinct")

    # --- rarer forms

    def pivoted(self, depth: int) -> Part:
        source, columns = self.source(depth)
        items = [n for n, t in columns if t in {"ts", "win"}][:1]
        numbers = [n for n, t in columns if t == "int"]
        if len(numbers) < 2:
            return self.plain_over(source, columns)
        by, of = numbers[:2]
        if "ts" in items and self.maybe(0.5):
            items = ["window(ts, '5 minutes') as pw"]
        inner = f"select {', '.join([*items, by, of])} from {source}"
        call = self.any((f"sum({of})", f"count({of})", f"max(cast({of} as string))"))
        name = items[0].split(" as ")[-1] if items else "`1`"
        kind = "win" if "window(" in str(items) else dict(columns).get(name, "int")
        select = f"{name} as {(out := self.name('p'))}"
        return Part(f"select {select} from ({inner}) pivot ({call} for {by} in (1, 2))", ((out, kind),))

    def structured(self, depth: int) -> Part:
        """Through a struct: its fields are columns only where they are named."""
        source, columns = self.source(depth)
        times = [n for n, t in columns if t in {"ts", "win"}]
        if not times:
            return self.plain_over(source, columns)
        time, box, out, total = self.any(times), self.name("b"), self.name("t"), self.name("a")
        inner = f"select struct({time} as f, 1 as g) as {box} from {source}"
        kind = dict(columns)[time]
        if self.maybe(0.5):
            return Part(
                f"select {out}, count(*) as {total} from (select {box}.f as {out} from ({inner})) group by {out}",
                ((out, kind), (total, "int")),
            )
        return Part(
            f"select {box}.f as {out}, count(*) as {total} from ({inner}) group by {box}.f",
            ((out, kind), (total, "int")),
        )

    def exploded(self, depth: int) -> Part:
        source, columns = self.source(depth)
        view, out = self.name("e"), self.name("x")
        rest = f"(select * from {source}) lateral view explode(array(1, 2)) {view} as {out}"
        return (
            self.aggregate_over(rest, (*columns, (out, "int")))
            if self.maybe(0.6)
            else Part(f"select {out}, {columns[0][0]} from {rest}", ((out, "int"), columns[0]))
        )

    def correlated(self, depth: int) -> Part:
        """A subquery on a table that uses columns of the outer row."""
        source, columns = self.source(depth)
        numbers = [n for n, t in columns if t == "int"]
        if not numbers:
            return self.plain_over(source, columns)
        alias, name, out = self.name("o"), self.any(numbers), self.name("q")
        sign = self.any(("=", "=", ">", "<="))
        inner = f"select {self.any(('max(v)', 'count(*)', 'sum(id)'))} from ba where ba.id {sign} {alias}.{name}"
        listed = ", ".join(f"{alias}.{n}" for n, _ in columns)
        if self.maybe(0.4):
            test = self.any(
                (f"exists (select 1 from ba where ba.id {sign} {alias}.{name})", f"{alias}.{name} > ({inner})")
            )
            return Part(f"select {listed} from {source} as {alias} where {test}", columns)
        return Part(f"select {listed}, ({inner}) as {out} from {source} as {alias}", (*columns, (out, "int")))

    def nested_cte(self, depth: int) -> Part:
        self.budget -= 1
        inner, name = self.part(max(depth - 1, 0)), self.name("c")
        outer = self.over(name, inner.columns)
        return Part(f"select * from (with {name} as ({inner.sql}) {outer.sql})", outer.columns)

    # --- several relations

    def union(self, depth: int) -> Part:
        left, right = self.source(depth), self.source(depth)
        shared = self.fitting(left[1], right[1])
        if not shared:
            return self.plain(depth)
        sides = []
        for position, (source, _) in enumerate((left, right)):
            listed = ", ".join(pair[position] for pair, _ in shared)
            sides.append(f"select {listed} from {source}")
        word = "union all" if self.maybe(0.75) else "union"
        return Part(f"{sides[0]} {word} {sides[1]}", tuple((pair[0], kind) for pair, kind in shared))

    def fitting(self, left: Columns, right: Columns) -> list[tuple[tuple[str, str], str]]:
        """Columns of both sides with the same type, each used once."""
        rest, pairs = list(right), []
        for name, kind in left:
            match = next((c for c in rest if c[1] == kind), None)
            if match is not None:
                rest.remove(match)
                pairs.append(((name, match[0]), kind))
        return pairs[: self.chance.randint(1, len(pairs))] if pairs else []

    def set_operation(self, depth: int) -> Part:
        source, columns = self.source(depth - 1)
        items = [(n, t) for n, t in columns if n in {"id", "ts", "s"}]
        if not items:
            return self.plain(depth)
        items = items[: self.chance.randint(1, len(items))]
        listed = ", ".join(n for n, _ in items)
        other = "ba" if self.maybe(0.75) else self.any(STREAMS)
        word = self.any(("except", "except", "except all", "intersect"))
        fits = all((n, t) in COLUMNS for n, t in items)
        if not fits:
            return self.plain(depth)
        return Part(f"select {listed} from {source} {word} select {listed} from {other}", tuple(items))

    def join(self, depth: int) -> Part:
        left, right = self.source(depth), self.source(depth)
        kind = self.any(
            ("join", "join", "join", "left join", "right join", "full join", "left semi join", "left anti join")
        )
        if self.maybe(0.1) and left[1] == right[1] == COLUMNS:
            return self.using(left[0], right[0], kind)
        a, b = self.name("l"), self.name("r")
        said = self.on(a, left[1], b, right[1])
        condition = " and ".join(said) or "true"
        as_where = kind == "join" and self.maybe(0.2)
        text = f"{self.aliased(left[0], a)} {kind} {self.aliased(right[0], b)}"
        text = (
            f"{self.aliased(left[0], a)}, {self.aliased(right[0], b)} where {condition}"
            if as_where
            else f"{text} on {condition}"
        )
        items = [(f"{a}.{n}", self.name("x"), t) for n, t in self.some(left[1], 1)]
        if "semi" not in kind and "anti" not in kind:
            items += [(f"{b}.{n}", self.name("x"), t) for n, t in self.some(right[1], 1)]
        if self.maybe(0.3):
            return self.grouped_join(items, text)
        return self.select(items, text)

    def grouped_join(self, items: list[tuple[str, str, str]], text: str) -> Part:
        times = [e for e, _, t in items if t == "ts"]
        if not times:
            return self.select(items, text)
        window = f"window({self.any(times)}, '5 minutes')"
        name, total = self.name("w"), self.name("a")
        return Part(
            f"select {window} as {name}, count(*) as {total} from {text} group by 1", ((name, "win"), (total, "int"))
        )

    def using(self, left: str, right: str, kind: str) -> Part:
        names = self.any(("id", "id, ts", "ts"))
        columns = tuple(c for c in COLUMNS if c[0] in names.split(", "))
        listed = ", ".join(n for n, _ in columns)
        a, b = self.name("l"), self.name("r")
        text = f"{self.aliased(left, a)} {kind} {self.aliased(right, b)} using ({names})"
        return Part(f"select {listed} from {text}", columns)

    def aliased(self, source: str, alias: str) -> str:
        return f"{source} as {alias}"

    def on(self, a: str, left: Columns, b: str, right: Columns) -> list[str]:
        said = []
        pairs = [(x, y, t) for x, t in left for y, u in right if t == u and t in {"int", "win", "str"}]
        if pairs and self.maybe(0.92):
            x, y, _ = self.chance.choice(pairs)
            sign = "<=>" if self.maybe(0.05) else "="
            said.append(f"{a}.{x} {sign} {b}.{y}")
        times = [(x, y) for x, t in left for y, u in right if t == u == "ts"]
        if times and self.maybe(0.75):
            x, y = self.chance.choice(times)
            l, r = f"{a}.{x}", f"{b}.{y}"  # noqa: E741
            forms = (
                [f"{l} = {r}"], [f"{r} >= {l}", f"{r} <= {l} + interval 5 minutes"],
                [f"{r} between {l} and {l} + interval 5 minutes"], [f"{r} >= {l}"], [f"{r} <= {l} + interval 5 minutes"],
                [f"{l} > {r} - interval 1 hour"], [f"{r} - interval '10' minute < {l}"],
                [f"date_trunc('hour', {l}) = date_trunc('hour', {r})"], [f"{r} <= {l} + interval 1 month"],
                [f"unix_timestamp({r}) <= unix_timestamp({l}) + 300"], [f"cast({r} as timestamp) <= {l}"],
            )  # fmt: skip
            said += self.chance.choice(forms)
        if pairs and self.maybe(0.08):
            x, y, _ = self.chance.choice(pairs)
            said.append(self.any((f"{a}.{x} is not null", f"{b}.{y} is not null")))
        return said

    def three(self, _: int) -> Part:
        """A join of three plain relations: event-time columns meet."""
        names = [self.name("j") for _ in range(3)]
        tables = [self.any((*STREAMS, "ba")) for _ in range(3)]
        a, b, c = names
        first = self.any((f"{a}.id = {b}.id", f"{a}.id = {b}.id and {a}.ts = {b}.ts", f"{a}.ts = {b}.ts"))
        second = self.any(
            (f"{c}.id = {a}.id", f"{c}.id = {b}.id", f"{c}.ts = {b}.ts", f"{c}.id = {a}.id and {c}.ts = {a}.ts")
        )
        kinds = [self.any(("join", "join", "join", "left join")) for _ in range(2)]
        text = f"{tables[0]} {a} {kinds[0]} {tables[1]} {b} on {first} {kinds[1]} {tables[2]} {c} on {second}"
        if self.maybe(0.15):
            text = f"{tables[0]} {a}, {tables[2]} {c}, {tables[1]} {b} where {first} and {second}"
        items = [(f"{n}.{col}", self.name("x"), t) for n in names for col, t in COLUMNS if self.maybe(0.3)]
        items = items or [(f"{a}.id", self.name("x"), "int")]
        return self.grouped_join(items, text) if self.maybe(0.2) else self.select(items, text)
