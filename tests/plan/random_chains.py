"""Random projects of batch tables that read each other, random edits of them, and what each edit must affect.

What an edit affects is computed from what was generated, and not from the compiled lineage. Names of columns are used
once in a project, so that a name in a text means one column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

Read = tuple[str, str]  # a model and its column
Columns = frozenset[str] | None  # None: all rows
_ROOT = "orders"


@dataclass(frozen=True, slots=True)
class Link:
    """A model: the columns that each of its columns comes from, and those that decide on its rows.

    `parents` are one or two; `numbers` are constants in its columns, by name, and one in its filter (`where`), which
    edits change; `grouped`: its second column is an aggregate.
    """

    name: str
    parents: tuple[str, ...]
    columns: Mapping[str, tuple[Read, ...]]
    rows: tuple[Read, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    where: tuple[Read, int] | None = None
    grouped: bool = False

    def sql(self) -> str:
        """Its text."""
        key, *others = self.columns
        items = [f"p.{self.columns[key][0][1]} + {self.numbers[key]} as {key}"]
        for name in others:
            values = " + ".join(f"{'pq'[self.parents.index(parent)]}.{column}" for parent, column in self.columns[name])
            items.append(f"{f'sum({values})' if self.grouped else values} + {self.numbers[name]} as {name}")
        text = f"select {', '.join(items)} from {_from(self.parents[0])} as p"
        if len(self.parents) > 1:
            (one, other) = self.rows[:2]
            text += f" join {_from(self.parents[1])} as q on p.{one[1]} = q.{other[1]}"
        if self.where is not None:
            text += f" where p.{self.where[0][1]} > {self.where[1]}"
        return f"{text} group by p.{self.columns[key][0][1]}" if self.grouped else text

    def edited(self, random: Random) -> tuple[Link, Columns]:
        """An edit of it, and its own columns that have other values then."""
        kinds = ["column", "column", "new"] + (["where"] if self.where is not None else [])
        kind = random.choice(kinds)
        if kind == "where" and self.where is not None:
            return replace(self, where=(self.where[0], self.where[1] + 1)), None
        if kind == "new":
            name = f"{self.name}_new"
            last = list(self.columns)[-1]
            columns = {**self.columns, name: self.columns[last]}
            return replace(self, columns=columns, numbers={**self.numbers, name: 9}), frozenset([name])
        name = random.choice(list(self.columns))
        numbers = {**self.numbers, name: self.numbers[name] + 1}
        return replace(self, numbers=numbers), frozenset([name])


def _from(model: str) -> str:
    return "{{ source('shop', 'orders') }}" if model == _ROOT else f"{{{{ ref('{model}') }}}}"


def chain(random: Random) -> list[Link]:
    """Some models, each after what it reads."""
    known: dict[str, Sequence[str]] = {_ROOT: ("id", "amount")}
    found: list[Link] = []
    for number in range(random.randint(2, 7)):
        name = f"m{number}"
        wide = min(len(known), 2)
        parents = tuple(random.sample(list(known), random.randint(1, wide)))
        keys = tuple((parent, known[parent][0]) for parent in parents)
        key, values = f"{name}_k", [f"{name}_{letter}" for letter in "ab"[: random.randint(1, 2)]]
        grouped = len(parents) == 1 and random.random() < 0.3
        columns: dict[str, tuple[Read, ...]] = {key: (keys[0],)}
        for value in values:
            picked = [(parent, random.choice(known[parent])) for parent in parents]
            columns[value] = tuple(random.sample(picked, random.randint(1, len(picked))))
        where = ((parents[0], random.choice(known[parents[0]])), 1) if random.random() < 0.4 else None
        rows = (*(keys if len(parents) > 1 or grouped else ()), *([where[0]] if where is not None else []))
        found.append(Link(name, parents, columns, rows, dict.fromkeys(columns, 1), where, grouped))
        known[name] = tuple(columns)
    return found


def affected(links: Sequence[Link], edited: str, own: Columns) -> dict[str, Columns]:
    """What an edit of one model affects downstream, by name: columns, or all rows."""
    changed: dict[str, Columns] = {edited: own}
    for link in links:
        if link.name == edited:
            continue
        if any(changed.get(parent, frozenset()) is None for parent in link.parents):
            changed[link.name] = None
            continue
        touched = {(parent, column) for parent in link.parents for column in changed.get(parent) or ()}
        if touched & set(link.rows):
            changed[link.name] = None
        elif columns := frozenset(name for name, reads in link.columns.items() if touched & set(reads)):
            changed[link.name] = columns
    return {name: columns for name, columns in changed.items() if name != edited}
