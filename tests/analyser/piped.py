"""Random pipes: `from t |> where .. |> aggregate .. group by .. |> limit 5`, from parts of the grammar of queries."""

from __future__ import annotations

from collections.abc import Callable

from tests.analyser.expressions import Chance, Columns, aggregate, expression, over
from tests.analyser.grammar import KEPT, From, group_key, item_of, listed_items, matched
from tests.analyser.tables import TABLES

# A step, and the columns behind it.
Step = tuple[str, tuple[tuple[str, str], ...]]


def piped(chance: Chance) -> str:
    """A query of one to six steps."""
    text, columns = _start(chance)
    for _ in range(chance.random.randint(1, 6)):
        step, columns = chance.random.choice(_STEPS)(chance, columns)
        text = f"{text} |> {step}"
        if not columns:
            break
    return f"{text} order by 1 limit 5" if chance.maybe(0.05) else text


def _start(chance: Chance) -> Step:
    name = chance.any(tuple(TABLES))
    bare = TABLES[name]
    alias = chance.name("t")
    qualified = tuple((f"{alias}.{n}" if chance.maybe(0.5) else n, t) for n, t in bare)
    few = bare[: chance.random.randint(1, 4)]
    return chance.any((
        (f"from [[{name}]]", bare),
        (f"table [[{name}]]", bare),
        (f"from [[{name}]] {alias}", qualified),
        (f"select {', '.join(n for n, _ in few)} from [[{name}]]", few),
        (f"(select {', '.join(n for n, _ in few)} from [[{name}]])", few),
        (f"with w as (from [[{name}]] |> select *) from w", bare),
    ))  # fmt: skip


def _bare(columns: Columns) -> tuple[tuple[str, str], ...]:
    """The columns without qualifiers, each name once."""
    return tuple({name.rpartition(".")[2]: (name.rpartition(".")[2], kind) for name, kind in columns}.values())


def _where(chance: Chance, columns: Columns) -> Step:
    condition = expression(chance, "boolean", columns, chance.random.randint(1, 2))
    return f"where {condition}", tuple(columns)


def _select(chance: Chance, columns: Columns) -> Step:
    given = From("", tuple(columns))
    text, found = listed_items(chance, [item_of(chance, given) for _ in range(chance.random.randint(1, 4))])
    if chance.maybe(0.1):
        call, kind = over(chance, columns)
        return f"select {text}, {call} as w", (*found, ("w", kind))
    return f"select {text}", found


def _extend(chance: Chance, columns: Columns) -> Step:
    name, kind = chance.name("x"), chance.any(KEPT)
    return f"extend {expression(chance, kind, columns, 1)} as {name}", (*_alone(columns), (name, kind))


def _set(chance: Chance, columns: Columns) -> Step:
    name = chance.random.choice(_alone(columns) or _bare(columns))[0] if not chance.fault(0.1) else "nope"
    kind = chance.any(KEPT)
    text = f"set {name} = {expression(chance, kind, columns, 1)}"
    return text, tuple((name, kind) if n == name else (n, t) for n, t in _alone(columns))


def _drop(chance: Chance, columns: Columns) -> Step:
    name = chance.random.choice(_alone(columns) or _bare(columns))[0] if not chance.fault(0.1) else "nope"
    return f"drop {name}", tuple(one for one in _alone(columns) if one[0] != name)


def _as(chance: Chance, columns: Columns) -> Step:
    alias = chance.name("q")
    return f"as {alias}", tuple((f"{alias}.{n}" if chance.maybe(0.5) else n, t) for n, t in _bare(columns))


def _aggregate(chance: Chance, columns: Columns) -> Step:
    given = From("", tuple(columns))
    keys, key_columns = listed_items(chance, [group_key(chance, given) for _ in range(chance.random.randint(1, 2))])
    results, found = listed_items(chance, [aggregate(chance, columns) for _ in range(chance.random.randint(1, 2))])
    if chance.maybe(0.2):
        return f"aggregate {results}", found
    return f"aggregate {results} group by {keys}", (*key_columns, *found)


def _join(chance: Chance, columns: Columns) -> Step:
    name, alias, left = chance.any(tuple(TABLES)), chance.name("j"), chance.name("l")
    own = tuple((f"{left}.{n}", t) for n, t in _bare(columns))
    other = tuple((f"{alias}.{n}", t) for n, t in TABLES[name])
    kind = chance.any(("join", "left join", "right join", "full join", "left semi join"))
    text = f"as {left} |> {kind} [[{name}]] {alias} on {matched(chance, own, other)}"
    return text, own if "semi" in kind else (*own, *other)


def _result(chance: Chance, columns: Columns) -> Step:
    name = chance.random.choice(columns)[0]
    return chance.any((f"order by {name} desc", "limit 5", "offset 2", f"sort by {name}")), _alone(columns)


def _alone(columns: Columns) -> tuple[tuple[str, str], ...]:
    """The columns whose names are no others': those of several relations lose their qualifiers (docs/limits.md)."""
    names = [name.rpartition(".")[2] for name, _ in columns]
    return tuple((name, kind) for name, (_, kind) in zip(names, columns, strict=True) if names.count(name) == 1)


def _union(chance: Chance, columns: Columns) -> Step:
    name = chance.any(tuple(TABLES))
    values = ", ".join(expression(chance, kind, TABLES[name], 1) for _, kind in columns)
    word = chance.any(("union all", "union", "except", "intersect"))
    side = chance.any((f"select {values} from [[{name}]]", f"(from [[{name}]] |> select {values})"))
    return f"{word} {side}", _bare(columns)


def _sample(_: Chance, columns: Columns) -> Step:
    return "tablesample (10 percent)", _alone(columns)


_STEPS: tuple[Callable[[Chance, Columns], Step], ...] = (
    _where, _where, _select, _select, _extend, _extend, _set, _set, _drop, _as, _aggregate, _aggregate, _join, _result,
    _result, _union, _sample,
)  # fmt: skip
