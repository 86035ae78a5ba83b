"""Reading a declared schema (`id string, data struct<origin: string>`) as Spark reads it, without Spark."""

from __future__ import annotations

import re

from engine.compile.nodes.manifest import Column
from engine.errors import ProjectError, near
from engine.project.yaml_section import UNKNOWN, Section

_TOKEN = re.compile(
    r"\s+|(?P<quoted>`(?:[^`]|``)+`)|(?P<word>\w+)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<sign>[<>(),:])"
)
_WORD = re.compile(r"\w+")
_ALIASES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "dec": "decimal", "numeric": "decimal", "timestamp_ltz": "timestamp",
}  # fmt: skip
_SIMPLE = {
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp",
    "timestamp_ntz", "timestamp_ltz", "string", "binary", "void", "variant",
}  # fmt: skip
# How strings are compared without a collation.
_BYTES = "utf8_binary"
_NESTED = {"array": 1, "map": 2, "struct": 0}
# Levels of types in types: what reads a type calls itself for each.
MAX_DEPTH = 100
_HINT = "Write names and Spark types: id string, time timestamp, data struct<origin: string>."


def _fault(message: str, hint: str = _HINT) -> ProjectError:
    return ProjectError("bad-schema", message, hint)


def read_schema(section: Section) -> tuple[Column, ...]:
    """The columns of a schema; empty, and a finding, if it cannot be read."""
    if section.value is UNKNOWN or not isinstance(section.value, str):
        return ()
    try:
        return _Parser(section.value).columns()
    except ProjectError as fault:
        section.report("bad-schema", fault.diagnostic.message, fault.diagnostic.hint)
        return ()


def read_ddl(text: str) -> tuple[Column, ...]:
    """The columns of a schema that is known to be right."""
    return _Parser(text).columns()


def spelt(type_: str) -> str:
    """A type that is known to be right, as Spark prints it."""
    return _Parser(type_).only_type("type")


def read_type(section: Section, column: str) -> str | None:
    """The type of one column; None, and a finding, if it cannot be read."""
    if section.value is UNKNOWN:
        return None
    text = section.text()
    if not text and not isinstance(section.value, str):
        return None
    try:
        return _Parser(text).only_type(f"column '{column}'")
    except ProjectError as fault:
        section.report("bad-schema", fault.diagnostic.message, fault.diagnostic.hint)
        return None


class _Parser:
    """A recursive-descent parser of Spark's column lists."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = self.depth = 0
        offset = 0
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                raise _fault(f"the schema cannot be read at '{text[offset:].split(maxsplit=1)[0]}'")
            if match.lastgroup:
                self.tokens.append((match.lastgroup, match[match.lastgroup]))
            offset = match.end()

    @property
    def sign(self) -> str:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        return text if kind == "sign" else ""

    @property
    def word(self) -> str:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        return text.lower() if kind == "word" else ""

    def columns(self) -> tuple[Column, ...]:
        columns: dict[str, Column] = {}
        while self.at < len(self.tokens):
            name, type_ = self.field("column", colon=False)
            if name.lower() in columns:
                raise _fault(f"the schema names '{name}' twice", "Keep one of them.")
            columns[name.lower()] = Column(name, type=type_)
            if self.at < len(self.tokens):
                self.expect(",", f"after the column '{name}'")
                if self.at == len(self.tokens):
                    raise _fault("the schema ends with a comma", "Remove the comma.")
        if not columns:
            raise _fault("the schema has no columns")
        return tuple(columns.values())

    def only_type(self, owner: str) -> str:
        type_ = self.type(owner)
        if self.at < len(self.tokens):
            raise _fault(f"the type of the {owner} has '{self.tokens[self.at][1]}' after its end")
        return type_

    def field(self, noun: str, *, colon: bool) -> tuple[str, str]:
        name = self.name(noun)
        if self.sign == ":":
            if not colon:
                raise _fault(f"the column '{name}' is followed by a colon", f"Write '{name} string'.")
            self.at += 1
        type_ = self.type(f"{noun} '{name}'")
        if self.word == "not":
            self.at += 1
            self.expect_word("null")
        if self.word == "comment":
            self.at += 2
        return name, type_

    def name(self, noun: str) -> str:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "the end")
        if kind not in {"word", "quoted"} or text.isdigit():
            raise _fault(f"the schema has '{text}' where the name of a {noun} is expected")
        self.at += 1
        return text[1:-1].replace("``", "`") if kind == "quoted" else text

    def type(self, owner: str) -> str:
        word = _ALIASES.get(self.word, self.word)
        if not word:
            raise _fault(f"the {owner} has no type")
        self.at += 1
        if word in _NESTED:
            return self.nested(word, owner)
        if word == "decimal":
            return word + self.precision(owner)
        if word == "interval":
            return self.interval()
        if word not in _SIMPLE:
            type_names = [*_SIMPLE, "decimal", *_NESTED, *_ALIASES]
            message = f"the {owner} has the type '{word}', which Spark does not know"
            raise _fault(message, _OTHER_TYPES.get(word) or near(word, type_names))
        if self.word == "collate":
            self.collation(owner)
        return word

    def collation(self, owner: str) -> None:
        """Pass the collation that strings have anyway; readers of sources give no other one."""
        self.at += 1
        word = self.word
        self.at += 1
        if word != _BYTES:
            collation_name = word.upper() or "that is not named"
            hint = (
                f"Declare string, and give it its collation in the query: name collate {word.upper() or 'UTF8_LCASE'}."
            )
            raise _fault(f"the {owner} has the collation {collation_name}, which a declared column cannot have", hint)

    def nested(self, word: str, owner: str) -> str:
        self.expect("<", f"after '{word}' in the {owner}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"types are nested more than {MAX_DEPTH} levels deep"
            raise _fault(message, "Nest them less deeply, or declare a string and read it with from_json.")
        inner: list[str] = []
        while self.sign != ">":
            if inner:
                self.expect(",", f"inside '{word}' in the {owner}")
            inner.append(self.member() if word == "struct" else self.type(owner))
        self.at += 1
        self.depth -= 1
        if _NESTED[word] not in {0, len(inner)}:
            raise _fault(f"the {owner} has '{word}' of {len(inner)} types", f"It takes {_NESTED[word]}.")
        return f"{word}<{', '.join(inner)}>"

    def member(self) -> str:
        name, type_ = self.field("field", colon=True)
        # The text is read again, by Spark too: a name that is not a word stays in its quotes.
        written = name if _WORD.fullmatch(name) else f"`{name.replace('`', '``')}`"
        return f"{written}: {type_}"

    def precision(self, owner: str) -> str:
        numbers: list[str] = []
        if self.sign == "(":
            self.at += 1
            while self.word.isdecimal():
                numbers.append(self.word)
                self.at += 1
                if self.sign == ",":
                    self.at += 1
            self.expect(")", f"after 'decimal' in the {owner}")
            if not 1 <= len(numbers) <= len(("precision", "scale")):
                raise _fault(f"the {owner} has a decimal of {len(numbers)} numbers", "Write decimal(18, 2).")
        precision, scale = [*numbers, *("10", "0")[len(numbers) :]]
        return f"({precision},{scale})"

    def interval(self) -> str:
        words = ["interval"]
        while self.word in {"year", "month", "day", "hour", "minute", "second", "to"}:
            words.append(self.word)
            self.at += 1
        return " ".join(words)

    def expect(self, sign: str, where: str) -> None:
        if self.sign != sign:
            raise _fault(f"the schema is missing a '{sign}' {where}")
        self.at += 1

    def expect_word(self, word: str) -> None:
        if self.word != word:
            raise _fault(f"the schema is missing the word {word.upper()}")
        self.at += 1


_OTHER_TYPES = {
    "varchar": "Write string.", "char": "Write string.", "text": "Write string.", "time": "Write string.",
     "uuid": "Write string.", "json": "Write string, or variant.",
    "datetime": "Write timestamp.", "timestamptz": "Write timestamp.", "bool": "Write boolean.",
    "number": "Write decimal(18, 2) or double.", "str": "Write string.",
    "int64": "Write bigint.", "float64": "Write double.", "object": "Write struct<...>, map<...> or variant.",
}  # fmt: skip
