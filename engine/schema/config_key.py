"""A key of a configuration file, and the block of keys that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# Of the package: the JSON Schemas of editors, which are made from the keys.
# The version that introduced the keys without another `since`.
FIRST = "0.1"
REQUIRED = "required"
NONE = "none"
# Kinds of models, as `materialized:` has them.
STREAMING_TABLE, TABLE, VIEW, EPHEMERAL = "streaming_table", "table", "view", "ephemeral"
EVERY_KIND = (STREAMING_TABLE, TABLE, VIEW, EPHEMERAL)


class ValueForm(StrEnum):
    """What the value of a key looks like; a kind of source gets the Python type behind it."""

    TEXT = "string"  # str; numbers as they are written
    TEXTS = "string or list"  # one or a list: tuple[str, ...]
    NAME = "name"  # str: lower-case letters, digits, underscores
    SQL = "SQL"  # str
    INTEGER = "integer"  # int, from 1
    COUNT = "integer, 0 or more"  # int, from 0
    BOOLEAN = "boolean"  # bool
    DURATION = "duration"  # str as Spark reads it: '10 minutes'
    TIME = "timestamp"  # str
    PATH = "path"  # str, a folder or file
    MAPPING = "mapping"  # dict[str, str]
    BLOCK = "mapping of keys"  # a mapping with the keys of a block
    TREE = "any value"  # as YAML has it; whoever reads it checks it
    VALUES = "mapping of values"  # names of the user, each with any value
    BLOCKS = "list of mappings"  # each with the keys of a block
    BY_NAME = "mapping by name"  # names of the user, each with a block
    TESTS = "list of tests"  # names of tests, or a mapping of one name to its arguments
    ROWS = "rows"  # a list of mappings, CSV, a query, or a mapping that says which


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key.

    Attributes:
        default: what holds without it, `required` or `none`.
        meaning: what it does, one line of Markdown without a full stop.
        example: YAML of a use, beginning with the key.
        also: other forms that its value may have.
        block: name of the block whose keys its value has.
        choices: the values that it takes; empty: any of its form.
        kinds: the kinds of models that it applies to.
        later: it is known, and rejected: this version does not support it.
    """

    name: str
    form: ValueForm
    default: str
    meaning: str
    example: str
    also: tuple[ValueForm, ...] = ()
    block: str = ""
    choices: tuple[str, ...] = ()
    kinds: tuple[str, ...] = EVERY_KIND
    since: str = FIRST
    later: bool = False

    @property
    def required(self) -> bool:
        """Whether its block is incomplete without it."""
        return self.default == REQUIRED


@dataclass(frozen=True, slots=True)
class ConfigBlock:
    """The keys of one kind of mapping.

    Attributes:
        name: a short name, as `ConfigKey.block` has it.
        what: what the mapping is in messages: "a stream".
        text: what it is, for the reference.
        keys: the keys, in the order of the reference.
        open: further keys are the user's own.
        plain: forms that may be written in place of the mapping.
        later: names of the keys that this version rejects.
    """

    name: str
    what: str
    title: str
    text: str
    keys: tuple[ConfigKey, ...]
    open: bool = False
    plain: tuple[ValueForm, ...] = ()
    names: frozenset[str] = field(init=False)
    later: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(key.name for key in self.keys))
        object.__setattr__(self, "later", frozenset(key.name for key in self.keys if key.later))

    @property
    def forms(self) -> Mapping[str, ValueForm]:
        return {key.name: key.form for key in self.keys}

    def choices(self, name: str) -> tuple[str, ...]:
        return next(key.choices for key in self.keys if key.name == name)
