"""Random queries of the forms that rename columns, put them in another order, or read what their text does not name.

Each is written twice: as the model is, and in plain SQL that every database has. What both give is compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.refreshes.written import Written


@dataclass(frozen=True, slots=True)
class _Relation:
    """Something in a FROM, with its alias.

    Attributes:
        text: as the model has it.
        plain: the same in plain SQL.
        alias: of both.
        columns: its columns of whole numbers.
        ctes: that the text needs.
        plain_ctes: that the plain SQL needs.
        alone: nothing can be joined to it, and its columns have no qualifier.
        every: all of its columns in order; empty: a star gives others.
    """

    text: str
    plain: str
    alias: str
    columns: tuple[str, ...]
    ctes: tuple[str, ...] = ()
    plain_ctes: tuple[str, ...] = ()
    alone: bool = False
    every: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Writer:
    chance: random.Random
    tables: Sequence[str]
    columns: Sequence[str]
    spark: bool

    @property
    def numbers(self) -> list[str]:
        """The columns of whole numbers, which may stand for each other."""
        return [name for name in self.columns if name != "note"]

    def table(self) -> str:
        return self.chance.choice(sorted(self.tables))

    def some(self, number: int) -> list[str]:
        return self.chance.sample(self.numbers, number)

    def shuffled(self) -> list[str]:
        """All columns, the numbers among them in another order."""
        mixed = self.some(len(self.numbers))
        return [mixed.pop() if name != "note" else name for name in self.columns]

    def new_names(self, number: int) -> list[str]:
        """Names for columns: none of a table, its own in another order, or both mixed."""
        fresh = [f"c{place}" for place in range(number)]
        kind = self.chance.choice(["fresh", "fresh", "own", "mixed"])
        if kind == "fresh":
            return fresh
        own = [*self.some(len(self.numbers)), *(f"d{place}" for place in range(number))][:number]
        mixed = [one if self.chance.random() < 0.5 else other for one, other in zip(own, fresh, strict=True)]
        return own if kind == "own" else mixed

    def base(self, alias: str) -> _Relation:
        table = self.table()
        return _Relation(
            f"{table} as {alias}", f"{table} as {alias}", alias, tuple(self.numbers), every=tuple(self.columns)
        )

    def table_list(self, alias: str) -> _Relation:
        table, names = self.table(), self.new_names(len(self.columns))
        plain = f"(select {_renamed(self.columns, names)} from {table}) as {alias}"
        word = self.chance.choice([f"{table} as", f"{table}", f"(table {table}) as", f"(select * from {table}) as"])
        numbers = (new for old, new in zip(self.columns, names, strict=True) if old != "note")
        return _Relation(f"{word} {alias}({', '.join(names)})", plain, alias, tuple(numbers), every=tuple(names))

    def query_list(self, alias: str) -> _Relation:
        table, own, names = self.table(), self.some(3), self.new_names(3)
        where = self.chance.choice(["", f" where {own[0]} > 0", f" where {own[1]} is not null"])
        plain = f"(select {_renamed(own, names)} from {table}{where}) as {alias}"
        text = f"(select {', '.join(own)} from {table}{where}) as {alias}({', '.join(names)})"
        return _Relation(text, plain, alias, tuple(names), every=tuple(names))

    def cte(self, alias: str) -> _Relation:
        table, own, names = self.table(), self.some(3), self.new_names(3)
        name = f"cte_{alias}"
        where = self.chance.choice(["", f" where {own[0]} > 0"])
        plain_cte = f"{name} as (select {_renamed(own, names)} from {table}{where})"
        text = f"select {', '.join(own)} from {table}{where}"
        cte = self.chance.choice([f"{name}({', '.join(names)}) as ({text})", plain_cte])
        shown, plain = f"{name} as {alias}", f"{name} as {alias}"
        if self.chance.random() < 0.3:
            names, old = self.new_names(3), names
            shown = f"{name} as {alias}({', '.join(names)})"
            plain = f"(select {_renamed(old, names)} from {name}) as {alias}"
        return _Relation(shown, plain, alias, tuple(names), (cte,), (plain_cte,), every=tuple(names))

    def star_cte(self, alias: str) -> _Relation:
        name, table = f"cte_{alias}", self.table()
        if self.chance.random() < 0.5:
            cte = plain = f"{name} as (select * from {table})"
            names = list(self.columns)
        else:
            names = self.new_names(len(self.columns))
            cte = f"{name}({', '.join(names)}) as (select * from {table})"
            plain = f"{name} as (select {_renamed(self.columns, names)} from {table})"
        numbers = [new for old, new in zip(self.columns, names, strict=True) if old != "note"]
        shown = f"{name} as {alias}"
        return _Relation(shown, shown, alias, tuple(numbers), (cte,), (plain,), every=tuple(names))

    def values(self, alias: str) -> _Relation:
        names = self.new_names(2)
        rows = [(self.chance.randint(0, 3), self.chance.randint(0, 3)) for _ in range(self.chance.randint(1, 3))]
        plain = " union all ".join(f"select {one} as {names[0]}, {two} as {names[1]}" for one, two in rows)
        listed = ", ".join(f"({one}, {two})" for one, two in rows)
        return _Relation(
            f"(values {listed}) as {alias}({', '.join(names)})", f"({plain}) as {alias}", alias, tuple(names)
        )

    def table_function(self, alias: str) -> _Relation:
        number, (name,) = self.chance.randint(1, 3), self.new_names(1)
        plain = " union all ".join(f"select {value} as {name}" for value in range(number))
        listed = ", ".join(map(str, range(number)))
        return _Relation(f"explode(array({listed})) as {alias}({name})", f"({plain}) as {alias}", alias, (name,))

    def unpivot(self, alias: str) -> _Relation:
        table, (one, two) = self.table(), self.some(2)
        rest = [name for name in self.columns if name not in {one, two}]
        nulls = self.chance.choice(["", "include nulls ", "exclude nulls "])
        parts = (
            f"select {', '.join(rest)}, '{name}' as label, {name} as c0 from {table}"
            + ("" if nulls.startswith("include") else f" where {name} is not null")
            for name in (one, two)
        )
        text = f"{table} unpivot {nulls}(c0 for label in ({one}, {two})) as {alias}"
        numbers = [name for name in rest if name != "note"]
        return _Relation(text, f"({' union all '.join(parts)}) as {alias}", alias, ("c0", *numbers), alone=True)

    def pivot(self, alias: str) -> _Relation:
        table, (value, by) = self.table(), self.some(2)
        rest = [name for name in self.columns if name not in {value, by}]
        sums = ", ".join(f"sum(case when {by} = {at} then {value} end) as c{at}" for at in (0, 1))
        plain = f"(select {', '.join(rest)}, {sums} from {table} group by {', '.join(rest)}) as {alias}"
        # Spark has no alias behind PIVOT.
        text = f"(select * from {table} pivot (sum({value}) for {by} in (0 as c0, 1 as c1))) as {alias}"
        numbers = [name for name in rest if name != "note"]
        return _Relation(text, plain, alias, ("c0", "c1", *numbers), alone=True)

    def lateral_view(self, alias: str) -> _Relation:
        table, (one, two) = self.table(), self.some(2)
        parts = (f"select {', '.join(self.columns)}, {name} as c0 from {table}" for name in (one, two))
        text = f"{table} lateral view explode(array({one}, {two})) {alias} as c0"
        return _Relation(text, f"({' union all '.join(parts)}) as {alias}", alias, ("c0", *self.numbers), alone=True)

    def lateral_query(self, alias: str) -> _Relation:
        table, (one, two) = self.table(), self.some(2)
        text = f"{table} as base, lateral (select base.{one} as c0, base.{two} as c1) as {alias}"
        return _Relation(
            text, f"(select {one} as c0, {two} as c1 from {table}) as {alias}", alias, ("c0", "c1"), alone=True
        )

    def star_except(self, alias: str) -> _Relation:
        table, (gone,) = self.table(), self.some(1)
        left = [name for name in self.columns if name != gone]
        plain = f"(select {', '.join(left)} from {table}) as {alias}"
        text = f"(select * except ({gone}) from {table}) as {alias}"
        return _Relation(text, plain, alias, tuple(n for n in left if n != "note"), every=tuple(left))

    def struct(self, alias: str) -> _Relation:
        table, own, names = self.table(), self.some(2), self.new_names(2)
        plain = f"(select {_renamed(own, names)} from {table}) as {alias}"
        made = f"struct({_renamed(own, names)})"
        inner = self.chance.choice(
            [f"select s.* from (select {made} as s from {table}) as inner_query",
             f"select inline(array({made})) from {table}",
             f"select inline(array(struct({', '.join(own)}))) as ({', '.join(names)}) from {table}"]
        )  # fmt: skip
        return _Relation(f"({inner}) as {alias}", plain, alias, tuple(names), every=tuple(names))

    def by_name(self, alias: str) -> _Relation:
        one, two, names = self.some(2), self.some(2), self.new_names(2)
        tables = self.table(), self.table()
        first = f"select {_renamed(one, names)} from {tables[0]}"
        text = f"({first} union all by name select {_renamed(two[::-1], names[::-1])} from {tables[1]}) as {alias}"
        plain = f"({first} union all select {_renamed(two, names)} from {tables[1]}) as {alias}"
        return _Relation(text, plain, alias, tuple(names), every=tuple(names))

    def star_union(self, alias: str) -> _Relation:
        text = f"(select * from {self.table()} union all select {', '.join(self.shuffled())} from {self.table()})"
        return _Relation(
            f"{text} as {alias}", f"{text} as {alias}", alias, tuple(self.numbers), every=tuple(self.columns)
        )

    def common_columns(self, alias: str) -> _Relation:
        """NATURAL and USING: columns that both sides have, by names that one of the sides gives."""
        table, other, (shared, own) = self.table(), self.table(), self.some(2)
        right = self.chance.choice([f"(select {shared}, {own} as c0 from {other})", f"(select {shared} from {other})"])
        how = self.chance.choice(["natural join", "natural left join", "join"])
        using = f" using ({shared})" if how == "join" else ""
        text = f"{table} as {alias} {how} {right} as other{using}"
        left = [name for name in self.numbers if name != shared]
        return _Relation(text, text, alias, (shared, *left), alone=True)

    def relation(self, alias: str, *, joined: bool) -> _Relation:
        forms: list[Callable[[str], _Relation]] = [
            self.base, self.base, self.base, self.base, self.table_list, self.table_list, self.query_list, self.query_list, self.cte, self.star_cte, self.values,
            self.table_function, self.star_except, self.struct, self.star_union, self.unpivot, self.pivot,
            self.lateral_view, self.lateral_query, self.common_columns,
        ]  # fmt: skip
        # Compile rejects it.
        forms += [] if self.spark else [self.by_name]
        while (found := self.chance.choice(forms)(alias)).alone and joined:
            pass
        return found

    def named(self, relation: _Relation) -> tuple[str, str]:
        """A column of a relation, as the model and as plain SQL name it."""
        name = self.chance.choice(relation.columns)
        plain = name if relation.alone else f"{relation.alias}.{name}"
        text = name if self.chance.random() < 0.3 and relation.alone else plain
        if self.chance.random() < 0.15:
            text = self.chance.choice([f"identifier('{text}')", f"identifier('{text[:1]}' || '{text[1:]}')"])
        return text, plain

    def query(self) -> Written:
        kind = self.chance.choice(["select", "select", "group", "top", "star", "union", "union", "stars"])
        return {
            "select": self.selected, "group": self.grouped, "top": self.top, "star": self.star,
            "union": self.union, "stars": self.stars,
        }[kind]()  # fmt: skip

    def start(self) -> tuple[str, str, str, str, list[_Relation]]:
        """WITH and FROM, as the model and as plain SQL have them; and the relations."""
        relations = [self.relation("x", joined=False)]
        text, plain = f"from {relations[0].text}", f"from {relations[0].plain}"
        if not relations[0].alone and self.chance.random() < 0.4:
            relations.append(self.relation("y", joined=True))
            word = self.chance.choice(["join", "left join"])
            one, two = (self.chance.choice(relation.columns) for relation in relations)
            text = f"{text} {word} {relations[1].text} on x.{one} = y.{two}"
            plain = f"{plain} {word} {relations[1].plain} on x.{one} = y.{two}"
        ctes = [", ".join(one for r in relations for one in getattr(r, part)) for part in ("ctes", "plain_ctes")]
        begin, plain_begin = (f"with {some} " if some else "" for some in ctes)
        return begin, plain_begin, text, plain, relations

    def where(self, relations: Sequence[_Relation]) -> tuple[str, str]:
        if self.chance.random() < 0.6:
            return "", ""
        name, plain = self.named(self.chance.choice(relations))
        test = self.chance.choice([" > 0", " is not null", " <> 2"])
        return f" where {name}{test}", f" where {plain}{test}"

    def selected(self) -> Written:
        begin, plain_begin, text, plain, relations = self.start()
        items = [self.named(self.chance.choice(relations)) for _ in range(3)]
        where, plain_where = self.where(relations)
        word = self.chance.choice(["select", "select", "select distinct"])
        signs = [self.chance.choice([" as ", " "]) for _ in items]
        shown = ", ".join(f"{item}{sign}{name}" for (item, _), sign, name in zip(items, signs, "abc", strict=True))
        plain_shown = ", ".join(f"{item} as {name}" for (_, item), name in zip(items, "abc", strict=True))
        return Written(
            f"{plain_begin}{word} {plain_shown} {plain}{plain_where}", f"{begin}{word} {shown} {text}{where}"
        )

    def grouped(self) -> Written:
        begin, plain_begin, text, plain, relations = self.start()
        where, plain_where = self.where(relations)
        (key, plain_key), (value, plain_value) = self.named(relations[0]), self.named(self.chance.choice(relations))
        total = f"sum({value})" if not self.spark else self.chance.choice([f"sum({value})", f"sum({value})::bigint"])
        alias = self.chance.choice([" as ", " "])
        by = self.chance.choice([key, f"({key})", "1", "a", f"(({key}))"])
        if by == "a" and any("a" in relation.columns for relation in relations):
            by = key
        shown = f"{self.chance.choice([key, f'({key})'])}{alias}a, {total}{alias}s, count(*) n"
        plain_shown = f"{plain_key} as a, sum({plain_value}) as s, count(*) as n"
        return Written(
            f"{plain_begin}select {plain_shown} {plain}{plain_where} group by {plain_key}",
            f"{begin}select {shown} {text}{where} group by {by}",
        )

    def top(self) -> Written:
        """The first rows of each key, with the columns in a list."""
        begin, plain_begin, text, plain, relations = self.start()
        (key, plain_key), (value, plain_value) = self.named(relations[0]), self.named(self.chance.choice(relations))
        order = self.chance.choice(["", " nulls first", " desc", " desc nulls last", " nulls last"])
        most = self.chance.randint(1, 2)
        over, plain_over = (
            f"rank() over (partition by {one} order by {two}{order})"
            for one, two in ((key, value), (plain_key, plain_value))
        )
        outer = self.chance.choice([("a", "b"), ("b", "a"), ("a", "b", "n"), ("n", "a")])
        shown = ", ".join(self.chance.choice([name, f"t.{name}", f"t.{name} as {name}"]) for name in outer)
        ranked = f"select {key} as a, {value} b, {over} n {text}"
        plain_ranked = f"select {plain_key} as a, {plain_value} as b, {plain_over} as n {plain}"
        kind = self.chance.choice(["query", "list", "cte"])
        if kind == "cte":
            begin = f"{begin}, t as ({ranked}) " if begin else f"with t as ({ranked}) "
            relation = "t"
        elif kind == "list":
            relation = f"(select {key}, {value}, {over} {text}) as t(a, b, n)"
        else:
            relation = f"({ranked}) as t"
        return Written(
            f"{plain_begin}select {', '.join(outer)} from ({plain_ranked}) as t where n <= {most}",
            f"{begin}select {shown} from {relation} where n <= {most}",
        )

    def star(self) -> Written:
        begin, plain_begin, text, plain, relations = self.start()
        first = relations[0]
        if not first.every or len(relations) > 1:
            return self.selected()
        return Written(
            f"{plain_begin}select {', '.join(first.every)} {plain}",
            f"{begin}select {self.chance.choice(['*', 'x.*'])} {text}",
        )

    def union(self) -> Written:
        one, two = self.start(), self.start()
        while one[0] or two[0]:
            one, two = self.start(), self.start()
        items = [[self.named(self.chance.choice(side[4])) for _ in range(2)] for side in (one, two)]
        texts, plains = [], []
        for (_, _, text, plain, _), ((a, plain_a), (b, plain_b)) in zip((one, two), items, strict=True):
            # The names of the second side are nobody's.
            names = (
                ("a", "b")
                if not texts
                else self.chance.choice([("a", "b"), ("b", "a"), ("e", "f"), ("e", "e"), ("b", "b"), ("", "")])
            )
            one, two = (f"{item} as {name}" if name else f"{item}" for item, name in zip((a, b), names, strict=True))
            texts.append(f"select {one}, {two} {text}")
            plains.append(f"select {plain_a} as a, {plain_b} as b {plain}")
        return Written(" union all ".join(plains), " union all ".join(texts))

    def stars(self) -> Written:
        """A union of which a side is a star: its columns are in the order of the table, and meet the others by place."""
        sides = [self.starred_side(), self.chance.choice([self.listed_side, self.starred_side])()]
        self.chance.shuffle(sides)
        texts, plains = ([side[place] for side in sides] for place in (0, 1))
        # The first side names the columns.
        return Written(" union all ".join(plains), " union all ".join(texts))

    def listed_side(self) -> tuple[str, str]:
        mixed = self.shuffled()
        text = f"select {', '.join(mixed)} from {self.table()}"
        return text, text

    def starred_side(self) -> tuple[str, str]:
        table, other = self.table(), self.table()
        every, (key,) = ", ".join(f"x.{name}" for name in self.columns), self.some(1)
        where = self.chance.choice(["", f" where x.{key} > 0"])
        names = self.new_names(len(self.columns))
        options: list[tuple[str, str]] = [
            (f"select * from {table} as x{where}", f"select {every} from {table} as x{where}"),
            (f"select x.* from {table} as x{where}", f"select {every} from {table} as x{where}"),
            (
                f"select x.* from {table} as x join {other} as y on x.{key} = y.{key}",
                f"select {every} from {table} as x join {other} as y on x.{key} = y.{key}",
            ),
            (
                f"select x.* from (select * from {table}) as x{where}",
                f"select {every} from (select * from {table}) as x{where}",
            ),
            (
                f"select * from (select {', '.join(self.columns)} from {table}) as x({', '.join(names)})",
                f"select {_renamed(self.columns, names)} from {table}",
            ),
            (
                f"select * from {table} as x({', '.join(names)})",
                f"select {_renamed(self.columns, names)} from {table}",
            ),
        ]
        return self.chance.choice(options)


def _renamed(own: Sequence[str], names: Sequence[str]) -> str:
    return ", ".join(f"{one} as {name}" for one, name in zip(own, names, strict=True))


def renamings(
    chance: random.Random, tables: Sequence[str], columns: Sequence[str], *, spark: bool
) -> Iterator[Written]:
    """Yield queries without end.

    Args:
        chance: of everything.
        tables: that they read.
        columns: of each of them, in order; those that are not whole numbers are called `note`.
        spark: they may use what is Spark's alone in places where a refresh writes the user's text again.
    """
    while True:
        yield _Writer(chance, tables, columns, spark).query()
