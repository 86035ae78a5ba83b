"""The reference of every key in Markdown: docs/reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.schema.all_blocks import FILES_OF_A_PROJECT, ConfigFile
from engine.schema.config_key import EVERY_KIND, ConfigBlock, ConfigKey, ValueForm

INDEX: Final = "README"
_MADE: Final = "Generated from the code by `make reference`."
_ABOUT: Final = {
    "project": "The file `project.yml`: the project, its targets, their connections.",
    "sources": "Files under `sources/`: the inputs of models.",
    "model": "The header of a model, and folder defaults in `project.yml`.",
    "tests": "Files under `tests/`: unit tests; data tests and columns, wherever they are listed.",
    "exposures": "YAML files under `models/`: consumers of the project's tables, and deliveries of their rows.",
    "selectors": "The file `selectors.yml`: named selections.",
}
_TITLES: Final = {
    "project": "project.yml",
    "sources": "sources",
    "model": "the header of a model",
    "tests": "tests and columns",
    "exposures": "exposures and sinks",
    "selectors": "selectors.yml",
}
_BLOCKS: Final = {ValueForm.BLOCK, ValueForm.BLOCKS, ValueForm.BY_NAME, ValueForm.TESTS}


def reference_pages() -> dict[str, str]:
    pages = {f"{file.name}.md": _page(file) for file in FILES_OF_A_PROJECT}
    return {f"{INDEX}.md": _index(), **pages}


def _index() -> str:
    rows = [f"| [{_TITLES[file.name]}]({file.name}.md) | {_ABOUT[file.name]} |" for file in FILES_OF_A_PROJECT]
    lines = [
        "# Reference of keys",
        "",
        f"Every key that a project may write. {_MADE}",
        "",
        "| page | keys of |",
        "|---|---|",
        *rows,
        "",
        "The same as JSON Schemas for editors: `engine compile` and `engine build` write them to `target/schema/`.",
        "With the YAML extension of VS Code, or any editor that runs yaml-language-server, this first line in a",
        "file under `sources/` turns on completion, help and errors while you type:",
        "",
        "    # yaml-language-server: $schema=../target/schema/sources.json",
    ]
    return "\n".join(lines) + "\n"


def _page(file: ConfigFile) -> str:
    lines = [f"# Reference: {_TITLES[file.name]}", "", f"{_ABOUT[file.name]} {_MADE}", ""]
    for block in file.blocks:
        lines += _section(block)
    return "\n".join(lines[:-1]) + "\n"


def _section(block: ConfigBlock) -> Iterator[str]:
    yield f"## {block.title}"
    yield ""
    yield block.text
    yield ""
    if not block.keys:
        return
    kinds = any(key.kinds != EVERY_KIND for key in block.keys)
    heads = ["key", "type", "default", "meaning", *(["applies to"] if kinds else []), "since", "example"]
    yield _row(heads)
    yield "|" + "---|" * len(heads)
    for key in block.keys:
        yield _row(_cells(key, kinds=kinds))
    yield ""


def _cells(key: ConfigKey, *, kinds: bool) -> Iterator[str]:
    yield f"`{key.name}`"
    yield _type(key)
    yield key.default
    yield f"Not supported in this version: {key.meaning}" if key.later else key.meaning
    if kinds:
        yield "all" if key.kinds == EVERY_KIND else ", ".join(kind.replace("_", " ") for kind in key.kinds)
    yield key.since
    yield f"`{key.example}`"


def _type(key: ConfigKey) -> str:
    if key.choices:
        choices = ", ".join(f"`{choice}`" for choice in key.choices)
        return f"one or a list of {choices}" if key.form is ValueForm.TEXTS else choices
    forms = [_linked(key, form) for form in (key.form, *key.also)]
    return " or ".join(dict.fromkeys(forms))


def _linked(key: ConfigKey, form: ValueForm) -> str:
    if not key.block or not (form in _BLOCKS or form is ValueForm.TREE):
        return str(form.value)
    word = "mapping" if form is ValueForm.TREE else form.value
    return f"[{word}]({_place(key.block)})"


def _place(name: str) -> str:
    """Where a block is in the reference."""
    file, block = next((file, block) for file in FILES_OF_A_PROJECT for block in file.blocks if block.name == name)
    return f"{file.name}.md#{_anchor(block.title)}"


def _anchor(title: str) -> str:
    without_markup = re.sub(r"&\w+;|[^\w\s-]", "", title.lower())
    return re.sub(r"\s", "-", without_markup.strip())


def _row(cells: Iterator[str] | list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
