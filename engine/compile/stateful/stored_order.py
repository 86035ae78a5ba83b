"""The order in which Spark's state holds the aggregates of a query, as a generation records it when it begins.

An aggregate is plain JSON: `[kind, fields, children]`, and `[COLUMN, input, name, reading]` for a column of an input;
it is compared under the names of now, so that a rename does not make another one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.compile.nodes.facts import StateInput

Tree = list[Any]
Groups = tuple[tuple[Tree, ...], ...]
Inputs = Sequence[StateInput]
_Names = Sequence[tuple[str, Mapping[str, str]]]

COLUMN: Final = "column"
# Told apart by Spark's text of it, which names what the tree lacks; told apart by nothing.
_WRITTEN, _ALIKE = "written", "alike"
_NUMBER = re.compile(r"#\d+L?")
_TURNED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
_EITHER_WAY = {"EqualTo", "EqualNullSafe"}
_JUNCTIONS = {"And", "Or"}


def told_apart(calls: Sequence[tuple[Tree, int]], texts: Callable[[], Mapping[int, str]]) -> tuple[Tree, ...]:
    """Return the distinct aggregates of a group as distinct trees; `texts` gives Spark's texts by id, for like ones."""
    alike = _repeated_trees([tree for tree, _ in calls])
    if not any(alike):
        return tuple(tree for tree, _ in calls)
    written = texts()
    trees: list[Tree] = [
        [_WRITTEN, {"text": _NUMBER.sub("", written.get(number, ""))}, [tree]] if several else tree
        for (tree, number), several in zip(calls, alike, strict=True)
    ]
    return tuple(
        [_ALIKE, {}, [tree]] if several else tree for tree, several in zip(trees, _repeated_trees(trees), strict=True)
    )


def _repeated_trees(trees: Sequence[Tree]) -> list[bool]:
    keys = [json.dumps(tree, sort_keys=True) for tree in trees]
    count = Counter(keys)
    return [count[key] > 1 for key in keys]


def same_order(stored_groups: Groups, inputs_then: Inputs, now: Groups, inputs_now: Inputs) -> bool | None:
    """Return whether a query has its aggregates in the order of a state; None if that is not certain.

    `inputs_then` has what the query read when they were recorded, with the names of now.
    """
    if [len(group) for group in stored_groups] != [len(group) for group in now]:
        return False
    names = _names(inputs_then), _names(inputs_now)
    verdicts = [
        _same_group([_comparable(tree, names[0]) for tree in before], [_comparable(tree, names[1]) for tree in after])
        for before, after in zip(stored_groups, now, strict=True)
    ]
    return False if False in verdicts else None if None in verdicts else True


@dataclass(frozen=True, slots=True)
class _Compared:
    """An aggregate: its key, the function that it calls, and whether the key is that of no other in its group."""

    key: str
    head: tuple[str, int]
    certain: bool


def _comparable(tree: Tree, names: _Names) -> _Compared:
    call = tree
    while call[0] in {_WRITTEN, _ALIKE}:
        call = call[2][0]
    head = (str(call[2][0][0]), len(call[2])) if call[2] else (str(call[0]), 0)
    return _Compared(_key(tree, names), head, tree[0] != _ALIKE)


def _same_group(stored_group: Sequence[_Compared], now: Sequence[_Compared]) -> bool | None:
    """Return whether two lists of the same aggregates have one order; None if that is not certain.

    What Spark has in another form now (folded constants) is found by its function, where that is there once.
    """
    changed = [(one, other) for one, other in zip(stored_group, now, strict=True) if one.key != other.key]
    certain = all(one.certain for one in (*stored_group, *now))
    if not changed:
        return True if certain else None
    before, after = ([pair[side] for pair in changed] for side in (0, 1))
    if {one.key for one in before} & {one.key for one in after}:
        return False
    heads = [[one.head for one in side] for side in (before, after)]
    if heads[0] != heads[1]:
        return False if sorted(heads[0]) == sorted(heads[1]) else None
    return True if certain and len({*heads[0]}) == len(heads[0]) else None


def _names(inputs: Inputs) -> _Names:
    """For each input a name that no other has, and the names of now of its columns that are called otherwise."""
    counts: Counter[str] = Counter()
    names = []
    for item in inputs:
        counts[item.name] += 1
        names.append((f"{item.name} {counts[item.name]}", item.renamed))
    return names


def _key(tree: Any, names: _Names) -> str:
    """A text that is equal for equal trees; what Spark itself treats alike (Canonicalize) has one text."""
    if tree[0] == COLUMN:
        _, number, name, reading = tree
        input_name, renamed = names[number]
        return json.dumps([input_name, renamed.get(name.lower(), name).lower(), reading])
    kind, fields, children = tree
    if kind in _JUNCTIONS:
        return f"{kind}{sorted({_key(part, names) for part in _parts(tree)})}"
    keys = [_key(child, names) for child in children]
    if kind in _TURNED:
        kind, keys = _TURNED[kind], keys[::-1]
    if kind in _EITHER_WAY:
        return f"{kind}{sorted(keys)}"
    if kind == "In":
        equal = sorted({f"EqualTo{sorted((keys[0], value))}" for value in keys[1:]})
        return f"Or{equal}" if len(equal) > 1 else equal[0]
    return f"{kind}{_text(fields, names)}{keys}"


def _parts(tree: Tree) -> list[Tree]:
    """The operands of a chain of AND, or of OR."""
    return [part for child in tree[2] for part in (_parts(child) if child[0] == tree[0] else [child])]


def _text(value: Any, names: _Names) -> str:
    """The parts of a node beside its children, in one form; among them may be trees."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_text(value[key], names)}' for key in sorted(value))}}}"
    if isinstance(value, list) and value and isinstance(value[0], str) and _is_tree(value):
        return _key(value, names)
    if isinstance(value, list):
        return f"[{','.join(_text(part, names) for part in value)}]"
    return json.dumps(value)


def _is_tree(value: list[Any]) -> bool:
    if value[0] == COLUMN:
        return len(value) == 4 and isinstance(value[1], int)  # noqa: PLR2004 - input, name, reading
    return len(value) == 3 and isinstance(value[1], Mapping) and isinstance(value[2], list)  # noqa: PLR2004
