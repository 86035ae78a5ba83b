"""The keys of selectors.yml."""

from __future__ import annotations

from typing import Final

from engine.schema.config_key import NONE, REQUIRED, ConfigBlock, ConfigKey, ValueForm

TERM: Final = ConfigBlock(
    "term",
    "a definition",
    "definition: method and value",
    "One term with what is upstream and downstream of it.",
    (
        ConfigKey(
            "method", ValueForm.TEXT, "required with `value`", "a selection method, or `fqn` for names", "method: tag"
        ),
        ConfigKey("value", ValueForm.TEXT, "required with `method`", "what the method looks for", "value: hourly"),
        ConfigKey("parents", ValueForm.BOOLEAN, "`false`", "with what is upstream: `+x`", "parents: true"),
        ConfigKey("children", ValueForm.BOOLEAN, "`false`", "with what is downstream: `x+`", "children: true"),
        ConfigKey(
            "childrens_parents",
            ValueForm.BOOLEAN,
            "`false`",
            "with what is downstream and all that it needs: `@x`",
            "childrens_parents: true",
        ),
        ConfigKey("parents_depth", ValueForm.INTEGER, "all", "so many levels upstream: `2+x`", "parents_depth: 2"),
        ConfigKey("children_depth", ValueForm.INTEGER, "all", "so many levels downstream: `x+1`", "children_depth: 1"),
        ConfigKey(
            "exclude",
            ValueForm.TREE,
            NONE,
            "definitions of what is left out",
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
        "the nodes of any of these definitions; `exclude` among them removes some",
        "union: [tag:hourly, {exclude: [tag:slow]}]",
        block="definition",
    ),
    ConfigKey(
        "intersection",
        ValueForm.TREE,
        NONE,
        "the nodes that all of these definitions have; `exclude` among them removes some",
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
        ConfigKey("name", ValueForm.TEXT, REQUIRED, "name of the selector", "name: nightly"),
        ConfigKey(
            "description",
            ValueForm.TEXT,
            NONE,
            "for people: shown when a selector is not found, and in manifest.json",
            "description: What the night builds.",
        ),
        ConfigKey(
            "definition",
            ValueForm.TREE,
            REQUIRED,
            "what it selects",
            "definition: {union: [tag:nightly, source:shop]}",
            block="definition",
        ),
        ConfigKey(
            "default",
            ValueForm.BOOLEAN,
            "`false`",
            "`true`: used by commands without `--select` and `--selector`",
            "default: true",
        ),
    ),
)

SELECTOR_FILE: Final = ConfigBlock(
    "selector_file",
    "selectors.yml",
    "selectors.yml",
    "Named selections, beside project.yml.",
    (
        ConfigKey(
            "selectors",
            ValueForm.BLOCKS,
            NONE,
            "the selectors",
            "selectors: [{name: nightly, definition: tag:nightly}]",
            block="selector",
        ),
    ),
)
