"""SQL that finds the keys of the output rows that changed, from the rows of the inputs that changed.

The FROM and WHERE of the query run with one input replaced by its changed rows; the union over the inputs is a superset
of what changed. Rows that were removed meet the other inputs as they were, rows that were added as they are: otherwise
a group whose rows vanish from both sides of a join is missed. A changed outer side is joined as an inner one, and
conditions on outer sides are dropped: otherwise a row that lost its last match is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.compile.refresh.query_block import BlockSource, NotFollowedError, QueryBlock, quoted
from engine.compile.refresh.read_blocks import blocks_of
from engine.compile.sql.dialect import tree_of


class InputState(StrEnum):
    """Which rows of an input are meant: all before or after the change, or those that only one of them has."""

    BEFORE = "before"
    AFTER = "after"
    REMOVED = "removed"
    ADDED = "added"


Naming = Callable[[str, InputState], str]
_SIDES = ((InputState.BEFORE, InputState.REMOVED), (InputState.AFTER, InputState.ADDED))


@dataclass(frozen=True, slots=True)
class FollowedQuery:
    """A query whose changes can be derived; `branches`: one, or those of a UNION ALL."""

    branches: tuple[QueryBlock, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Output columns by which rows can be replaced, in lower case."""
        first = self.branches[0]
        return tuple(name for name in first.keys if all(self._at(branch, name) for branch in self.branches))

    def _at(self, branch: QueryBlock, name: str) -> str | None:
        """The expression of a branch for an output column: by its place, as only the first branch names columns."""
        names = self.branches[0].names
        same = len(branch.names) == len(names) and names.count(name) == 1
        key = branch.own_keys[names.index(name)] if same else None
        return key.text if key is not None else None

    def search(self, keys: Sequence[str], changed: Sequence[str], relation_name: Naming) -> str:
        """Return SQL for the keys of all output rows that may have changed, some of them more than once.

        `changed` are inputs; `relation_name` gives what an input is called in one of its states.
        """
        terms: list[str] = []
        for branch in self.branches:
            texts = [self._at(branch, key) for key in keys]
            if None in texts:
                raise NotFollowedError(f"rows cannot be distinguished by {', '.join(keys)}")
            items = ", ".join(f"{text} AS {quoted(key)}" for text, key in zip(texts, keys, strict=True))
            for whole, part in _SIDES:
                terms += (
                    f"SELECT {items} {rest}" for rest in _changed_rows(branch, changed, relation_name, whole, part)
                )
        return "\nUNION ALL\n".join(terms)


def follow_changes(sql: str, columns: Mapping[str, Sequence[str]]) -> FollowedQuery:
    """Say how the changes of a query follow from those of its inputs; raise NotFollowedError if they do not.

    `columns` are in the order of `*`, by the name that the input has in the query without quotes.
    """
    tree = tree_of(sql)
    if tree is None:
        raise NotFollowedError("the query is not read with certainty")
    return FollowedQuery(blocks_of(tree, sql, columns))


def _changed_rows(
    block: QueryBlock, changed: Sequence[str], relation_name: Naming, whole: InputState, part: InputState
) -> Iterator[str]:
    """Yield FROM and WHERE with each changed input replaced in turn."""
    where = f" WHERE {' AND '.join(f'({text})' for text in block.inner_conditions)}" if block.inner_conditions else ""
    for index, source in enumerate(block.sources):
        for relation in _changed_relations(source, changed, relation_name, whole, part):
            parts = [
                _join_text(one, relation if at == index else _relation(one, relation_name, whole), inner=at == index)
                for at, one in enumerate(block.sources)
            ]
            yield f"FROM {' '.join(parts)}{where}"


def _changed_relations(
    source: BlockSource, changed: Sequence[str], relation_name: Naming, whole: InputState, part: InputState
) -> Iterator[str]:
    """Yield what represents the changed rows of a source; none if it did not change."""
    if source.inner is None:
        if source.view in changed:
            yield relation_name(source.view, part)
        return
    for rest in _changed_rows(source.inner, changed, relation_name, whole, part):
        yield f"({source.inner.query(rest)})"


def _relation(source: BlockSource, relation_name: Naming, state: InputState) -> str:
    if source.inner is None:
        return relation_name(source.view, state)
    block = source.inner
    parts = " ".join(_join_text(one, _relation(one, relation_name, state)) for one in block.sources)
    where = f" WHERE {block.where}" if block.where else ""
    return f"({block.query(f'FROM {parts}{where}')})"


def _join_text(source: BlockSource, relation: str, *, inner: bool = False) -> str:
    alias = f"{relation} AS {quoted(source.alias)}"
    if not source.join:
        return alias
    word = "INNER" if inner and source.outer else source.join
    return f"{word} JOIN {alias}" + (f" ON {source.on}" if source.on else "")
