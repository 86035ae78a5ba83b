"""The keys of selectors.yml."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

TERM: Final = ConfigBlock(
    "term",
    "a definition",
    "definition: method and value",
    "One term, optionally with the nodes upstream and downstream of it.",
    (
        ConfigKey(
            "method", ValueForm.TEXT, "required with `value`", "Selection method, or `fqn` for names", "method: tag"
        ),
        ConfigKey("value", ValueForm.TEXT, "required with `method`", "Value for the method", "value: hourly"),
        ConfigKey("parents", ValueForm.BOOLEAN, "`false`", "Include all upstream nodes: `+x`", "parents: true"),
        ConfigKey("children", ValueForm.BOOLEAN, "`false`", "Include all downstream nodes: `x+`", "children: true"),
        ConfigKey(
            "childrens_parents",
            ValueForm.BOOLEAN,
            "`false`",
            "Include all downstream nodes and everything they need: `@x`",
            "childrens_parents: true",
        ),
        ConfigKey(
            "parents_depth", ValueForm.INTEGER, "all", "Number of upstream levels to include: `2+x`", "parents_depth: 2"
        ),
        ConfigKey(
            "children_depth",
            ValueForm.INTEGER,
            "all",
            "Number of downstream levels to include: `x+1`",
            "children_depth: 1",
        ),
        ConfigKey(
            "exclude",
            ValueForm.TREE,
            NONE,
            "Definitions of the nodes to leave out",
            "exclude: [tag:slow]",
            block="definition",
        ),
    ),
)

_COMBINED = (
    ConfigKey(
        "union",
        ValueForm.TREE,
        NONE,
        "Nodes in any of these definitions, minus the nodes of an `exclude`",
        "union: [tag:hourly, {exclude: [tag:slow]}]",
        block="definition",
    ),
    ConfigKey(
        "intersection",
        ValueForm.TREE,
        NONE,
        "Nodes in all of these definitions, minus the nodes of an `exclude`",
        "intersection: [tag:hourly, path:models/marts]",
        block="definition",
    ),
)


def _definition(*keys: ConfigKey) -> ConfigBlock:
    text = (
        "A selection as on the command line (`tag:hourly`), one method (`{tag: hourly}`), a method and a value, or a "
        "combination."
    )
    return ConfigBlock("definition", "a definition", "definition", text, keys, open=True, plain=(ValueForm.TEXT,))


DEFINITION: Final = _definition(*_COMBINED, *TERM.keys)
COMBINATIONS: Final = {key.name: _definition(key) for key in _COMBINED}

SELECTOR: Final = ConfigBlock(
    "selector",
    "a selector",
    "selectors",
    "A named selection: `engine build --selector nightly`.",
    (
        ConfigKey("name", ValueForm.TEXT, REQUIRED, "Name of the selector", "name: nightly"),
        ConfigKey(
            "description",
            ValueForm.TEXT,
            NONE,
            "Text for people, shown in manifest.json and when a selector is not found",
            "description: Models of the nightly build.",
        ),
        ConfigKey(
            "definition",
            ValueForm.TREE,
            REQUIRED,
            "Nodes to select",
            "definition: {union: [tag:nightly, source:shop]}",
            block="definition",
        ),
        ConfigKey(
            "default",
            ValueForm.BOOLEAN,
            "`false`",
            "`true`: commands without `--select` and `--selector` use it",
            "default: true",
        ),
    ),
)

SELECTOR_FILE: Final = ConfigBlock(
    "selector_file",
    "selectors.yml",
    "selectors.yml",
    "Named selections, in a file next to project.yml.",
    (
        ConfigKey(
            "selectors",
            ValueForm.BLOCKS,
            NONE,
            "List of selectors",
            "selectors: [{name: nightly, definition: tag:nightly}]",
            block="selector",
        ),
    ),
)
