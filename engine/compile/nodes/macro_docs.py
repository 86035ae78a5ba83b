"""The documentation of the project's macros: place, text and the comment before each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from engine.compile.nodes.manifest import Macro
from engine.jinja import MacroFile

# What begins in vain is looked for once: a file is read in one go, however it is written.
_HEAD = re.compile(r"\{%[-+]?\s*+macro\s++(\w++)\s*+\(")
_HEAD_END = re.compile(r"\)\s*+[-+]?%\}")
_END = re.compile(r"\{%[-+]?\s*+endmacro\s*+[-+]?%\}")
_TAG_END = re.compile(r"[%}]\}")
_TAG = re.compile(r"\{[{%]")
_CALL = re.compile(r"(?<![\w.])([\w.]++)\s*+\(")
_NO_ARGUMENT = re.compile(r"\W.*", re.DOTALL)


def read_macros(files: Iterable[MacroFile]) -> tuple[Macro, ...]:
    macros = {macro.name: macro for file in files for macro in _macros(file)}
    return tuple(macros.values())


def _macros(file: MacroFile) -> Iterator[Macro]:
    text, at = file.text, 0
    while head := _HEAD.search(text, at):
        head_end = _HEAD_END.search(text, head.end())
        end = _END.search(text, head_end.end()) if head_end else None
        if head_end is None or end is None:
            return
        name = f"{file.package}.{head[1]}" if file.package else head[1]
        parts = text[head.end() : head_end.start()].split(",")
        arguments = tuple(filter(None, (_NO_ARGUMENT.sub("", part.strip()) for part in parts)))
        comment = _comment(text[at : head.start()].rstrip())
        yield Macro(name, file.file, text[head.start() : end.end()], arguments, " ".join(comment.split()))
        at = end.end()


def _comment(text: str) -> str:
    if not text.endswith("#}"):
        return ""
    begin = text.find("{#", max(text.rfind("#}", 0, -2), 0))
    return text[begin + 2 : -2].removeprefix("-").removesuffix("-") if begin >= 0 else ""


def _tags(text: str) -> Iterator[str]:
    at = 0
    while begin := _TAG.search(text, at):
        end = _TAG_END.search(text, begin.end())
        if end is None:
            return
        yield text[begin.start() : end.end()]
        at = end.end()


def macros_used(text: str, names: Iterable[str]) -> tuple[str, ...]:
    if "{" not in text:
        return ()
    called = {name for tag in _tags(text) for name in _CALL.findall(tag)}
    return tuple(name for name in names if name in called)
