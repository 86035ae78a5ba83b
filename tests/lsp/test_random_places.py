"""Hover and completion at 200 words of the example chosen at random, against the manifest.

What a word should mean is found out here from the manifest and the text alone: by YAML's own reader for headers, by
Spark's rules for names in SQL. The answers of the server come from places that its compiler keeps.
"""

import random
import re
from collections import Counter
from dataclasses import dataclass

import pytest

from engine import Project
from engine.compile.types.builtin_functions import BUILTIN
from engine.errors import Location
from engine.lsp.answers.completions import completions
from engine.lsp.answers.hovers import hover
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import position_of
from engine.schema.all_blocks import BLOCKS

pytestmark = pytest.mark.slow

PLACES = 200
SEED = 37
KEYS = {key.name for name in ("model", "stream", "expectation", "column") for key in BLOCKS[name].keys}
NAME_IN_QUOTES = r"'(\w+)'"
COLUMN_KEYS = {"partition_by", "unique_key", "sequence_by", "check", "expression"}


@dataclass(frozen=True)
class Word:
    """A word of a model's file: with what qualifies it, and where it begins."""

    model: str
    file: str
    text: str
    start: int
    end: int


def words(opened):
    for model in opened.manifest.models:
        text = opened.text(model.file)
        for found in re.finditer(r"(?<![\w.])[A-Za-z_][\w.]*", text):
            yield Word(
                model.name, model.file, found[0].rstrip("."), found.start(), found.start() + len(found[0].rstrip("."))
            )


def field(type_, path):
    """The type of a field of a struct in Spark's spelling, which has no commas in its inner types here."""
    if not path:
        return type_
    return dict(part.split(": ") for part in type_.removeprefix("struct<").removesuffix(">").split(", "))[path[0]]


def of_node(manifest, model, node, path):
    """The type of a column of an input, with the one that its watermark makes."""
    known = {column.name: column.type for column in manifest.nodes[node].columns}
    for item in model.inputs:
        if item.node == node and item.watermark and item.watermark.expression:
            first, *rest = item.watermark.expression.split(".")
            known.setdefault(item.watermark.column, field(known[first], rest))
    return field(known[path[0]], path[1:]) if path[0] in known else None


def expected_in_header(opened, model, word, text):
    """The kind of the word, and what its hover holds."""
    before = text[text.rfind("\n", 0, word.start) + 1 : word.start]
    if " #" in before:
        return "comment", None
    is_key = text[word.end] == ":" and re.fullmatch(r"\s*(- )?|.*[{,] *", before)
    top = re.findall(r"^(\w+):", text[: word.end + 1], re.MULTILINE)[-1]
    if is_key:
        return expected_of_key(model, word, top, len(before) if not before.strip() else None)
    keys = re.findall(r"[{\s,](\w+): ", text[text.rfind(f"\n{top}:", 0, word.start) : word.start])
    return expected_of_value(opened, model, word, (top, keys[-1] if keys else top), text)


def expected_of_key(model, word, top, indent):
    outputs = {column.name: column.type for column in model.columns}
    of_user = {
        "streams": ("node", f"**{word.text}** ("),
        "windows": ("window", f"Window `{word.text}`: "),
        "columns": ("column", f"\n{word.text} {outputs.get(word.text)}\n"),
    }
    if indent == 2 and top in of_user:
        return of_user[top]
    return ("key", f"`{word.text}` (") if indent == 0 or word.text in KEYS else ("argument", None)


def expected_of_value(opened, model, word, keys, text):
    """Of a value below a key at the top, and the last key before it."""
    (top, last), path = keys, word.text.split(".")
    nodes = opened.manifest.nodes
    outputs = {column.name: column.type for column in model.columns}
    types: list[str | None] = []
    if top == "streams" and last in {"watermark", "dedup"}:
        stream = re.findall(r"^  ([\w.]+):", text[: word.start], re.MULTILINE)[-1]
        types = [of_node(opened.manifest, model, item.node, path) for item in model.inputs if item.name == stream]
    elif top == "windows":
        types = [of_node(opened.manifest, model, item.node, path) for item in model.inputs]
    elif COLUMN_KEYS & {top, last}:
        types = [outputs.get(word.text)]
    elif last == "field":
        to = re.findall(r"to: (\w+), $", text[: word.start - len("field: ")])[0]
        types = [of_node(opened.manifest, model, f"model.{to}", path)]
    elif (top == last == "streams") or (last == "to" and f"model.{word.text}" in nodes):
        return "node", f"**{word.text}** ("
    elif last == "on_fail" or (
        top == last and (BLOCKS["model"].choices(top) or BLOCKS["model"].forms[top] == "boolean")
    ):
        return "choice", f"`{last}` ("
    return ("column", f"\n{word.text} {types[0]}\n") if types and types[0] else ("word", None)


def aliases(model, text):
    """What each alias of the query stands for, by the text of its FROM."""
    found = {}
    for ref, source, table, alias in re.findall(
        r"(?:ref\('(\w+)'\)|source\('(\w+)', '(\w+)'\)) \}\}(?: as (\w+))?", text
    ):
        found[alias or ref or table] = f"model.{ref}" if ref else f"source.{source}.{table}"
    return found


def expected_in_jinja(opened, word, inside):
    if "ref(" in inside or "source(" in inside:
        return "node", f"**{'.'.join(re.findall(NAME_IN_QUOTES, inside))}** ("
    macro = next((one for one in opened.manifest.macros if one.name == word.text), None)
    return ("macro", f"{macro.name}({', '.join(macro.arguments)})") if macro else ("word", None)


def expected_in_sql(opened, model, word, text):
    before, after = text[: word.start], text[word.end :]
    opening, line = before.rfind("{{"), before.rpartition("\n")[2]
    if opening > before.rfind("}}"):
        return expected_in_jinja(opened, word, text[opening : text.index("}}", word.end)])
    if line.count("'") % 2 or "--" in line:
        return "comment", None
    outputs = {column.name: column.type for column in model.columns}
    if re.search(r"\bas $|\border by [^()]*$", before) and word.text in outputs:
        return "alias", f"\n{word.text} {outputs[word.text]}\n"
    if after.startswith("("):
        return ("function", f"\n{word.text}(") if word.text in BUILTIN else ("word", None)
    first, *rest = word.text.split(".")
    if first in model.windows:
        return "column", f"\n{word.text} {'timestamp' if rest else 'struct<'}"
    scope = aliases(model, text)
    nodes, path = ([scope[first]], rest) if first in scope and rest else (scope.values(), [first, *rest])
    types = [type_ for node in nodes if (type_ := of_node(opened.manifest, model, node, path))]
    return ("column", f"\n{word.text} {types[0]}\n") if types else ("word", None)


def expected(opened, word):
    text = opened.text(word.file)
    model = opened.manifest.model(word.model)
    in_header = word.start < text.find("---*/")
    return (expected_in_header if in_header else expected_in_sql)(opened, model, word, text)


def place(opened, word, offset):
    text = opened.text(word.file)
    before = text[:offset]
    return position_of(Location(word.file, before.count("\n") + 1, offset - before.rfind("\n")), text)


def offered(opened, word):
    """What is offered after the word was deleted, and its first letter typed; of `a.b` what follows the dot."""
    text = opened.text(word.file)
    begin = word.start + word.text.rfind(".") + 1
    opened.texts[word.file] = text[: begin + 1] + text[word.end :]
    try:
        return {item.label: item for item in completions(opened, word.file, place(opened, word, begin + 1))}
    finally:
        del opened.texts[word.file]


@pytest.fixture
def opened(project):
    found = OpenProject(Project(project))
    found.compile_all()
    assert not found.manifest.errors
    return found


def test_hover_and_completion_are_right_at_random_places(opened):
    chosen = random.Random(SEED).sample(list(words(opened)), PLACES)
    kinds, wrong = Counter(), []
    for word in chosen:
        kind, part = expected(opened, word)
        kinds[kind] += 1
        shown = hover(
            opened, word.file, place(opened, word, word.start + random.Random(SEED).randrange(len(word.text)))
        )
        said = shown.contents.value if shown else None
        if (part is None) != (said is None) or (part is not None and part not in said):
            wrong.append((word, kind, part, said))
        items = offered(opened, word)
        label = word.text.rpartition(".")[2]
        if kind in {"word", "comment", "argument", "window"}:
            continue
        if kind in {"node", "choice"} or (kind == "column" and word.text in opened.manifest.model(word.model).windows):
            right = any(label in name for name in items)
        elif kind == "column":
            right = label in items and (items[label].detail or "") in part
        else:
            right = label in items
        if not right:
            wrong.append((word, kind, f"offered: {sorted(items)[:20]}"))
    assert wrong == []
    assert min(kinds[kind] for kind in ("key", "column", "node", "alias", "word")) >= 5, kinds


def test_behind_an_alias_are_the_columns_of_its_node_and_no_others(opened):
    checked = 0
    for word in words(opened):
        model, text = opened.manifest.model(word.model), opened.text(word.file)
        scope, alias = aliases(model, text), word.text.split(".")[0]
        jinja = text.rfind("{{", 0, word.start) > text.rfind("}}", 0, word.start)
        if word.text.count(".") == 1 and alias in scope and word.start > text.find("---*/") and not jinja:
            node = opened.manifest.nodes[scope[alias]]
            build_server = {i.watermark.column for i in model.inputs if i.node == node.id and i.watermark}
            assert set(offered(opened, word)) == {column.name for column in node.columns} | build_server
            checked += 1
    assert checked > 10
