"""Columns that have another name now (`renamed_from`), in the facts of the query that wrote a table under the old one.

Both sides of a comparison have the new names then: what differs beside them is an edit like any other. Texts are
changed token by token, and the form in which a state is taken apart gets the names (`stateful_steps.meaning`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from engine.compile import Manifest, Model
from engine.compile.output.output_columns import outermost
from engine.compile.sql.dialect import parse_text, tokenize
from engine.compile.sql.normalize import spelling_of
from engine.plan.deployed.column_names import earlier_names

Names = Mapping[str, str]
_LISTS = ("unique_key", "sequence_by", "check", "exclude")
_STATE = ("state", "began", "keyed")
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}


def with_names_of_now(manifest: Manifest, model: Model, facts: Mapping[str, Any]) -> Mapping[str, Any]:
    own = _names(model)
    inputs = {item.name: _names(node) for item in model.inputs
              if isinstance(node := manifest.nodes.get(item.node), Model)}  # fmt: skip
    inputs = {name: names for name, names in inputs.items() if names}
    if not own and not inputs:
        return facts
    apart = {key: _apart(facts[key], own, inputs) for key in _STATE if key in facts}
    read = [_input(item, inputs.get(str(item["name"]), {})) for item in facts["inputs"]]
    # Of several inputs only their columns show whose an unqualified one is: the form of the state has them.
    alone = next(iter(inputs.values()), {}) if len(facts["inputs"]) == 1 and not facts.get("inlined") else {}
    sql = _written(str(facts["sql"]), own, alone)
    return {**facts, **apart, **_of_table(facts, own), "inputs": read, "sql": sql}


def _names(model: Model) -> dict[str, str]:
    return {old: new.lower() for old, new in earlier_names(model).items()}


def _apart(said: Mapping[str, Any], own: Names, inputs: Mapping[str, Names]) -> dict[str, Any]:
    read = [{**item, "renamed": inputs[str(item["name"])]} if str(item["name"]) in inputs else item
            for item in said["inputs"]]  # fmt: skip
    return {**said, "inputs": read, "renamed": dict(own)}


def _input(item: Mapping[str, Any], names: Names) -> Mapping[str, Any]:
    if not names:
        return item
    mark = item.get("watermark")
    if mark:
        mark = {**mark, "column": names.get(str(mark["column"]).lower(), mark["column"])}
    return {**item, "watermark": mark, "dedup": sorted(names.get(name.lower(), name) for name in item["dedup"])}


def _of_table(facts: Mapping[str, Any], own: Names) -> dict[str, Any]:
    found: dict[str, Any] = {
        "partition_by": [{**part, "column": _now(part["column"], own)} for part in facts.get("partition_by") or ()],
        "expectations": sorted([_reworded(text, own), on] for text, on in facts.get("expectations") or ()),
    }
    write = dict(facts.get("write") or {})
    for key in _LISTS:
        if isinstance(write.get(key), list):
            names = [own.get(name, name) for name in write[key]]
            write[key] = names if key == "sequence_by" else sorted(names)
    if "delete_when" in write:
        write["delete_when"] = _reworded(write["delete_when"], own)
    table = dict(facts.get("table") or {})
    if "sort_by" in table:
        table["sort_by"] = [{**part, "column": _now(part["column"], own)} for part in table["sort_by"]]
    if "columns" in table:
        table["columns"] = {own.get(name, name): kind for name, kind in table["columns"].items()}
    if "expectations" in table:
        table["expectations"] = sorted([name, _reworded(text, own), on] for name, text, on in table["expectations"])
    found |= {"write": write, "table": table}
    return {key: value for key, value in found.items() if key in facts}


def _now(name: str, own: Names) -> str:
    return own.get(name.lower(), name)


def _reworded(text: str, own: Names) -> str:
    try:
        tokens = tokenize(text)
    except SqlglotError:
        return text
    parts, at = [], 0
    for index, token in enumerate(tokens):
        field = index > 0 and tokens[index - 1].token_type is TokenType.DOT
        called = index + 1 < len(tokens) and tokens[index + 1].token_type is TokenType.L_PAREN
        if token.token_type in _NAMES and token.text.lower() in own and not (field or called):
            parts += [text[at : token.start], f"`{own[token.text.lower()]}`"]
            at = token.end + 1
    return spelling_of("".join([*parts, text[at:]])) if parts else text


def _written(sql: str, own: Names, read: Names) -> str:
    try:
        edits = sorted(_edits(sql, own, read))
    except (SqlglotError, RecursionError, KeyError):
        return sql
    for start, end, text in reversed(edits):
        sql = sql[:start] + text + sql[end:]
    return spelling_of(sql) if edits else sql


def _edits(sql: str, own: Names, read: Names) -> Iterator[tuple[int, int, str]]:
    tree = parse_text(sql)
    query = outermost(tree)
    while isinstance(query, exp.SetOperation):
        query = outermost(query.left)
    items = {id(item): item for item in (query.expressions if isinstance(query, exp.Select) else ())}
    for item in items.values():
        alias = item.args["alias"] if isinstance(item, exp.Alias) else None
        if isinstance(alias, exp.Identifier) and alias.name.lower() in own:
            yield (*_place(alias), f"`{own[alias.name.lower()]}`")
    for column in tree.find_all(exp.Column):
        name = column.name.lower()
        new, given = read.get(name, name), own.get(name, name)
        shown = f"`{new}`" if id(column) not in items or given == new else f"`{new}` as `{given}`"
        if isinstance(column.this, exp.Identifier) and (new != name or (id(column) in items and given != name)):
            yield (*_place(column.this), shown)


def _place(name: exp.Identifier) -> tuple[int, int]:
    return name.meta["start"], name.meta["end"] + 1
