"""The edits of a chain: each is allowed over state, or rejected with its reason."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tests.chains.shapes import CALLS, KINDS, TYPES, Item, Shape

Edit = Callable[[random.Random, Shape], None]


def begun(chance: random.Random, number: int) -> Shape:
    """A model before its first build."""
    kind = chance.choice(KINDS)
    keys = chance.sample(["k", "j"], chance.randint(1, 2))
    if kind == "joined":
        of = chance.sample(["lk", "la", "lb", "ra", "rb", "rc"], chance.randint(2, 5))
        items = [Item("", name, f"o_{name}") for name in of]
    elif kind in {"dedup", "distinct"}:
        keys = ["k", "j"] if kind == "dedup" or chance.random() < 0.7 else keys
        items = [Item("", key, f"o_{key}") for key in keys]
    else:
        calls = [(call, of) for call in CALLS for of in ("abc" if call != "count" else "a")]
        items = [Item("", key, f"o_{key}") for key in keys]
        items += [Item(call, of, f"{call}_{of}") for call, of in chance.sample(calls, chance.randint(2, 4))]
        items += [Item("", "window", "w")] if kind == "windows" else []
    chance.shuffle(items)
    made = Shape(number, kind, f"m{number}", f"s{number}", items, keys)
    made.positional = chance.random() < 0.3
    if kind != "joined" and chance.random() < 0.4:
        made.stage, made.staged = f"stage{number}", dict(zip(TYPES, TYPES, strict=True))
    return made


def _reorder(chance: random.Random, shape: Shape) -> None:
    chance.shuffle(shape.items)


def _reorder_keys(chance: random.Random, shape: Shape) -> None:
    shape.keys.reverse()


def _reorder_schema(chance: random.Random, shape: Shape) -> None:
    if not shape.positional:
        chance.shuffle(shape.schema)


def _more_columns(_: random.Random, shape: Shape) -> None:
    if not shape.positional:
        shape.extra += 1


def _rename_source(chance: random.Random, shape: Shape) -> None:
    shape.source = f"s{shape.number}_{chance.randint(0, 999)}"


def _rename_model(chance: random.Random, shape: Shape) -> None:
    shape.renamed_from = shape.table
    shape.model = f"m{shape.number}_{chance.randint(0, 999)}"
    shape.table = shape.model


def _rename_table(chance: random.Random, shape: Shape) -> None:
    shape.renamed_from, shape.table = shape.table, f"t{shape.number}_{chance.randint(0, 999)}"


def _rename_stage(chance: random.Random, shape: Shape) -> None:
    if shape.stage:
        shape.stage_renamed_from, shape.stage = shape.stage, f"stage{shape.number}_{chance.randint(0, 999)}"


def _rename_columns(chance: random.Random, shape: Shape) -> None:
    for item in chance.sample(shape.items, min(len(shape.items), chance.randint(1, 2))):
        before = item.name
        item.name = f"o{chance.randint(0, 999)}"
        shape.renamed[item.name] = before


def _swap_columns(chance: random.Random, shape: Shape) -> None:
    """Two outputs of a type take each other's name: their columns mean something else from now on."""
    of_type = [item for item in shape.items if item.call]
    if len(of_type) > 1:
        first, second = chance.sample(of_type, 2)
        first.name, second.name = second.name, first.name


def _rename_stage_columns(chance: random.Random, shape: Shape) -> None:
    if shape.staged:
        for of in chance.sample(list(TYPES), 2):
            before, shape.staged[of] = shape.staged[of], f"n{chance.randint(0, 999)}"
            shape.stage_renamed[shape.staged[of]] = before


def _turn_stage_columns(_: random.Random, shape: Shape) -> None:
    """Columns of the model between take the names of each other, in one edit."""
    if shape.staged:
        first, second = shape.staged["a"], shape.staged["b"]
        shape.staged |= {"a": second, "b": first}
        shape.stage_renamed |= {second: first, first: second}


def _rename_places(chance: random.Random, shape: Shape) -> None:
    """Columns of files without a header have another name; below a model between, that alone."""
    if shape.positional:
        for of in chance.sample(list(TYPES), 2):
            shape.names[of] = f"p{chance.randint(0, 999)}"


def _turn_places(_: random.Random, shape: Shape) -> None:
    if shape.positional:
        shape.names["a"], shape.names["b"] = shape.names["b"], shape.names["a"]


def _rename_alias(chance: random.Random, shape: Shape) -> None:
    shape.alias, shape.qualified = f"x{chance.randint(0, 99)}", chance.random() < 0.5


def _rewrite(chance: random.Random, shape: Shape) -> None:
    shape.form = chance.choice(["plain", "cte", "subquery"])


def _respell(_: random.Random, shape: Shape) -> None:
    shape.spelling = 1 - shape.spelling


def _comment(chance: random.Random, shape: Shape) -> None:
    shape.comment = f"\n-- {chance.choice(['by sum(b)', 'where a > 1', 'x'])}"


def _limit(chance: random.Random, shape: Shape) -> None:
    shape.limit = chance.randint(2, 6)


EDITS: Final[dict[str, Edit]] = {
    "order of SELECT": _reorder,
    "order of keys": _reorder_keys,
    "order of the schema": _reorder_schema,
    "a column more in the schema": _more_columns,
    "name of the source": _rename_source,
    "name of the model": _rename_model,
    "name of the table": _rename_table,
    "name of the model between": _rename_stage,
    "names of columns": _rename_columns,
    "columns swapped": _swap_columns,
    "names of columns between": _rename_stage_columns,
    "columns between swapped": _turn_stage_columns,
    "names of places": _rename_places,
    "places swapped": _turn_places,
    "alias": _rename_alias,
    "form": _rewrite,
    "spelling": _respell,
    "comment": _comment,
    "limit of HAVING": _limit,
}


def edited(chance: random.Random, shape: Shape) -> str:
    """Edit a shape, and return the name of the edit; empty: no edit was found that changes it."""
    shape.renamed, shape.stage_renamed, shape.renamed_from, shape.stage_renamed_from = {}, {}, "", ""
    before = repr(shape)
    for name in chance.sample(list(EDITS), len(EDITS)):
        EDITS[name](chance, shape)
        if repr(shape) != before:
            return name
    return ""
