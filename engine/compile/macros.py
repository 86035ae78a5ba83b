"""The project's macros as they are told: where each stands, its text, and the comment before it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.compile.manifest import Macro
from engine.jinja import MacroFile

_MACRO = re.compile(
    r"(?:\{#-?(?P<said>(?:(?!#\}).)*?)-?#\}\s*)?"
    r"(?P<text>\{%[-+]?\s*macro\s+(?P<name>\w+)\s*\((?P<arguments>.*?)\)\s*[-+]?%\}.*?\{%[-+]?\s*endmacro\s*[-+]?%\})",
    re.DOTALL,
)
_TAG = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
_CALL = re.compile(r"\b([\w.]+)\s*\(")
_NO_ARGUMENT = re.compile(r"\W.*", re.DOTALL)


def read_macros(files: Iterable[MacroFile]) -> tuple[Macro, ...]:
    """The macros of some files, in their order, by the names under which models call them."""
    found: dict[str, Macro] = {}
    for file in files:
        for match in _MACRO.finditer(file.text):
            arguments = (_NO_ARGUMENT.sub("", part.strip()) for part in match["arguments"].split(","))
            name = f"{file.package}.{match['name']}" if file.package else match["name"]
            found[name] = Macro(
                name,
                file.file,
                match["text"],
                tuple(name for name in arguments if name),
                " ".join((match["said"] or "").split()),
            )
    return tuple(found.values())


def macros_used(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """The macros that the Jinja tags of a text call."""
    if "{" not in text:
        return ()
    called = {name for tag in _TAG.findall(text) for name in _CALL.findall(tag)}
    return tuple(name for name in known if name in called)
